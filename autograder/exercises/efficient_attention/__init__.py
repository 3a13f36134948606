"""Chapter 08: efficient attention."""

CHAPTER = "08_efficient_attention"
