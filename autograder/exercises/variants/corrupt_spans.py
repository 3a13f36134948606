"""Check `corrupt_spans`: T5's objective, spans out and sentinels in."""

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.variants import CHAPTER
from autograder.program import Program, Run, call
from course_lib import objectives

SENTINEL = 900  # far above every drawn token


def text(draw: Draw, length: int) -> list[int]:
    """Draw tokens that all differ, so that each shows where it stood."""
    return [int(token) for token in draw.random.permutation(100)[:length]]


def cut(draw: Draw, length: int, spans: list[tuple[int, int]]) -> Program:
    """Cut given spans out of a drawn text."""
    return call(text(draw, length), spans, SENTINEL - draw.integer(0, 50))


def two_spans(draw: Draw) -> Program:
    """Cut two spans of different lengths out of the middle."""
    first, gap, short, long = draw.sizes(4, low=1, high=5)
    spans = [(first, first + long), (first + long + gap, first + long + gap + short)]
    return cut(draw, spans[-1][1] + 2, spans)


def three_spans(draw: Draw) -> Program:
    """Cut three spans, one of a single token."""
    start = draw.integer(1, 3)
    return cut(draw, start + 12, [(start, start + 1), (start + 3, start + 7), (start + 8, start + 10)])


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=objectives.corrupt_spans,
    returns=("the inputs", "the targets"),
    cases=[
        Case("two spans", two_spans),
        Case("one span", lambda draw: cut(draw, 7, [(2, 5)])),
        Case("three spans", three_spans),
        Case("spans at both ends", lambda draw: cut(draw, 9, [(0, 2), (6, 9)]), hidden=True),
        Case("spans that touch", lambda draw: cut(draw, 9, [(1, 3), (3, 6)]), hidden=True),
        Case("the whole text", lambda draw: cut(draw, 4, [(0, 4)]), hidden=True),
        Case("no span", lambda draw: cut(draw, 5, []), hidden=True),
    ],
)


def _pieces(tokens, spans):
    """Give the text between the spans, one piece more than spans, and the spans' tokens."""
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(tokens)]
    between = [list(tokens[end:start]) for end, start in zip(ends, starts, strict=True)]
    return between, [list(tokens[start:end]) for start, end in spans]


def _joined(tokens, spans, sentinels, last):
    between, inside = _pieces(tokens, spans)
    inputs, targets = between[0], []
    for sentinel, span, after in zip(sentinels, inside, between[1:], strict=False):
        inputs = [*inputs, sentinel, *after]
        targets += [sentinel, *span]
    return inputs, [*targets, *last]


def _down(spans, first_sentinel):
    return [first_sentinel - index for index in range(len(spans))]


@exercise.misconception("""
    Every gap has the same sentinel in your answer. With two gaps, the model could not say which one it is filling. Each
    span has a sentinel of its own.
""")
def one_sentinel_for_all(tokens, spans, first_sentinel):
    return _joined(tokens, spans, [first_sentinel] * len(spans), [first_sentinel])


@exercise.misconception("""
    Your sentinels count up. In T5 they are the last ids of the vocabulary and count **down**; above the first one there
    is no other id.
""")
def sentinels_count_up(tokens, spans, first_sentinel):
    sentinels = [first_sentinel + index for index in range(len(spans))]
    return _joined(tokens, spans, sentinels, [first_sentinel + len(spans)])


@exercise.misconception("""
    Your inputs are as long as the text: one mark for each hidden token, as in BERT. A span becomes **one** sentinel,
    however long it is; the model has to find out the length by itself, and the inputs get shorter.
""")
def one_mark_per_token(tokens, spans, first_sentinel):
    inputs, targets = list(tokens), []
    for sentinel, (start, end) in zip(_down(spans, first_sentinel), spans, strict=True):
        inputs[start:end] = [sentinel] * (end - start)
        targets += [sentinel, *tokens[start:end]]
    return inputs, [*targets, first_sentinel - len(spans)]


@exercise.misconception("""
    Your targets repeat the whole text. That works (it is one of the variants that the T5 paper compares), and costs as
    many decoder steps as the text has tokens. Here only what was cut out is asked for.
""")
def targets_are_the_whole_text(tokens, spans, first_sentinel):
    inputs, _ = objectives.corrupt_spans(tokens, spans, first_sentinel)
    return inputs, list(tokens)


@exercise.misconception("""
    Your targets end with the last span's tokens. One more sentinel has to close them, the next one in the row: it says
    that the last span is over.
""")
def no_last_sentinel(tokens, spans, first_sentinel):
    return _joined(tokens, spans, _down(spans, first_sentinel), [])


@exercise.misconception("""
    The sentinel that closes your targets is that of the last span once more. It should be the next one, which stands
    nowhere in the inputs.
""")
def last_sentinel_repeated(tokens, spans, first_sentinel):
    return _joined(tokens, spans, _down(spans, first_sentinel), [first_sentinel - max(0, len(spans) - 1)])


@exercise.misconception("""
    Your targets are the cut tokens alone, without sentinels. Who reads them cannot tell where one span ends and the
    next begins.
""")
def targets_without_sentinels(tokens, spans, first_sentinel):
    inputs, _ = objectives.corrupt_spans(tokens, spans, first_sentinel)
    return inputs, [token for start, end in spans for token in tokens[start:end]]


@exercise.misconception("""
    In your targets a span's sentinel comes behind its tokens. It comes first: it says which gap is filled next.
""")
def sentinel_behind_its_span(tokens, spans, first_sentinel):
    inputs, _ = objectives.corrupt_spans(tokens, spans, first_sentinel)
    targets = []
    for sentinel, (start, end) in zip(_down(spans, first_sentinel), spans, strict=True):
        targets += [*tokens[start:end], sentinel]
    return inputs, [*targets, first_sentinel - len(spans)]


@exercise.misconception("""
    Your inputs have nothing in place of a span: the gap has closed, and nobody can see where it was. Leave the sentinel
    there.
""")
def gaps_closed(tokens, spans, first_sentinel):
    _, targets = objectives.corrupt_spans(tokens, spans, first_sentinel)
    return [token for piece in _pieces(tokens, spans)[0] for token in piece], targets


@exercise.misconception("""
    Your spans are one token longer than they should be: `end` itself is cut out too. A span (start, end) is half-open,
    like a Python slice.
""")
def end_included(tokens, spans, first_sentinel):
    inputs, targets, copied = [], [], 0
    for sentinel, (start, end) in zip(_down(spans, first_sentinel), spans, strict=True):
        inputs += [*tokens[copied:start], sentinel]
        targets += [sentinel, *tokens[start : end + 1]]
        copied = end + 1
    return [*inputs, *tokens[copied:]], [*targets, first_sentinel - len(spans)]


@exercise.misconception("""
    You read a span as (start, length). Its second number is where it ends, not counted in, like a Python slice.
""")
def second_number_is_a_length(tokens, spans, first_sentinel):
    inputs, targets, copied = [], [], 0
    for sentinel, (start, length) in zip(_down(spans, first_sentinel), spans, strict=True):
        inputs += [*tokens[copied:start], sentinel]
        targets += [sentinel, *tokens[start : start + length]]
        copied = start + length
    return [*inputs, *tokens[copied:]], [*targets, first_sentinel - len(spans)]


@exercise.misconception("""
    Your first span is right, and the next ones are cut at the wrong place. Once a span has become one sentinel, all
    that follows has moved, and `start` and `end` count in the original text.
""")
def places_move(tokens, spans, first_sentinel):
    inputs, targets = list(tokens), []
    for sentinel, (start, end) in zip(_down(spans, first_sentinel), spans, strict=True):
        targets += [sentinel, *inputs[start:end]]
        inputs[start:end] = [sentinel]
    return inputs, [*targets, first_sentinel - len(spans)]


@exercise.misconception("""
    Inputs and targets are exchanged in your answer: the inputs are the long text with gaps, and the targets what was
    cut out. The inputs come first.
""")
def exchanged(tokens, spans, first_sentinel):
    return tuple(reversed(objectives.corrupt_spans(tokens, spans, first_sentinel)))


@exercise.misconception("""
    What follows the last span is missing in your inputs. After the loop, the rest of the text still has to be copied.
""")
def rest_forgotten(tokens, spans, first_sentinel):
    inputs, targets = objectives.corrupt_spans(tokens, spans, first_sentinel)
    rest = len(tokens) - (spans[-1][1] if spans else 0)
    return inputs[: len(inputs) - rest], targets


@exercise.alternative
def from_the_back(tokens, spans, first_sentinel):
    inputs, targets = list(tokens), [first_sentinel - len(spans)]
    for index in reversed(range(len(spans))):
        start, end = spans[index]
        targets = [first_sentinel - index, *tokens[start:end], *targets]
        inputs[start:end] = [first_sentinel - index]
    return inputs, targets


@exercise.alternative
def token_by_token(tokens, spans, first_sentinel):
    starts = {start: index for index, (start, _) in enumerate(spans)}
    hidden = {place for start, end in spans for place in range(start, end)}
    inputs, targets = [], []
    for place, token in enumerate(tokens):
        if place in starts:
            inputs.append(first_sentinel - starts[place])
            targets.append(first_sentinel - starts[place])
        (targets if place in hidden else inputs).append(token)
    targets.append(first_sentinel - len(spans))
    return [inputs, targets]


@exercise.alternative
def offset_kept(tokens, spans, first_sentinel):
    inputs, targets, moved = tokens[:], [], 0
    for index, (start, end) in enumerate(spans):
        inputs[start - moved : end - moved] = [first_sentinel - index]
        targets.extend([first_sentinel - index, *tokens[start:end]])
        moved += end - start - 1
    return inputs, [*targets, first_sentinel - len(spans)]


def says_where(program: Program, found: Run) -> str | None:
    """Give a sentence when inputs or targets have the wrong number of tokens."""
    tokens, spans, _ = program.steps[0].args
    inputs, targets = found.outcomes[0]
    hidden = sum(end - start for start, end in spans)
    for name, sequence, wanted, why in (
        ("inputs", inputs, len(tokens) - hidden + len(spans), "each span becomes one token"),
        ("targets", targets, hidden + len(spans) + 1, "the cut tokens, a sentinel for each span, and one that closes"),
    ):
        if len(sequence) != wanted:
            return f"the {name} should hold {wanted} tokens ({why}), but yours hold {len(sequence)}"
    return None


exercise.properties = (says_where,)
