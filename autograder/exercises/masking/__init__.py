"""Chapter 06: masking."""

CHAPTER = "06_masking"
