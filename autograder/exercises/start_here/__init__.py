"""Chapter 00: how the course works, on one small exercise."""

CHAPTER = "00_start_here"
