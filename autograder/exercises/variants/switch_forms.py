"""Right Switch layers of other forms."""

import math

import torch
from torch import nn

from course_lib.feed_forward import FeedForward
from course_lib.routing import switch_route


class _Plain(nn.Module):
    """The parts under their names, for the accepted forms."""

    def __init__(self, d_model, d_ff, num_experts, capacity_factor):
        super().__init__()
        self.experts = nn.ModuleList([FeedForward(d_model, d_ff, "relu") for _ in range(num_experts)])
        self.router = nn.Linear(d_model, num_experts, bias=False)
        self.factor = capacity_factor

    def capacity(self, tokens):
        return math.ceil(self.factor * tokens / len(self.experts))


class WritingInPlace(_Plain):
    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        index, gate, kept = switch_route(self.router(flat), self.capacity(flat.shape[0]))
        output = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            mine = kept & (index == number)
            output[mine] += gate[mine].unsqueeze(-1) * expert(flat[mine])
        return output.reshape(x.shape)


class TokenByToken(_Plain):
    def forward(self, x):
        flat, taken, output = x.flatten(0, -2), [0] * len(self.experts), []
        room = self.capacity(len(flat))
        for row in flat:
            shares = torch.softmax(self.router(row), -1)
            chosen = int(shares.argmax())
            taken[chosen] += 1
            full = taken[chosen] > room
            output.append(torch.zeros_like(row) if full else shares[chosen] * self.experts[chosen](row))
        return torch.stack(output).view(x.shape)


class SortedByExpert(_Plain):
    def forward(self, x):
        flat = x.flatten(0, -2)
        index, gate, kept = switch_route(self.router(flat), self.capacity(len(flat)))
        order = torch.argsort(index, stable=True)
        order = order[kept[order]]
        counts = torch.bincount(index[kept], minlength=len(self.experts)).tolist()
        pieces = [expert(part) for expert, part in zip(self.experts, flat[order].split(counts), strict=True)]
        said = torch.cat(pieces) * gate[order, None]
        return torch.zeros_like(flat).index_put((order,), said).view_as(x)


class WithDispatchTables(_Plain):
    """One-hot tables carry tokens into the experts' slots and back, as in the published code."""

    def forward(self, x):
        flat = x.flatten(0, -2)
        room = self.capacity(len(flat))
        shares = self.router(flat).softmax(-1)
        gate, index = shares.max(-1)
        chosen = nn.functional.one_hot(index, len(self.experts))
        place = (chosen.cumsum(0) * chosen).sum(-1) - 1
        slots = nn.functional.one_hot(place.clamp(max=room), room + 1)[:, :room]
        table = (chosen[:, :, None] * slots[:, None, :]).to(flat.dtype)
        inputs = torch.einsum("tes,td->esd", table, flat)
        answers = torch.stack([expert(part) for expert, part in zip(self.experts, inputs, strict=True)])
        return torch.einsum("tes,esd->td", table * gate[:, None, None], answers).view_as(x)


ACCEPTED_FORMS = (WritingInPlace, TokenByToken, SortedByExpert, WithDispatchTables)
