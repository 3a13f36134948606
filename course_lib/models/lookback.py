"""One small causal model in which only the encoding of positions can be changed: the course's test bench for it."""

import math

import torch
from jaxtyping import Float, Int, Real
from torch import Tensor, nn

from course_lib import results
from course_lib.alibi import alibi_bias
from course_lib.buckets import NUM_BUCKETS, relative_position_bucket
from course_lib.multi_head import merge_heads, split_heads
from course_lib.position_tasks import VOCABULARY
from course_lib.positions import LearnedPositions, sinusoidal_encoding
from course_lib.rotary import apply_rotary

TRAINED_LENGTH, LENGTHS = 24, (24, 48, 96)
RESULT = "lookback_lengths"  # among the committed results


class Encoding(nn.Module):
    """No positions at all, and the three places at which an encoding may act; each kind overrides one of them."""

    def add(self, x: Float[Tensor, "batch sequence d_model"]) -> Float[Tensor, "batch sequence d_model"]:
        """Change the tokens before the first layer."""
        return x

    def turn(
        self, x: Float[Tensor, "batch heads sequence d_head"], positions: Real[Tensor, "sequence"]
    ) -> Float[Tensor, "batch heads sequence d_head"]:
        """Change queries and keys inside each head."""
        return x

    def bias(self, length: int) -> Float[Tensor, "heads query key"] | float:
        """Give what is added to the scores."""
        return 0.0


class Sinusoids(Encoding):
    """Add fixed waves."""

    def add(self, x: Float[Tensor, "batch sequence d_model"]) -> Float[Tensor, "batch sequence d_model"]:
        """Add a wave to every feature."""
        return x + torch.from_numpy(sinusoidal_encoding(*x.shape[-2:])).to(x.dtype)


class Learned(Encoding):
    """Add the rows of a table with room for the longest text; training reaches only its first rows."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.positions = LearnedPositions(max(LENGTHS), d_model)

    def add(self, x: Float[Tensor, "batch sequence d_model"]) -> Float[Tensor, "batch sequence d_model"]:
        """Add a row to every token."""
        return self.positions(x)


class Rotary(Encoding):
    """Turn queries and keys."""

    def turn(
        self, x: Float[Tensor, "batch heads sequence d_head"], positions: Real[Tensor, "sequence"]
    ) -> Float[Tensor, "batch heads sequence d_head"]:
        """Turn each pair of features."""
        return apply_rotary(x, positions)


class Alibi(Encoding):
    """Subtract from each score in proportion to the distance."""

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads

    def bias(self, length: int) -> Float[Tensor, "heads query key"]:
        """Give the penalties."""
        return alibi_bias(self.num_heads, length, length)


class Buckets(Encoding):
    """Add a learned number per head and bucket of distances, as T5 does."""

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.table = nn.Embedding(NUM_BUCKETS, num_heads)
        nn.init.zeros_(self.table.weight)

    def bias(self, length: int) -> Float[Tensor, "heads query key"]:
        """Look up the numbers."""
        places = torch.arange(length)
        buckets = relative_position_bucket(places - places[:, None], bidirectional=False)
        return self.table(buckets).movedim(-1, 0)


ENCODINGS = {
    "none": lambda d_model, num_heads: Encoding(),
    "sinusoids": lambda d_model, num_heads: Sinusoids(),
    "learned": lambda d_model, num_heads: Learned(d_model),
    "rotary": lambda d_model, num_heads: Rotary(),
    "ALiBi": lambda d_model, num_heads: Alibi(num_heads),
    "T5 buckets": lambda d_model, num_heads: Buckets(num_heads),
}


class Layer(nn.Module):
    """A pre-norm causal block whose attention takes its positions from an encoding."""

    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.w_qkv, self.w_o = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)
        self.ffn = nn.Sequential(nn.Linear(d_model, 2 * d_model), nn.GELU(), nn.Linear(2 * d_model, d_model))

    def forward(
        self, x: Float[Tensor, "batch sequence d_model"], encoding: Encoding, positions: Real[Tensor, "sequence"]
    ) -> Float[Tensor, "batch sequence d_model"]:
        """Attend to earlier tokens, then treat each token alone."""
        x = x + self.w_o(merge_heads(self._attend(self.norm_1(x), encoding, positions)))
        return x + self.ffn(self.norm_2(x))

    def _attend(self, x: Tensor, encoding: Encoding, positions: Tensor) -> Tensor:
        query, key, value = (split_heads(part, self.num_heads) for part in self.w_qkv(x).chunk(3, dim=-1))
        query, key = encoding.turn(query, positions), encoding.turn(key, positions)
        length = x.shape[-2]
        scores = query @ key.mT / math.sqrt(query.shape[-1]) + encoding.bias(length)
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        return torch.softmax(scores.masked_fill(future, -math.inf), dim=-1) @ value


class Lookback(nn.Module):
    """Name for every place of a text a token of its past, with an encoding of choice.

    Raises:
        ValueError: `encoding` is none of `ENCODINGS`.
    """

    def __init__(self, encoding: str, d_model: int = 64, num_heads: int = 4, num_layers: int = 1) -> None:
        super().__init__()
        if encoding not in ENCODINGS:
            raise ValueError(f"`encoding` must be one of {', '.join(ENCODINGS)}; got {encoding!r}.")
        self.tokens = nn.Embedding(VOCABULARY, d_model)
        self.encoding = ENCODINGS[encoding](d_model, num_heads)
        self.layers = nn.ModuleList(Layer(d_model, num_heads) for _ in range(num_layers))
        self.norm, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, VOCABULARY)

    def forward(
        self, tokens: Int[Tensor, "batch sequence"], positions: Real[Tensor, "sequence"] | None = None
    ) -> Float[Tensor, "batch sequence vocab"]:
        """Return the logits of every place.

        Args:
            tokens: The texts.
            positions: What rotary turns by; 0, 1, 2, … if not given. The other encodings do not look at it.
        """
        if positions is None:
            positions = torch.arange(tokens.shape[-1])
        x = self.encoding.add(self.tokens(tokens))
        for layer in self.layers:
            x = layer(x, self.encoding, positions)
        return self.head(self.norm(x))


def committed_lengths() -> list[dict]:
    """Read what `benchmarks/lookback_lengths.py` measured: one entry per run, with accuracies by length."""
    return results.load(RESULT)["runs"]
