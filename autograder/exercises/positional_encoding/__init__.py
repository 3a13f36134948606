"""Chapter 05: positional encoding."""

CHAPTER = "05_positional_encoding"
