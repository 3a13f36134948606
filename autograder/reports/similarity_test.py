from autograder.reports.similarity import alike, same_answers

STARTER = "def softmax(scores):\n    raise NotImplementedError()\n"
FIRST = """
def softmax(scores):
    peak = scores.max(axis=-1, keepdims=True)
    raised = np.exp(np.where(np.isneginf(peak), 0.0, scores - peak))
    total = raised.sum(axis=-1, keepdims=True)
    return np.divide(raised, total, out=np.zeros_like(raised), where=total > 0)
"""
RENAMED = FIRST.replace("peak", "biggest").replace("raised", "powers").replace("total", "whole")
OTHER = """
def softmax(scores):
    rows = []
    for row in scores.reshape(-1, scores.shape[-1]):
        if np.all(row == -np.inf):
            rows.append(row * 0)
            continue
        weights = [math.exp(value - max(row)) for value in row]
        rows.append([weight / math.fsum(weights) for weight in weights])
    return np.array(rows).reshape(scores.shape)
"""
CLASS = {"ada": FIRST, "ben": RENAMED + "# my own work\n", "cem": OTHER}


def test_a_renamed_copy_is_found_and_honest_work_is_not() -> None:
    pairs = alike(CLASS, STARTER)
    assert [(pair.first, pair.second) for pair in pairs] == [("ada", "ben")]
    assert pairs[0].share > 0.9


def test_what_the_starter_gave_does_not_count() -> None:
    assert alike({"ada": FIRST, "ben": FIRST}, FIRST) == []


def test_what_many_wrote_is_common_knowledge() -> None:
    assert alike({str(number): FIRST for number in range(6)}, STARTER) == []


def test_a_ring_of_any_size_with_the_same_answers_is_one_group() -> None:
    ring = {f"ring {number}": RENAMED if number % 2 else FIRST for number in range(6)}
    assert same_answers(ring | {"cem": OTHER}, STARTER) == [sorted(ring)]


def test_the_starter_itself_and_short_answers_make_no_group() -> None:
    assert same_answers({"ada": FIRST, "ben": FIRST}, FIRST) == []
    assert same_answers({"ada": "def f(x):\n    return x\n", "ben": "def f(y):\n    return y\n"}, "") == []
    assert same_answers({"ada": FIRST, "ben": FIRST + OTHER}, STARTER) == []


def test_short_and_empty_answers_say_nothing() -> None:
    assert alike({"ada": "def f(x):\n    return x\n", "ben": "def f(y):\n    return y\n", "cem": ""}, "") == []


def test_a_copy_with_an_added_part_is_found_by_the_smaller_one() -> None:
    pairs = alike({"ada": FIRST, "ben": FIRST + OTHER}, STARTER)
    assert pairs[0].share > 0.9
