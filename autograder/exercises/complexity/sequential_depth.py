"""Check `sequential_depth`: the longest chain of layer applications that wait for one another."""

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.complexity import CHAPTER
from autograder.program import Program, call
from course_lib import costs

UNKNOWN = "convolution"


def drawn(draw: Draw, kind: str) -> Program:
    """Draw more tokens than layers."""
    return call(kind, draw.integer(30, 90), draw.integer(5, 12))


def more_layers_than_tokens(draw: Draw, kind: str) -> Program:
    """Draw more layers than tokens."""
    return call(kind, draw.integer(3, 6), draw.integer(20, 40))


exercise = Exercise(
    chapter=CHAPTER,
    library="python",
    reference=costs.sequential_depth,
    returns=("the depth",),
    cases=[
        Case("a transformer in training", lambda draw: drawn(draw, "transformer")),
        Case("a recurrent network", lambda draw: drawn(draw, "rnn")),
        Case("a transformer that writes", lambda draw: drawn(draw, "decode")),
        Case("a deep transformer, few tokens", lambda draw: more_layers_than_tokens(draw, "transformer"), hidden=True),
        Case("a deep recurrent network, few tokens", lambda draw: more_layers_than_tokens(draw, "rnn"), hidden=True),
        Case("a deep writer, few tokens", lambda draw: more_layers_than_tokens(draw, "decode"), hidden=True),
        Case("one layer", lambda draw: call("rnn", draw.integer(30, 90), 1), hidden=True),
        Case("another kind", lambda draw: drawn(draw, UNKNOWN), hidden=True),
    ],
)


def _depth(kind, sequence, layers, **other):
    known = {"rnn": sequence + layers - 1, "transformer": layers, "decode": sequence * layers, **other}
    if kind not in known:
        raise ValueError(f"kind must be one of {', '.join(known)}, got {kind!r}")
    return known[kind]


@exercise.misconception("""
    Your recurrent network takes sequence · layers steps, as if layer 2 began when layer 1 has read the last token.
    Layer 2 can read its first state while layer 1 reads the second token. Draw the table of layers and steps and mark
    what can be computed at the same time.
""")
def no_wavefront(kind, sequence, layers):
    return _depth(kind, sequence, layers, rnn=sequence * layers)


@exercise.misconception("""
    Your recurrent network takes as many steps as there are tokens, whatever its layers. After the last token has
    reached the first layer, it still has to climb through the others.
""")
def layers_forgotten(kind, sequence, layers):
    return _depth(kind, sequence, layers, rnn=sequence)


@exercise.misconception("""
    Your recurrent network is one step too deep. With one layer it takes exactly `sequence` steps.
""")
def one_step_more(kind, sequence, layers):
    return _depth(kind, sequence, layers, rnn=sequence + layers)


@exercise.misconception("""
    Your transformer has depth 1, as the documents' table says. That is one **layer**: layer 2 needs what layer 1 gave.
""")
def one_for_a_stack(kind, sequence, layers):
    return _depth(kind, sequence, layers, transformer=1)


@exercise.misconception("""
    Your transformer's depth grows with the sequence. While it trains, all tokens are known, and a layer takes them at
    once.
""")
def tokens_one_by_one(kind, sequence, layers):
    return _depth(kind, sequence, layers, transformer=sequence * layers)


@exercise.misconception("""
    Your writing transformer is as shallow as one in training. Token t + 1 cannot enter the first layer before token t
    has left the last one: until then nobody knows what it is.
""")
def writing_in_parallel(kind, sequence, layers):
    return _depth(kind, sequence, layers, decode=layers)


@exercise.misconception("""
    Your writing transformer takes one step per token. Each token passes all layers, one after the other.
""")
def one_step_per_token(kind, sequence, layers):
    return _depth(kind, sequence, layers, decode=sequence)


@exercise.misconception("""
    Your writing transformer runs as a wavefront. A recurrent network that **reads** can do that; a writer cannot,
    for its next token is known only when the last layer has spoken.
""")
def wavefront_while_writing(kind, sequence, layers):
    return _depth(kind, sequence, layers, decode=sequence + layers - 1)


@exercise.misconception("""
    A kind that does not exist passes as one that does. Raise a `ValueError` that names the argument.
""")
def unknown_kind_accepted(kind, sequence, layers):
    return _depth(kind, sequence, layers) if kind in costs.DEPTH_KINDS else sequence * layers


@exercise.misconception("""
    A kind that does not exist gives None: no branch of your function returns for it. Raise a `ValueError` that names
    the argument.
""")
def unknown_kind_falls_through(kind, sequence, layers):
    return _depth(kind, sequence, layers) if kind in costs.DEPTH_KINDS else None


@exercise.alternative
def by_branches(kind, sequence, layers):
    if kind == "rnn":
        return sequence + layers - 1
    if kind == "transformer":
        return layers
    if kind == "decode":
        return sequence * layers
    raise ValueError(f"kind must be rnn, transformer or decode, got {kind!r}")


@exercise.alternative
def by_matching(kind, sequence, layers):
    match kind:
        case "rnn":
            return (sequence - 1) + layers
        case "transformer":
            return layers
        case "decode":
            return layers * sequence
        case _:
            raise ValueError("kind")


@exercise.alternative
def by_walking_the_table(kind, sequence, layers):
    if kind not in ("rnn", "transformer", "decode"):
        raise ValueError("kind")
    depth = {}
    for step in range(sequence):
        for layer in range(layers):
            before = {
                "rnn": [(step - 1, layer), (step, layer - 1)],
                "transformer": [(step, layer - 1)],
                "decode": [(step, layer - 1) if layer else (step - 1, layers - 1)],
            }[kind]
            depth[step, layer] = 1 + max(depth.get(cell, 0) for cell in before)
    return max(depth.values())
