"""Chapter 10: cross-attention, the decoder that uses it, and how a decoder writes."""

CHAPTER = "10_cross_attention"
