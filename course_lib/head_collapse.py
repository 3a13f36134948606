"""Raise an alarm when heads look at the same places."""

from jaxtyping import Float
from torch import Tensor

from course_lib.head_analysis import head_similarity


def head_collapse(weights: Float[Tensor, "batch heads query key"], threshold: float = 0.95) -> list[tuple[int, int]]:
    """List the pairs of heads whose maps are more alike than `threshold`, the lower number first.

    On weights as they are, soft maps raise false alarms: even maps are all alike. Take a baseline away first.

    Args:
        weights: the maps, or the maps less a baseline.
        threshold: cosine above which two heads count as one.
    """
    similarity = head_similarity(weights)
    heads = len(similarity)
    return [(i, j) for i in range(heads) for j in range(i + 1, heads) if similarity[i, j] > threshold]
