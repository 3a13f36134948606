"""Make notebooks from a chapter source: roles, release, and what must not leak."""
