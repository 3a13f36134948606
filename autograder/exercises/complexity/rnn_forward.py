"""Check `rnn_forward`: every state of a recurrent network, one after the other."""

import torch
from torch import nn

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.complexity import CHAPTER
from autograder.program import Program, Run, call
from course_lib.models import recurrent

WEIGHT_SCALE = 0.5  # so that no state is near ±1, where tanh hides what goes in


def inputs(draw: Draw, batch: int | None = None, sequence: int | None = None) -> tuple:
    """Draw tokens and weights, with sizes that all differ."""
    drawn_batch, drawn_sequence, d_in, d_hidden = draw.sizes(4)
    return (
        draw.normal(batch or drawn_batch, sequence or drawn_sequence, d_in),
        draw.normal(d_in, d_hidden, scale=WEIGHT_SCALE),
        draw.normal(d_hidden, d_hidden, scale=WEIGHT_SCALE),
        draw.normal(d_hidden),
    )


def gradients(draw: Draw) -> Program:
    """Ask for the gradients of all four inputs."""
    return call(*inputs(draw)).gradients(*inputs(draw), wrt=(0, 1, 2, 3), weighted=True)


def states_stay_in_range(program: Program, found: Run) -> str | None:
    """Give a sentence about states outside (−1, 1)."""
    largest = found.outcomes[0].abs().max().item()
    if largest <= 1:
        return None
    return f"a state of yours is {largest:.3g} in size, but a tanh stays between −1 and 1"


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=recurrent.rnn_forward,
    returns=("the states",),
    properties=[states_stay_in_range],
    forbids=["torch.nn.RNN", "torch.nn.RNNCell", "torch.rnn_tanh", "torch.rnn_tanh_cell"],
    forbids_because="this exercise asks you to write the loop",
    cases=[
        Case("all sizes differ", lambda draw: call(*inputs(draw))),
        Case("a longer sequence", lambda draw: call(*inputs(draw, sequence=12))),
        Case("gradients", gradients, hidden=True, dtype="float64"),
        Case("one token", lambda draw: call(*inputs(draw, sequence=1)), hidden=True),
        Case("one sequence", lambda draw: call(*inputs(draw, batch=1)), hidden=True),
        Case("float64", lambda draw: call(*inputs(draw)), hidden=True, dtype="float64"),
        Case("as many sequences as tokens", lambda draw: call(*inputs(draw, 4, 4)), hidden=True),
    ],
)


def _states(x, w_x, w_h, b, *, start=None, activation=torch.tanh, step=None):
    """Run a loop with parts of it exchanged."""
    state = x.new_zeros(x.shape[0], w_h.shape[0]) if start is None else start
    states = []
    for token in x.unbind(1):
        state = step(token, state) if step else activation(token @ w_x + state @ w_h + b)
        states.append(state)
    return torch.stack(states, 1)


@exercise.misconception("""
    Your states forget: each depends on its own token alone. What was computed for the token before has to come in
    again, through `w_h`.
""")
def no_recurrence(x, w_x, w_h, b):
    return torch.tanh(x @ w_x + b)


@exercise.misconception("""
    Only the last state is returned. Asked for are all of them, `(batch, sequence, d_hidden)`: a model that guesses the
    next token needs one at every place.
""")
def last_state_alone(x, w_x, w_h, b):
    return _states(x, w_x, w_h, b)[:, -1]


@exercise.misconception("""
    There is no tanh in your states: they are a linear function of the tokens, and may grow without bound.
""")
def no_activation(x, w_x, w_h, b):
    return _states(x, w_x, w_h, b, activation=lambda sums: sums)


@exercise.misconception("""
    Your tanh acts on the results, but not inside the loop: the raw sum is carried to the next step. The state that is
    carried on is the one **after** the tanh.
""")
def raw_sum_carried_on(x, w_x, w_h, b):
    return torch.tanh(_states(x, w_x, w_h, b, activation=lambda sums: sums))


@exercise.misconception("""
    Your activation is a ReLU. The contract says tanh, which keeps a state between −1 and 1 however long the sequence.
""")
def relu_instead(x, w_x, w_h, b):
    return _states(x, w_x, w_h, b, activation=torch.relu)


@exercise.misconception("""
    Your activation is the logistic function, as in Elman's paper. The contract says tanh.
""")
def logistic_instead(x, w_x, w_h, b):
    return _states(x, w_x, w_h, b, activation=torch.sigmoid)


@exercise.misconception("""
    The bias is missing in your sums.
""")
def bias_forgotten(x, w_x, w_h, b):
    return _states(x, w_x, w_h, torch.zeros_like(b))


@exercise.misconception("""
    The bias comes in twice, once with each matrix. PyTorch keeps two biases, for one is added in each of two products;
    here there is one.
""")
def bias_twice(x, w_x, w_h, b):
    return _states(x, w_x, w_h, 2 * b)


@exercise.misconception("""
    `w_h` is turned around. States are rows here, and act as `state @ w_h`; PyTorch's own layer stores the matrix the
    other way round. As it is square, no shape will warn you.
""")
def recurrent_weights_transposed(x, w_x, w_h, b):
    return _states(x, w_x, w_h.T, b)


@exercise.misconception("""
    Your network starts from ones. Before the first token nothing is known: start from zeros.
""")
def start_from_ones(x, w_x, w_h, b):
    return _states(x, w_x, w_h, b, start=x.new_ones(x.shape[0], w_h.shape[0]))


@exercise.misconception("""
    Your network reads backwards: the first state knows the last token. Change the last token of x and see which states
    move.
""")
def read_backwards(x, w_x, w_h, b):
    return _states(x.flip(1), w_x, w_h, b).flip(1)


@exercise.misconception("""
    Your loop runs over the batch, as if one sequence came after the other. The first axis counts sequences, which know
    nothing of each other; time is the second.
""")
def batch_as_time(x, w_x, w_h, b):
    return _states(x.transpose(0, 1), w_x, w_h, b).transpose(0, 1)


@exercise.misconception("""
    Your result has the axes (sequence, batch, d_hidden): `torch.stack` puts the new axis in front unless `dim` says
    otherwise. PyTorch's own layer does that too, when `batch_first` is False.
""")
def time_comes_first(x, w_x, w_h, b):
    return _states(x, w_x, w_h, b).transpose(0, 1)


@exercise.misconception("""
    Your result has one state too many: the zeros at the start are in it. There is one state for each token.
""")
def start_returned_too(x, w_x, w_h, b):
    states = _states(x, w_x, w_h, b)
    return torch.cat([torch.zeros_like(states[:, :1]), states], 1)


@exercise.misconception("""
    Your results are right and their gradients are not: the state is cut off from its history at every step
    (`detach`, `.data` or `torch.no_grad`). Then no token learns what it did to later ones.
""")
def history_cut_off(x, w_x, w_h, b):
    return _states(x, w_x, w_h, b, step=lambda token, state: torch.tanh(token @ w_x + state.detach() @ w_h + b))


@exercise.misconception("""
    The bias is added after the tanh. It belongs inside: it shifts where a unit begins to respond.
""")
def bias_after_the_tanh(x, w_x, w_h, b):
    return _states(x, w_x, w_h, b, step=lambda token, state: torch.tanh(token @ w_x + state @ w_h) + b)


@exercise.alternative
def into_a_prepared_tensor(x, w_x, w_h, b):
    states = x.new_zeros(x.shape[0], x.shape[1] + 1, w_h.shape[0])
    rows = [states[:, 0]]
    for t in range(x.shape[1]):
        rows.append(torch.tanh(x[:, t] @ w_x + rows[-1] @ w_h + b))
    return torch.stack(rows[1:], dim=1)


@exercise.alternative
def projected_in_advance(x, w_x, w_h, b):
    sums = torch.einsum("bnd,dh->bnh", x, w_x) + b
    state, states = torch.zeros_like(sums[:, 0]), []
    for t in range(sums.shape[1]):
        state = (sums[:, t] + torch.matmul(state, w_h)).tanh()
        states.append(state[:, None])
    return torch.cat(states, dim=1)


@exercise.alternative
def with_one_matrix(x, w_x, w_h, b):
    both, state, states = torch.cat([w_x, w_h]), x.new_zeros(len(x), w_h.shape[0]), []
    for token in x.transpose(0, 1):
        state = torch.tanh(torch.addmm(b, torch.cat([token, state], dim=-1), both))
        states.append(state)
    return torch.stack(states).transpose(0, 1)


@exercise.alternative
def with_linear_functions(x, w_x, w_h, b):
    state = torch.zeros(x.shape[0], w_h.shape[1], dtype=x.dtype)
    found = torch.empty(x.shape[0], 0, w_h.shape[1], dtype=x.dtype)
    for t in range(x.shape[1]):
        state = torch.tanh(nn.functional.linear(x[:, t], w_x.T, b) + nn.functional.linear(state, w_h.T))
        found = torch.cat([found, state.unsqueeze(1)], dim=1)
    return found


@exercise.alternative
def sequence_by_sequence(x, w_x, w_h, b):
    def read(tokens):
        state, states = torch.zeros_like(b), []
        for token in tokens:
            state = torch.tanh(token @ w_x + state @ w_h + b)
            states.append(state)
        return torch.stack(states)

    return torch.stack([read(tokens) for tokens in x])
