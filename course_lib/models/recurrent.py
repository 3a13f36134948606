"""Recurrent networks: read token after token, and carry all that was read in one vector.

They are what the transformer replaced, and the baseline that it is measured against.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

LAYERS: dict[str, type[nn.RNN] | type[nn.GRU] | type[nn.LSTM]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


def rnn_forward(
    x: Float[Tensor, "batch sequence d_in"],
    w_x: Float[Tensor, "d_in d_hidden"],
    w_h: Float[Tensor, "d_hidden d_hidden"],
    b: Float[Tensor, " d_hidden"],
) -> Float[Tensor, "batch sequence d_hidden"]:
    """Return every state of a recurrent network: h_t = tanh(x_t w_x + h_{t−1} w_h + b), from h_0 = 0.

    Raises:
        ValueError: widths do not fit.

    Source: Elman 1990, "Finding Structure in Time". The paper's units are logistic; here, as in the framework, they
    are tanh, and the framework keeps two biases where one is enough.
    """
    for name, got, expected in (
        ("x", x.shape[-1], w_x.shape[0]),
        ("w_h", w_h.shape[0], w_x.shape[1]),
        ("b", b.shape[0], w_x.shape[1]),
    ):
        if got != expected:
            raise ValueError(f"`{name}` has width {got}, but `w_x` {tuple(w_x.shape)} asks for {expected}.")
    projected = x @ w_x + b  # does not wait for a state, so all tokens go at once
    state = projected.new_zeros(projected.shape[0], projected.shape[-1])
    states = []
    for token in projected.unbind(dim=1):
        state = torch.tanh(token + state @ w_h)
        states.append(state)
    return torch.stack(states, dim=1) if states else projected


def recurrent_layer(kind: str, d_in: int, d_hidden: int, num_layers: int = 1) -> nn.RNN | nn.GRU | nn.LSTM:
    """Create a recurrent layer of the framework, batch first; called, it returns all states and the last ones.

    Raises:
        ValueError: `kind` is none of "rnn", "gru" and "lstm".
    """
    if kind not in LAYERS:
        raise ValueError(f"`kind` must be one of {', '.join(map(repr, LAYERS))}, got {kind!r}.")
    return LAYERS[kind](d_in, d_hidden, num_layers, batch_first=True)


class RecurrentLanguageModel(nn.Module):
    """Guess the next token from all before it: a vector per token, a recurrent stack, a layer that names the token."""

    def __init__(self, vocab_size: int, d_model: int, kind: str = "lstm", num_layers: int = 1) -> None:
        """Create the model.

        Raises:
            ValueError: `kind` is none of "rnn", "gru" and "lstm".
        """
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.layer = recurrent_layer(kind, d_model, d_model, num_layers)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, tokens: Int[Tensor, "batch sequence"]) -> Float[Tensor, "batch sequence vocab"]:
        """Return the logits of the token after every place."""
        states, _ = self.layer(self.embedding(tokens))
        return self.head(states)
