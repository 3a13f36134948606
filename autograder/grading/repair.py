"""Mend a submission's cells before grading: marks put back, copies unmarked, lost cells restored.

Only what the source can prove is mended: a cell is known by its id, or else by what it defines, says, or stands
behind, and the source knows what a graded cell holds. Every repair is one sentence.
"""

import copy
import re

from nbformat import NotebookNode

from autograder.grading.cells import gives_points, grade_id

DEFINITION = re.compile(r"^(?:async +def|def|class) +(\w+)", re.MULTILINE)


def repair_cells(notebook: NotebookNode, source: NotebookNode) -> list[str]:
    """Mend the notebook in place; return a sentence for each repair."""
    marked = {str(grade_id(cell)): cell for cell in source.cells if grade_id(cell) is not None}
    return [
        *restore_marks(notebook, marked),
        *unmark_copies(notebook, marked),
        *restore_marks_by_content(notebook, source, marked),
        *restore_lost_cells(notebook, source, marked),
    ]


def restore_marks(notebook: NotebookNode, marked: dict[str, NotebookNode]) -> list[str]:
    """Give a cell its nbgrader metadata back where its cell id proves which cell it is."""
    by_cell_id = {cell.id: cell for cell in marked.values() if "id" in cell}
    present = {grade_id(cell) for cell in notebook.cells}
    repairs = []
    for cell in notebook.cells:
        original = by_cell_id.get(cell.get("id"))
        if original is None or grade_id(original) in present or grade_id(cell) is not None:
            continue
        cell.metadata["nbgrader"] = copy.deepcopy(original.metadata["nbgrader"])
        present.add(grade_id(original))
        repairs.append(f"The cell {grade_id(original)} had lost its nbgrader metadata; it was put back.")
    return repairs


def unmark_copies(notebook: NotebookNode, marked: dict[str, NotebookNode]) -> list[str]:
    """Leave nbgrader's name to one cell only: the one with the original cell id, or else the last."""
    keeper: dict[str, int] = {}
    for position, cell in enumerate(notebook.cells):
        name = grade_id(cell)
        if name is None:
            cell.metadata.pop("nbgrader", None)
            continue
        original_id = marked[name].get("id") if name in marked else None
        kept = keeper.get(name)
        if kept is None or original_id is None or notebook.cells[kept].get("id") != original_id:
            keeper[name] = position
    repairs = []
    for position, cell in enumerate(notebook.cells):
        name = grade_id(cell)
        if name is not None and keeper[name] != position:
            del cell.metadata["nbgrader"]
            repairs.append(f"The cell {name} was there more than once; only one of them is graded.")
    return repairs


def restore_marks_by_content(
    notebook: NotebookNode, source: NotebookNode, marked: dict[str, NotebookNode]
) -> list[str]:
    """Give a cell its nbgrader metadata back where its content or its place tells which cell it is."""
    present = {grade_id(cell) for cell in notebook.cells}
    before = {grade_id(cell): above.source for above, cell in zip(source.cells, source.cells[1:], strict=False)}
    repairs = []
    for name, original in marked.items():
        if name in present:
            continue
        free = [place for place, cell in enumerate(notebook.cells) if grade_id(cell) is None]
        found = [place for place in free if is_the_cell(notebook.cells, place, original, before.get(name))]
        if found:
            notebook.cells[found[-1]].metadata["nbgrader"] = copy.deepcopy(original.metadata["nbgrader"])
            repairs.append(f"The cell {name} had lost its nbgrader metadata; it was put back.")
    return repairs


def is_the_cell(cells: list[NotebookNode], place: int, original: NotebookNode, above: str | None) -> bool:
    """Return whether an unmarked cell says what the source's says, or answers what that asks.

    An answer in code defines the same names; one in words stands behind the same text.
    """
    cell, is_answer = cells[place], original.metadata["nbgrader"].get("solution")
    if cell.cell_type != original.cell_type:
        return False
    if cell.source.strip() == original.source.strip():
        return True
    if not is_answer:
        return False
    if cell.cell_type == "code":
        wanted = set(DEFINITION.findall(original.source))
        return bool(wanted) and wanted <= set(DEFINITION.findall(cell.source))
    return place > 0 and above is not None and cells[place - 1].source.strip() == above.strip()


def restore_lost_cells(notebook: NotebookNode, source: NotebookNode, marked: dict[str, NotebookNode]) -> list[str]:
    """Put every graded cell that is gone back behind the nearest marked cell before it in the source."""
    order = list(marked)
    repairs = []
    for index, name in enumerate(order):
        positions = {grade_id(cell): position for position, cell in enumerate(notebook.cells)}
        if name in positions or not gives_points(marked[name]):
            continue
        before = [positions[earlier] for earlier in order[:index] if earlier in positions]
        restored = copy.deepcopy(marked[name])
        used = {cell.get("id") for cell in notebook.cells}
        if restored.get("id") in used:
            restored["id"] = f"{restored['id'][:50]}-restored"
        if "outputs" in restored:
            restored.outputs, restored.execution_count = [], None
        notebook.cells.insert(before[-1] + 1 if before else 0, restored)
        repairs.append(f"The graded cell {name} was missing; it was put back from the source.")
    return repairs
