"""The wrong beliefs about `GPT`: each a model with one step gone wrong."""

import torch
import torch.nn.functional as F

from autograder.exercises.variants.gpt import exercise
from course_lib.masks import causal_mask
from course_lib.models import gpt


class _Parts(gpt.GPT):
    """The model with its steps as methods, so that a belief can replace one of them."""

    def check_length(self, tokens):
        gpt.require_length(tokens.shape[1], self.max_length)
        return tokens

    def hidden(self, length):
        return causal_mask(length)

    def embed(self, tokens):
        return self.token_embedding(tokens) + self.position_embedding(torch.arange(tokens.shape[1]))

    def run_blocks(self, x):
        for block in self.blocks:
            x = block(x, self.hidden(x.shape[1]))
        return x

    def read_out(self, x):
        return F.linear(self.norm(x), self.token_embedding.weight)

    def forward(self, tokens):
        return self.read_out(self.run_blocks(self.embed(self.check_length(tokens))))


@exercise.misconception("""
    Nothing hides the future: every place sees the tokens that it should predict. Such a model reaches a loss near 0
    while it trains and can write nothing, for then there is no future to copy. What does a
    block take besides x?
""")
class NoMask(_Parts):
    def hidden(self, length):
        return None


@exercise.misconception("""
    Your mask begins one place too late: a place sees the token after it, and this is the one that it should predict.
    Print the mask for 4 tokens. What may the first token see?
""")
class SeesOneAhead(_Parts):
    def hidden(self, length):
        return torch.ones(length, length, dtype=torch.bool).triu(2)


@exercise.misconception("""
    Your mask works the wrong way round: a place sees what comes later and not what came before. True hides in this
    course, so True belongs where the key is **later** than the query. Print the mask for 4 tokens: is the upper
    right corner True?
""")
class MaskInverted(_Parts):
    def hidden(self, length):
        return ~causal_mask(length)


@exercise.misconception("""
    Your model looks at the token before each place at most, so a token is forgotten after one step. A causal mask
    hides what is **later**; all that came before stays visible. How many False should the last row have?
""")
class SeesOneStepBack(_Parts):
    def hidden(self, length):
        return torch.ones(length, length, dtype=torch.bool).tril(-2) | causal_mask(length)

    def run_blocks(self, x):
        return self.blocks[0](x, self.hidden(x.shape[1]))


@exercise.misconception("""
    Your attention runs along the batch: tokens of different texts look at each other, and tokens of one text do not.
    Which axis do your blocks take for the sequence? (The framework's layers take the first one unless they are built
    with `batch_first=True`.)
""")
class AttentionAlongTheBatch(_Parts):
    def run_blocks(self, x):
        return super().run_blocks(x.transpose(0, 1)).transpose(0, 1)


@exercise.misconception("""
    Your model has no positions: a token looks the same wherever it stands. Attention alone does not know places
    (chapter 5); what is added to the token embedding?
""")
class NoPositions(_Parts):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        del self.position_embedding

    def embed(self, tokens):
        return self.token_embedding(tokens)


@exercise.misconception("""
    You return probabilities. The loss takes logits and has the softmax inside; fed with probabilities it cannot fall
    below ln((e + V - 1) / e), however well the model knows. Which line can go?
""")
class Probabilities(_Parts):
    def read_out(self, x):
        return super().read_out(x).softmax(-1)


@exercise.misconception("""
    You return logits of the last place alone. That is what writing needs, and a training step learns from **every**
    place at once: each is a prediction of its own. Where is the sequence cut?
""")
class LastPlaceOnly(_Parts):
    def read_out(self, x):
        return super().read_out(x[:, -1])


@exercise.misconception("""
    You return a pair, as nanoGPT does (logits and loss). Here a model returns its logits, and `next_token_loss` does
    the rest.
""")
class PairReturned(_Parts):
    def forward(self, tokens):
        return super().forward(tokens), None


@exercise.misconception("""
    Your output has d_model numbers per place. Who turns a token's features into one score for each word of the
    vocabulary? Here that is the embedding matrix once more.
""")
class NoHead(_Parts):
    def read_out(self, x):
        return self.norm(x)


@exercise.misconception("""
    Your fresh model is sure of itself and wrong. `nn.Embedding` starts with entries of variance 1, and the tied head
    multiplies the last features by the same matrix, so logits are of size √d_model. Start all matrices near 0, with a
    standard deviation of 0.02: what does the loss start from then?
""")
class EmbeddingsOfVarianceOne(_Parts):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        torch.nn.init.normal_(self.token_embedding.weight)


@exercise.misconception("""
    Your count is V · d_model too high: the head is a matrix of its own. It should **be** the token embedding, the same
    parameter. (A copy of it is equal at the start only: after one step the two part.)
""")
class HeadOfItsOwn(_Parts):
    def __init__(self, vocab_size, d_model, *sizes):
        super().__init__(vocab_size, d_model, *sizes)
        self.head = torch.nn.Linear(d_model, vocab_size, bias=False)

    def read_out(self, x):
        return self.head(self.norm(x))


@exercise.misconception("""
    Your count is V too high: the head has a bias. The tied head is the embedding alone; `nn.Linear` adds a bias unless
    you say otherwise.
""")
class HeadWithBias(_Parts):
    def __init__(self, vocab_size, *sizes):
        super().__init__(vocab_size, *sizes)
        self.bias = torch.nn.Parameter(torch.zeros(vocab_size))

    def read_out(self, x):
        return super().read_out(x) + self.bias


@exercise.misconception("""
    Your positions are sinusoids, which learn nothing: the count lacks max_length · d_model. The first transformer has
    them; GPT learns a vector for every place.
""")
class SinusoidalPositions(_Parts):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, max_length):
        super().__init__(vocab_size, d_model, num_heads, num_layers, max_length)
        weight = self.position_embedding.weight.detach()
        del self.position_embedding
        self.table = weight

    def embed(self, tokens):
        return self.token_embedding(tokens) + self.table[: tokens.shape[1]]


@exercise.misconception("""
    Your count is 2 · d_model short: the norm after the last block is missing. In a pre-norm stack the skip path carries
    what no norm has seen (chapter 3); GPT-2 normalizes it once, before the head.
""")
class NoLastNorm(_Parts):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.norm = torch.nn.Identity()


@exercise.misconception("""
    Your last norm is there and never called: its two vectors take no part in the logits. It stands between the last
    block and the head.
""")
class LastNormUnused(_Parts):
    def read_out(self, x):
        return F.linear(x, self.token_embedding.weight)


@exercise.misconception("""
    Only your last block works: every block is given the embeddings, and what the earlier ones say is lost. Each reads
    what the block before it wrote, so the name on both sides of `=` is the same.
""")
class LastBlockOnly(_Parts):
    def run_blocks(self, x):
        for block in self.blocks:
            said = block(x, self.hidden(x.shape[1]))
        return said


@exercise.misconception("""
    Your places are counted from the end of the longest sequence, so the same text has other places when more of it
    follows. The first token is at place 0, however long the text is.
""")
class PlacesFromTheEnd(_Parts):
    def embed(self, tokens):
        places = torch.arange(self.max_length)[self.max_length - tokens.shape[1] :]
        return self.token_embedding(tokens) + self.position_embedding(places)


@exercise.misconception("""
    All your layers are one and the same block: the count does not grow with num_layers. `[block] * n` makes a list of n
    names for one object. Make a new block for each.
""")
class OneBlockForAll(_Parts):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.blocks = torch.nn.ModuleList([self.blocks[0]] * len(self.blocks))


@exercise.misconception("""
    Your feed-forward networks are 2048 wide inside, which is the default of the framework's layer. Here the width is
    4 · d_model: hand it on.
""")
class WidthOfTheFramework(_Parts):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, max_length):
        super().__init__(vocab_size, d_model, num_heads, num_layers, max_length)
        for block in self.blocks:
            block.ffn = gpt.TransformerBlock(d_model, num_heads, 2048, activation="gelu").ffn


@exercise.misconception("""
    Your feed-forward networks are as wide inside as outside. They widen to 4 · d_model and come back; two thirds of a
    block's parameters are in there.
""")
class NoWidening(_Parts):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, max_length):
        super().__init__(vocab_size, d_model, num_heads, num_layers, max_length)
        for block in self.blocks:
            block.ffn = gpt.TransformerBlock(d_model, num_heads, d_model, activation="gelu").ffn


@exercise.misconception("""
    A sequence that is too long ends in an `IndexError` from inside the position table, which tells nobody what to do.
    Compare the length with `max_length` first and raise a `ValueError` that names both.
""")
class IndexErrorWhenTooLong(_Parts):
    def check_length(self, tokens):
        return tokens


@exercise.misconception("""
    A sequence that is too long is cut in silence, so the logits belong to other places than the caller thinks. Cutting
    is the business of whoever writes with the model; here a `ValueError` is wanted.
""")
class CutWhenTooLong(_Parts):
    def check_length(self, tokens):
        return tokens[:, -self.max_length :]
