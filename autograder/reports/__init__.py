"""What the author and the instructor read: tables of coverage and of points."""
