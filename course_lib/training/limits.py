"""Where numbers end: the largest score whose exponential still is a number."""

import math

import torch


def largest_safe_score(dtype: torch.dtype) -> float:
    """Give the score above which exp overflows if nobody subtracts the maximum first: ln(largest number of the dtype).

    Raises:
        TypeError: `dtype` is not a floating dtype.

    Source: the largest numbers are those of IEEE 754-2019, §3.6, table 3.5, and of bfloat16.
    """
    if not dtype.is_floating_point:
        raise TypeError(f"`dtype` must be a floating dtype of PyTorch such as torch.float32, got {dtype!r}.")
    return math.log(torch.finfo(dtype).max)
