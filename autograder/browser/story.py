"""A learner's way through chapter 01: every cell run, every exercise answered, one answer broken and mended."""

from collections.abc import Callable
from dataclasses import dataclass, field

from nbformat import NotebookNode

from autograder.browser.page import NotebookPage
from autograder.grading.cells import role_of

BROKEN = "scaled_dot_product_attention"
SOFTMAX_OVER_QUERIES = """
def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ np.swapaxes(key, -1, -2) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = np.where(mask, -np.inf, scores)
    exponentials = np.exp(scores - scores.max())
    weights = exponentials / exponentials.sum(axis=-2, keepdims=True)
    return weights @ value, weights
""".strip()
TYPED = "expected_score_std"
STARTER_LINE = "raise NotImplementedError()"
TYPED_LINE = "return 1.0 if scaled else math.sqrt(d_k)"
PREDICTION = "my_prediction = None"
WRITTEN_ANSWER = (
    "A score adds up d_k products, so its spread grows like the root of d_k. Undivided, the softmax of wide vectors "
    "is close to one-hot and passes hardly any gradient on; divided by d_k, it is close to a plain mean."
)

Camera = Callable[[str], object]


@dataclass
class Story:
    """What the learner saw."""

    verdicts: dict[str, str] = field(default_factory=dict)
    predictions: list[str] = field(default_factory=list)
    complaints: dict[str, list[str]] = field(default_factory=dict)
    pictures: list[str] = field(default_factory=list)
    diagnosis: str = ""
    validated_broken: str = ""
    validated_mended: str = ""


def solve_chapter(notebook: NotebookPage, released: NotebookNode, answers: dict[str, str], camera: Camera) -> Story:
    """Work through an opened chapter from the first cell to the last, break an answer, mend it, and save.

    Args:
        notebook: The chapter, open and untouched.
        released: The same chapter as nbformat reads it.
        answers: Right answers by `grade_id`.
        camera: Takes a picture of the page under a name.
    """
    story = Story()
    camera("chapter-opened")
    for index, cell in enumerate(released.cells):
        role = role_of(cell)
        if role is not None and role[1] == "written":
            notebook.write(index, WRITTEN_ANSWER)
            notebook.render(index)
            camera("written-answer")
        elif cell.cell_type == "code":
            answer(notebook, index, cell, answers)
            visit(notebook, index, cell, story, camera)
    break_and_mend(notebook, released, answers, story, camera)
    notebook.save()
    return story


def answer(notebook: NotebookPage, index: int, cell: NotebookNode, answers: dict[str, str]) -> None:
    """Fill in a cell that asks for something: an exercise, or a prediction."""
    role = role_of(cell)
    if role == (TYPED, "answer"):
        notebook.type_over(index, STARTER_LINE, TYPED_LINE)
    elif role is not None and role[1] == "answer":
        notebook.write(index, answers[role[0]])
    elif PREDICTION in cell.source:
        notebook.write(index, cell.source.replace(PREDICTION, "my_prediction = 0.5"))


def visit(notebook: NotebookPage, index: int, cell: NotebookNode, story: Story, camera: Camera) -> None:
    """Run a cell and note down what it says."""
    said = notebook.run(index)
    role = role_of(cell)
    if role is not None and role[1] == "test":
        story.verdicts[role[0]] = said
        if len(story.verdicts) == 1:
            notebook.show(index)
            camera("check-passed")
    if PREDICTION in cell.source:
        story.predictions.append(said)
    if complaints := notebook.complaints(index):
        story.complaints[cell.id] = complaints
    if notebook.has_picture(index):
        story.pictures.append(cell.id)
        notebook.show(index)
        camera(f"picture-{cell.id}")


def break_and_mend(
    notebook: NotebookPage, released: NotebookNode, answers: dict[str, str], story: Story, camera: Camera
) -> None:
    """Put a wrong belief in place of a right answer, read what check and Validate say, and put the answer back."""
    roles = [role_of(cell) for cell in released.cells]
    place, test = roles.index((BROKEN, "answer")), roles.index((BROKEN, "test"))
    notebook.write(place, SOFTMAX_OVER_QUERIES)
    notebook.run(place)
    story.diagnosis = notebook.run(test)
    notebook.show(test)
    camera("diagnosis")
    story.validated_broken = notebook.validate()
    camera("validate-names-the-failure")
    notebook.close_dialog()
    notebook.write(place, answers[BROKEN])
    notebook.run(place)
    notebook.run(test)
    story.validated_mended = notebook.validate()
    camera("validate-passes")
    notebook.close_dialog()
