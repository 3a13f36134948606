"""What is known to go wrong where notebooks are graded, each case with what happens here and where that is tested."""
