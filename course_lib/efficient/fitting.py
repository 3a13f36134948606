"""Refuse tensors and sizes that do not fit together, naming the arguments."""

from torch import Tensor


def require_equal_size(first: str, first_tensor: Tensor, second: str, second_tensor: Tensor, axis: int) -> None:
    """Refuse two tensors that differ in size along an axis they share.

    Raises:
        ValueError: the sizes differ.
    """
    if first_tensor.shape[axis] != second_tensor.shape[axis]:
        raise ValueError(
            f"`{first}` {tuple(first_tensor.shape)} and `{second}` {tuple(second_tensor.shape)} must have the same "
            f"size along axis {axis}."
        )


def require_count(name: str, value: object) -> None:
    """Refuse what is not a positive int.

    Raises:
        TypeError: it is not an int.
        ValueError: it is below 1.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"`{name}` must be an int, got {type(value).__name__}.")
    if value < 1:
        raise ValueError(f"`{name}` must be at least 1, got {value}.")
