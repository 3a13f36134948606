"""What a learner does with the notebooks: see the progress, start an exercise over, take in a corrected chapter."""
