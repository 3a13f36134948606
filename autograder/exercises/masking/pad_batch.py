"""Check `pad_batch`: sequences of different lengths side by side, and a mask that knows where they end."""

import torch
from torch.nn.utils.rnn import pad_sequence

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.masking import CHAPTER
from autograder.program import Program, Run, call
from course_lib import padded_batches

VOCAB = 30


def sequences(draw: Draw, *lengths: int, without: int | None = None) -> list[list[int]]:
    """Draw sequences of token ids, if asked without one of them."""
    ids = [token for token in range(VOCAB) if token != without]
    return [[int(token) for token in draw.random.choice(ids, length)] for length in lengths]


def lengths(draw: Draw) -> list[int]:
    """Draw four lengths that all differ, in an order that is neither rising nor falling."""
    short, middle, long, longest = sorted(draw.sizes(4, low=1, high=9))
    return [middle, longest, short, long]


def different_lengths(draw: Draw) -> Program:
    """Pad with an id that is no token."""
    return call(sequences(draw, *lengths(draw), without=0), 0)


def padding_id_among_the_tokens(draw: Draw) -> Program:
    """Pad with an id that real tokens have too, also the last one of a sequence."""
    pad_id = draw.integer(1, VOCAB - 1)
    drawn = sequences(draw, *lengths(draw))
    for sequence in drawn:
        sequence[-1] = pad_id
    return call(drawn, pad_id)


def an_empty_sequence(draw: Draw) -> Program:
    """Let one sequence have no token."""
    return call(sequences(draw, 2, 0, 5), draw.integer(1, 9))


def equal_lengths(draw: Draw) -> Program:
    """Let nothing be padded."""
    return call(sequences(draw, 4, 4, 4), draw.integer(1, 9))


def tokens_are_int64(program: Program, found: Run) -> str | None:
    """Give a sentence when the tokens are whole numbers of another dtype, which compare as equal."""
    tokens = found.outcomes[0][0]
    if tokens.dtype == torch.int64:
        return None
    dtype = str(tokens.dtype).removeprefix("torch.")
    return f"your tokens have the dtype {dtype}, but ids of tokens are int64, as losses and `gather` expect them"


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=padded_batches.pad_batch,
    returns=("tokens", "mask"),
    cases=[
        Case("four lengths", different_lengths, limit=tokens_are_int64),
        Case("real tokens with the padding's id", padding_id_among_the_tokens),
        Case("an empty sequence", an_empty_sequence, hidden=True),
        Case("nothing to pad", equal_lengths, hidden=True),
        Case("one sequence", lambda draw: call(sequences(draw, 3), 5), hidden=True),
        Case("the padding's id is large", lambda draw: call(sequences(draw, 3, 5, 1, 2), 50_000), hidden=True),
    ],
)


def _mask(sequences):
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    return torch.arange(int(lengths.max())) >= lengths[:, None]


@exercise.misconception("""
    Your mask looks for the padding's id among the tokens, and so it hides real tokens that have the same id. The
    documents do this too. Only one thing tells padding apart from tokens for certain: where each sequence ends.
""")
def mask_from_ids(sequences, pad_id):
    tokens, _ = padded_batches.pad_batch(sequences, pad_id)
    return tokens, tokens == pad_id


@exercise.misconception("""
    Your mask is True at the real tokens. In this course True hides, and the real tokens are what should be seen. (The
    `attention_mask` of Hugging Face has 1 for a real token: the opposite convention, and a common one.)
""")
def real_tokens_marked(sequences, pad_id):
    tokens, mask = padded_batches.pad_batch(sequences, pad_id)
    return tokens, ~mask


@exercise.misconception("""
    The first place behind each sequence stays visible in your mask. A sequence of 3 tokens has the places 0, 1 and 2;
    is place 3 one of its tokens?
""")
def one_padding_visible(sequences, pad_id):
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    tokens, _ = padded_batches.pad_batch(sequences, pad_id)
    return tokens, torch.arange(tokens.shape[1]) > lengths[:, None]


@exercise.misconception("""
    The last token of each sequence is hidden in your mask. A sequence of 3 tokens has the places 0, 1 and 2: the
    first hidden place is 3.
""")
def last_token_hidden(sequences, pad_id):
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    tokens, _ = padded_batches.pad_batch(sequences, pad_id)
    return tokens, torch.arange(tokens.shape[1]) >= lengths[:, None] - 1


@exercise.misconception("""
    Your sequences stand at the right of their rows, with the padding before them. Models that write do that, so that
    the newest token is last; here the padding comes behind, at the right.
""")
def padded_at_the_left(sequences, pad_id):
    mask = _mask(sequences).flip(1)
    tokens = torch.full(mask.shape, pad_id)
    for row, sequence in zip(tokens, sequences, strict=True):
        row[len(row) - len(sequence) :] = torch.tensor(sequence, dtype=torch.int64)
    return tokens, mask


@exercise.misconception("""
    You fill up with 0, whatever `pad_id` says. In many vocabularies 0 is a real token.
""")
def padded_with_zero(sequences, pad_id):
    return padded_batches.pad_batch(sequences, 0)


@exercise.misconception("""
    Your rows are cut to the shortest sequence, so that tokens of the others are lost. All rows should be as long as
    the longest sequence.
""")
def cut_to_the_shortest(sequences, pad_id):
    shortest = min(len(sequence) for sequence in sequences)
    return padded_batches.pad_batch([sequence[:shortest] for sequence in sequences], pad_id)


@exercise.misconception("""
    Your table has a column for every sequence. Each sequence should have a row: the shape is (batch, token). If you
    used `pad_sequence`, look at its argument `batch_first`.
""")
def sequences_as_columns(sequences, pad_id):
    tokens, mask = padded_batches.pad_batch(sequences, pad_id)
    return tokens.T, mask.T


@exercise.misconception("""
    Your mask holds numbers. Make it boolean, True where there is padding: a mask of numbers is added to the scores by
    some functions and multiplied by others.
""")
def mask_of_numbers(sequences, pad_id):
    tokens, mask = padded_batches.pad_batch(sequences, pad_id)
    return tokens, mask.long()


@exercise.misconception("""
    Your tokens are floating numbers. An id is a name and not a quantity: an embedding looks it up in a table and
    refuses floats. `torch.zeros` makes floats unless you give it a dtype.
""")
def floating_tokens(sequences, pad_id):
    tokens, mask = padded_batches.pad_batch(sequences, pad_id)
    return tokens.float(), mask


@exercise.misconception("""
    Your tokens are int32. The ids are right, but PyTorch's losses and `gather` want int64, which is also what
    `torch.tensor` makes of whole numbers.
""")
def tokens_in_int32(sequences, pad_id):
    tokens, mask = padded_batches.pad_batch(sequences, pad_id)
    return tokens.int(), mask


@exercise.misconception("""
    You return the tokens alone. Return the mask as well, as a pair `(tokens, mask)`: nobody can tell later where the
    padding begins.
""")
def tokens_alone(sequences, pad_id):
    return padded_batches.pad_batch(sequences, pad_id)[0]


@exercise.alternative
def with_pad_sequence(sequences, pad_id):
    rows = [torch.tensor(sequence, dtype=torch.int64) for sequence in sequences]
    return pad_sequence(rows, batch_first=True, padding_value=pad_id), _mask(sequences)


@exercise.alternative
def lists_filled_up(sequences, pad_id):
    longest = max(map(len, sequences))
    tokens = [list(sequence) + [pad_id] * (longest - len(sequence)) for sequence in sequences]
    mask = [[place >= len(sequence) for place in range(longest)] for sequence in sequences]
    return torch.tensor(tokens), torch.tensor(mask)


@exercise.alternative
def mask_filled_with_the_tokens(sequences, pad_id):
    shape = len(sequences), max(map(len, sequences))
    tokens, mask = torch.full(shape, pad_id), torch.ones(shape, dtype=torch.bool)
    for row, sequence in enumerate(sequences):
        tokens[row, : len(sequence)] = torch.tensor(sequence, dtype=torch.int64)
        mask[row, : len(sequence)] = False
    return tokens, mask


@exercise.alternative
def in_a_list(sequences, pad_id):
    return list(padded_batches.pad_batch(sequences, pad_id))
