"""Chapter 11: schedules, clipping, starting values, collapse, search, and the diagnosis of runs that fail."""

CHAPTER = "11_training_in_practice"
