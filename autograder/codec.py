"""The language across the trust line: plain values, programs and runs as bytes, and back.

A message is a JSON header followed by the arrays as `.npz`. Pickle has no part in it.
"""

from autograder.decoding import decode
from autograder.encoding import MAX_BYTES, CodecError, encode

__all__ = ["MAX_BYTES", "CodecError", "decode", "encode"]
