"""Use the framework's encoder as a decoder: the whole stack under one causal mask."""

from jaxtyping import Float
from torch import Tensor, nn

from course_lib.masks import causal_mask


def causal_encoder(
    encoder: nn.TransformerEncoder, x: Float[Tensor, "batch sequence d_model"]
) -> Float[Tensor, "batch sequence d_model"]:
    """Run a batch-first stack of the framework so that no place sees a later one.

    The stack calls its mask `mask` (its layers call it `src_mask`), and True hides.
    """
    return encoder(x, mask=causal_mask(x.shape[1]).to(x.device))
