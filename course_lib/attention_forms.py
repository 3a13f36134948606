"""The forms of causal attention that this project compares: its own, PyTorch's backends, and FlexAttention."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from course_lib.efficient.flash import flash_attention
from course_lib.efficient.linear import linear_attention
from course_lib.efficient.local import local_attention
from course_lib.masks import causal_mask

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
MANY_SHAPES = 64  # for each of which FlexAttention may be compiled anew; by default PyTorch gives up after 8


@dataclass(frozen=True)
class Form:
    """One way to calculate causal attention; `exact` forms calculate the same function.

    What a `compiled` form allocates cannot be counted operation by operation.
    """

    name: str
    attend: Attend
    exact: bool
    compiled: bool = False


def forms(block_size: int, window: int) -> tuple[Form, ...]:
    """List every form: own ones first, then the library's, one for each of its backends.

    A backend that this machine lacks is in the list too; it raises when it is called.

    Args:
        block_size: of our own tiles.
        window: of local attention, in tokens.
    """
    backends = [(name, backend) for name, backend in SDPBackend.__members__.items() if name != "ERROR"]
    return (
        Form("naive", naive_attention, exact=True),
        Form("own tiles", lambda q, k, v: flash_attention(q, k, v, block_size, causal=True), exact=True),
        Form("local", lambda q, k, v: local_attention(q, k, v, window), exact=False),
        Form("linear", lambda q, k, v: linear_attention(q, k, v, causal=True), exact=False),
        Form("SDPA", _sdpa, exact=True),
        *(Form(f"SDPA {name.lower().replace('_', ' ')}", _sdpa_by(backend), exact=True) for name, backend in backends),
        Form("FlexAttention", flex, exact=True, compiled=True),
    )


def naive_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Write the formula down as it stands, in the inputs' own precision, with the whole table of pairs."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    hidden = causal_mask(query.shape[-2], key.shape[-2]).to(query.device)
    return scores.masked_fill(hidden, -math.inf).softmax(-1) @ value


def flex(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Call FlexAttention, compiled, with a causal mask that it knows block by block."""
    # On a CPU compiling takes half a minute, so one kernel serves all lengths there from the start.
    compiled = _compiled_flex(dynamic=True if query.device.type == "cpu" else None)
    block_mask = _flex_mask(query.shape[-2], str(query.device))
    return compiled(query, key, value, block_mask=block_mask)


def _sdpa(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


def _sdpa_by(backend: SDPBackend) -> Attend:
    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        with sdpa_kernel(backend):
            return _sdpa(query, key, value)

    return attend


@cache
def _compiled_flex(dynamic: bool | None) -> Callable[..., Tensor]:
    from torch._dynamo import config  # loading the compiler takes seconds, and only this form needs it
    from torch.nn.attention.flex_attention import flex_attention

    config.recompile_limit = max(config.recompile_limit, MANY_SHAPES)
    return torch.compile(flex_attention, dynamic=dynamic)  # pyright: ignore[reportReturnType]


@cache
def _flex_mask(length: int, device: str) -> object:
    from torch.nn.attention.flex_attention import create_block_mask

    return create_block_mask(lambda _, __, query, key: query >= key, None, None, length, length, device=device)
