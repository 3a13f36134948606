"""Chapter 01: scaled dot-product attention."""

CHAPTER = "01_attention"
