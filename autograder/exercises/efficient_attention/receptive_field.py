"""Check `receptive_field`: which inputs reach which outputs through several layers of one pattern."""

import torch

from autograder.draw import Draw
from autograder.exercise import Case, Exercise
from autograder.exercises.efficient_attention import CHAPTER
from autograder.exercises.efficient_attention.rows import keys_text
from autograder.program import Program, Run, call
from course_lib.efficient import sparse

DEEP = 100  # layers after which counts of paths exceed every number type but float64


def window(draw: Draw) -> Program:
    """Draw a causal window of 3 and a few layers; one layer is asked for as well."""
    mask = sparse.sliding_window_mask(draw.integer(9, 12), 3)
    return call(mask, 1).call(mask, 3)


def no_token_sees_itself(draw: Draw) -> Program:
    """Draw a pattern in which every token sees the one before it and another one, and never itself."""
    length = draw.integer(8, 11)
    visible = torch.eye(length).roll(1, 0) + torch.eye(length).roll(draw.integer(3, 4), 0)
    return call(visible == 0, 2).call(visible == 0, 3)


def random_pattern(draw: Draw) -> Program:
    """Draw a pattern without any order; some rows may see nothing."""
    return call(draw.array(draw.random.random((10, 10)) < 0.8), draw.integer(2, 4))


def two_groups(draw: Draw) -> Program:
    """Draw two groups, of which one hears the other, and many layers."""
    groups = torch.arange(16) % 2
    return call(groups[:, None] < groups, DEEP + draw.integer(0, 4))


def cells(program: Program, found: Run) -> str | None:
    """Give a sentence about the first output that depends on the wrong inputs."""
    for step, field in zip(program.steps, found.outcomes, strict=True):
        if field.dtype != torch.bool:
            return f"the result should be boolean, but its dtype is {str(field.dtype).removeprefix('torch.')}"
        wanted = sparse.receptive_field(*step.args)
        for i in range(len(wanted)):
            if not torch.equal(field[i], wanted[i]):
                own = keys_text(field[i].nonzero().squeeze(-1).tolist()).replace("key", "input")
                right = keys_text(wanted[i].nonzero().squeeze(-1).tolist()).replace("key", "input")
                return f"after {step.args[1]} layer(s) output {i} depends on {right}, but yours says {own}"
    return None


exercise = Exercise(
    chapter=CHAPTER,
    library="torch",
    reference=sparse.receptive_field,
    returns=("the receptive field",),
    properties=[cells],
    forbids=["course_lib.dependence.dependence"],
    forbids_because="this exercise asks you to find the field from the mask alone",
    cases=[
        Case("a causal window", window),
        Case("no token sees itself", no_token_sees_itself),
        Case("a pattern without order", random_pattern, hidden=True),
        Case("two groups, many layers", two_groups, hidden=True),
        Case("a stride", lambda draw: call(sparse.strided_mask(draw.integer(16, 20), 4), 2), hidden=True),
        Case("global tokens", lambda draw: call(sparse.longformer_mask(12, 2, [3]), 2), hidden=True),
    ],
)


def _reached(visible, layers):
    return sparse.receptive_field(~visible, layers)


@exercise.misconception("""
    You read the mask the wrong way round: True hides, so information flows where it is False.
""")
def mask_taken_for_visible(mask, layers):
    return _reached(mask, layers)


@exercise.misconception("""
    Your result is True where an output does **not** depend on an input, as in a mask. Here True means that it does.
""")
def independence(mask, layers):
    return ~sparse.receptive_field(mask, layers)


@exercise.misconception("""
    In your result every output depends on its own input. Without a residual path that is so only if the token can see
    itself somewhere along the way. (With residuals you would be right; this exercise asks about attention alone.)
""")
def residual_included(mask, layers):
    return _reached(~mask | torch.eye(len(mask), dtype=torch.bool), layers)


@exercise.misconception("""
    Your result collects what is reached after one layer, or two, or any number up to `layers`. Information has to pass
    **all** of them; with no residual path it cannot wait.
""")
def any_number_up_to(mask, layers):
    return torch.stack([sparse.receptive_field(mask, depth) for depth in range(1, layers + 1)]).any(0)


@exercise.misconception("""
    You counted one layer too many: already the field of one layer is the mask turned round.
""")
def one_layer_too_many(mask, layers):
    return sparse.receptive_field(mask, layers + 1)


@exercise.misconception("""
    Your field stays one layer behind: for one layer it holds each token alone.
""")
def one_layer_too_few(mask, layers):
    return sparse.receptive_field(mask, layers - 1)


@exercise.misconception("""
    Your field does not grow with the layers: it is that of a single one. Output i sees k, and k has already seen
    others: how do you write "some k that i sees and that depends on j" as an operation on tables?
""")
def one_layer_whatever_the_depth(mask, layers):
    return ~mask


@exercise.misconception("""
    You square the table at each step, so the layers double: 1, 2, 4, 8. Multiply by the pattern of **one** layer each
    time.
""")
def squared_each_time(mask, layers):
    return sparse.receptive_field(mask, 2 ** (layers - 1))


@exercise.misconception("""
    Your table is turned: rows are inputs. Here row i belongs to output i, as a row of a mask belongs to a query.
""")
def inputs_as_rows(mask, layers):
    return sparse.receptive_field(mask, layers).T


@exercise.misconception("""
    Your counts of paths grew beyond what the number type holds. Whole numbers wrap around to 0 and floats become inf,
    then NaN. You need no counts: after each layer only whether there is **some** path.
""")
def paths_counted(mask, layers):
    counts = visible = (~mask).long()
    for _ in range(layers - 1):
        counts = counts @ visible
    return counts != 0


@exercise.misconception("""
    Your result holds numbers. How many paths there are does not matter: return a boolean table.
""")
def numbers(mask, layers):
    return sparse.receptive_field(mask, layers).float()


@exercise.alternative
def boolean_products(mask, layers):
    field = visible = ~mask
    for _ in range(layers - 1):
        field = (visible[:, :, None] & field[None, :, :]).any(1)
    return field


@exercise.alternative
def by_einsum(mask, layers):
    visible = (~mask).double()
    field = torch.eye(len(mask), dtype=torch.float64)
    for _ in range(layers):
        field = torch.einsum("ik,kj->ij", visible, field).clamp(max=1)
    return field > 0.5


@exercise.alternative
def sets_of_tokens(mask, layers):
    length = len(mask)
    below = [{i} for i in range(length)]
    for _ in range(layers):
        below = [set().union(*(below[k] for k in range(length) if not mask[i, k])) for i in range(length)]
    return torch.tensor([[j in below[i] for j in range(length)] for i in range(length)])


@exercise.alternative
def from_the_other_end(mask, layers):
    visible = mask.logical_not().int()
    field = visible
    for _ in range(layers - 1):
        field = ((field @ visible) > 0).int()
    return field.bool()


@exercise.alternative
def gradients_through_mean_layers(mask, layers):
    shares = (~mask).double() / (~mask).sum(-1, keepdim=True).clamp(min=1)

    def stack(x):
        for _ in range(layers):
            x = shares @ x
        return x

    return torch.autograd.functional.jacobian(stack, torch.ones(len(mask), dtype=torch.float64)) != 0
