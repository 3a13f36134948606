"""Chapter 02: multi-head attention."""

CHAPTER = "02_multi_head_attention"
