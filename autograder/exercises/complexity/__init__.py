"""Chapter 07: what transformers cost, in parameters, operations, bytes and seconds."""

CHAPTER = "07_complexity"
