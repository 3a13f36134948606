"""The leak detector: which outputs of a function depend on which of its inputs?"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor


def dependence(function: Callable[[Tensor], Tensor], x: Float[Tensor, "n_in d_in"]) -> Bool[Tensor, "n_out n_in"]:
    """Tell whether output i depends on input j: some ∂ function(x)[i, a] / ∂ x[j, b] is not 0.

    All pairs of features a and b are looked at one by one, for sums of gradients can cancel. Gradients are taken
    at one place, x: a function that is flat there seems independent. A gradient that is not finite counts as
    dependence.

    Raises:
        ValueError: `x` or the output does not have two axes, tokens and features.
    """
    for name, shape in (("x", x.shape), ("the output of `function`", function(x).shape)):
        if len(shape) != 2:
            raise ValueError(f"{name} must have the axes (token, feature); its shape is {tuple(shape)}.")
    jacobian = torch.autograd.functional.jacobian(function, x.detach())
    return (jacobian != 0).any(dim=-1).any(dim=1)
