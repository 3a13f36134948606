"""Chapter 04: the feed-forward network, and the whole block."""

CHAPTER = "04_feed_forward"
