"""Bound the speed of a computation by its machine: it can calculate no faster, and fetch no faster, than that.

Source: Williams, Waterman and Patterson 2009, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", §3.
"""

from dataclasses import dataclass

FLOAT32_BYTES = 4


@dataclass(frozen=True)
class Work:
    """What one computation has to do: calculate `flops` and move `bytes_moved` between memory and processor."""

    flops: int
    bytes_moved: int

    @property
    def intensity(self) -> float:
        """Return the FLOPs per byte."""
        return arithmetic_intensity(self.flops, self.bytes_moved)


def arithmetic_intensity(flops: float, bytes_moved: float) -> float:
    """Return how many FLOPs a computation does for every byte that it moves.

    Raises:
        ValueError: `bytes_moved` is not positive, or `flops` is negative.
    """
    if bytes_moved <= 0:
        raise ValueError(f"`bytes_moved` must be above 0, got {bytes_moved}.")
    if flops < 0:
        raise ValueError(f"`flops` must not be negative, got {flops}.")
    return flops / bytes_moved


def attainable_flops(intensity: float, peak_flops: float, bandwidth: float) -> float:
    """Return the FLOPs per second that a machine can reach at best: min(peak, intensity · bandwidth).

    Args:
        intensity: FLOPs per byte moved.
        peak_flops: FLOPs per second when nothing has to be waited for.
        bandwidth: bytes per second between memory and processor.

    Raises:
        ValueError: an argument is negative.

    Source: Williams et al. 2009, §3.
    """
    for name, value in (("intensity", intensity), ("peak_flops", peak_flops), ("bandwidth", bandwidth)):
        if value < 0:
            raise ValueError(f"`{name}` must not be negative, got {value}.")
    return float(min(peak_flops, intensity * bandwidth))


def product_work(rows: int, inner: int, columns: int, products: int = 1, itemsize: int = FLOAT32_BYTES) -> Work:
    """Give the work of matrix products (rows, inner) @ (inner, columns): each matrix moves once, at best.

    Args:
        rows: of the left matrix.
        inner: what the two share.
        columns: of the right matrix.
        products: how many such pairs, each with matrices of its own.
        itemsize: bytes of a number.
    """
    numbers = rows * inner + inner * columns + rows * columns
    return Work(2 * products * rows * inner * columns, products * numbers * itemsize)
