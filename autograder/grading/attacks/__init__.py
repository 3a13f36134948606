"""What a hostile student may try, what it is worth, and the harm to look for."""
