"""Say in sentences what a table of weights, curves or bars show: the text alternative of a picture."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

MOST_ROWS = 12  # rows of a table that are told one by one
WORTH_A_MENTION = 0.05  # the least weight of a runner-up that is told
EQUAL = 0.005  # weights that differ by less are written alike


def describe_weights(
    weights: ArrayLike,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    mask: ArrayLike | None = None,
) -> str:
    """Say for each query which key gets the largest weight, and which the next."""
    table, queries, keys, hidden = weight_table(weights, queries, keys, mask)
    told = f"Attention weights of {counted(len(queries), 'query', 'queries')}"
    told += f" over {counted(len(keys), 'key', 'keys')}"
    told += f", {counted(int(hidden.sum()), 'cell', 'cells')} hidden." if hidden.any() else "."
    visible = np.where(hidden, 0, table)
    rows = [_row(query, row, keys) for query, row in zip(queries[:MOST_ROWS], visible, strict=False)]
    if len(queries) > MOST_ROWS:
        rows.append(f"Over all queries the largest weight is {visible.max(axis=1).mean():.2f} on average.")
    return " ".join([told, *rows])


def describe_curves(x: np.ndarray, curves: Mapping[str, np.ndarray], xlabel: str, ylabel: str) -> str:
    """Say where each curve starts and ends, and where it turns if it does."""
    told = [f"{ylabel[:1].upper()}{ylabel[1:]} over {xlabel}, from {x[0]:.4g} to {x[-1]:.4g}."]
    for name, y in curves.items():
        sentence = f"{name}: {y[0]:.3g} at the start, {y[-1]:.3g} at the end"
        if np.isfinite(y).any():
            for word, index in (("lowest", np.nanargmin(y)), ("highest", np.nanargmax(y))):
                if 0 < index < len(y) - 1 and y[index] not in (y[0], y[-1]):
                    sentence += f", {word} {y[index]:.3g} at {x[index]:.4g}"
        told.append(sentence + ".")
    return " ".join(told)


def describe_bars(values: Mapping[str, float], ylabel: str, digits: int) -> str:
    """Name every bar with its value."""
    told = ", ".join(f"{name} {value:.{digits}g}" for name, value in values.items())
    return f"Bars of {ylabel}: {told}."


def weight_table(
    weights: ArrayLike, queries: Sequence[str] | None, keys: Sequence[str] | None, mask: ArrayLike | None
) -> tuple[np.ndarray, list[str], list[str], np.ndarray]:
    """Check a table of weights and fill in what was left out: places as labels, nothing hidden.

    Raises:
        TypeError: `mask` is not boolean.
        ValueError: the table has not 2 axes, or labels or mask do not fit it.
    """
    table = np.asarray(weights, dtype=float)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"`weights` must be one (query, key) table, got shape {table.shape}; pick one head.")
    labels = []
    for name, given, size in (("queries", queries, table.shape[0]), ("keys", keys, table.shape[1])):
        texts = [str(place) for place in range(size)] if given is None else [str(label) for label in given]
        if len(texts) != size:
            raise ValueError(f"`{name}` has {len(texts)} labels; the table of weights needs {size}.")
        labels.append(texts)
    hidden = np.zeros(table.shape, dtype=bool) if mask is None else np.asarray(mask)
    if hidden.dtype != np.bool_:
        raise TypeError(f"`mask` must be boolean (True hides), got dtype {hidden.dtype}.")
    try:
        hidden = np.broadcast_to(hidden, table.shape)
    except ValueError:
        raise ValueError(f"`mask` has shape {hidden.shape}; the weights have {table.shape}.") from None
    return table, labels[0], labels[1], hidden


def counted(number: int, one: str, many: str) -> str:
    """Write a number with its noun."""
    return f"{number} {one if number == 1 else many}"


def _row(query: str, row: np.ndarray, keys: Sequence[str]) -> str:
    first, *others = np.argsort(-row, kind="stable")
    if not row[first] > 0:
        return f"Query {query!r} looks at nothing."
    if len(row) > 1 and np.ptp(row) < EQUAL:
        return f"Query {query!r} looks equally at every key ({row[first]:.2f})."
    sentence = f"Query {query!r} looks most at key {keys[first]!r} ({row[first]:.2f})"
    if others and row[others[0]] >= WORTH_A_MENTION:
        sentence += f", then at {keys[others[0]]!r} ({row[others[0]]:.2f})"
    return sentence + "."
