"""Chapter 09: one trunk, several objectives: GPT, BERT, T5 and Switch."""

CHAPTER = "09_variants"
