"""Right models of other forms: every one is causal, knows places, starts near ln V and learns as many numbers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.block import TransformerBlock


class WithATiedLinearHead(nn.Module):
    """The head is a linear layer whose weight is the embedding's own parameter."""

    def __init__(self, vocab_size, d_model, num_heads, num_layers, max_length):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab_size, d_model), nn.Embedding(max_length, d_model)
        self.h = nn.ModuleList(
            [TransformerBlock(d_model, num_heads, 4 * d_model, True, "gelu") for _ in range(num_layers)]
        )
        self.ln_f = nn.LayerNorm(d_model)
        self.lm_head = nn.Linear(d_model, vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight
        nn.init.normal_(self.wte.weight, std=0.02)

    def forward(self, tokens):
        n = tokens.size(1)
        if n > self.wpe.num_embeddings:
            raise ValueError("sequence too long")
        x = self.wte(tokens) + self.wpe(torch.arange(n))[None]
        mask = torch.triu(torch.ones(n, n), 1).bool()
        for block in self.h:
            x = block(x, mask)
        return self.lm_head(self.ln_f(x))


class OnTheFrameworkStack(nn.Module):
    """The framework's stack under a causal mask."""

    def __init__(self, vocab_size, d_model, num_heads, num_layers, max_length):
        super().__init__()
        self.max_length = max_length
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.places = nn.Parameter(0.01 * torch.randn(max_length, d_model))
        layer = nn.TransformerEncoderLayer(
            d_model, num_heads, 4 * d_model, activation="gelu", batch_first=True, norm_first=True
        )
        self.stack = nn.TransformerEncoder(layer, num_layers, nn.LayerNorm(d_model), enable_nested_tensor=False)
        nn.init.normal_(self.tokens.weight, std=1 / math.sqrt(d_model) / 4)

    def forward(self, tokens):
        length = tokens.shape[1]
        if length > self.max_length:
            raise ValueError(f"tokens has {length} places, at most {self.max_length} are known")
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.stack(self.tokens(tokens) + self.places[:length], mask=mask, is_causal=True)
        return x @ self.tokens.weight.T


class PostNorm(WithATiedLinearHead):
    """Post-norm blocks, as in the first GPT, with a last norm."""

    def __init__(self, vocab_size, d_model, num_heads, num_layers, max_length):
        super().__init__(vocab_size, d_model, num_heads, num_layers, max_length)
        for block in self.h:
            vars(block)["norm_first"] = False


class WithDropoutWhileTraining(WithATiedLinearHead):
    """Entries are dropped out while training."""

    def __init__(self, vocab_size, d_model, num_heads, num_layers, max_length):
        super().__init__(vocab_size, d_model, num_heads, num_layers, max_length)
        self.drop = nn.Dropout(0.1)
        self.wte.register_forward_hook(lambda _module, _inputs, output: self.drop(output))


class WithReluAndABuffer(nn.Module):
    """The mask is stored for the greatest length and cut; the networks use ReLU."""

    def __init__(self, vocab_size, d_model, num_heads, num_layers, max_length):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(max_length, d_model)
        self.blocks = nn.Sequential(
            *[TransformerBlock(d_model, num_heads, d_model * 4, norm_first=True) for _ in range(num_layers)]
        )
        self.norm = nn.LayerNorm(d_model)
        rows = torch.arange(max_length)
        self.hidden = nn.Buffer(rows[None, :] > rows[:, None], persistent=False)
        for weight in self.parameters():
            if weight.ndim > 1:
                nn.init.normal_(weight, 0, 0.02)

    def forward(self, tokens):
        batch, length = tokens.shape
        if length > len(self.hidden):
            raise ValueError
        x = self.embedding(tokens) + self.positions(torch.arange(length).expand(batch, length))
        for block in self.blocks:
            x = block(x, self.hidden[:length, :length])
        return torch.einsum("bnd,vd->bnv", self.norm(x), self.embedding.weight)


class OwnAttention(WithATiedLinearHead):
    """The blocks attend with the framework's function, which takes `is_causal`."""

    def forward(self, tokens):
        n = tokens.shape[1]
        if n > self.wpe.num_embeddings:
            raise ValueError("too long")
        x = self.wte(tokens) + self.wpe.weight[:n]
        for block in self.h:
            assert isinstance(block, TransformerBlock)
            read, layer = block.norm_1(x), block.attention
            q, k, v = (
                projection(read).unflatten(-1, (layer.num_heads, -1)).transpose(1, 2)
                for projection in (layer.w_q, layer.w_k, layer.w_v)
            )
            found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + layer.w_o(found.transpose(1, 2).flatten(2))
            x = x + block.ffn(block.norm_2(x))
        return F.linear(self.ln_f(x), self.wte.weight)


ACCEPTED_FORMS = (
    WithATiedLinearHead,
    OnTheFrameworkStack,
    PostNorm,
    WithDropoutWhileTraining,
    WithReluAndABuffer,
    OwnAttention,
)
