"""Chapter 12: scaling up."""

CHAPTER = "12_scaling_up"
