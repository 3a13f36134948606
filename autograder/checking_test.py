"""What a learner meets: `check`, `evaluate`, and every kind of bad input."""

import math

import numpy as np
import pytest

from autograder import CheckFailed, check, evaluate, exercise_names
from autograder.checking import SHOWN_WIDTH
from course_lib import attention

NAME = "scaled_dot_product_attention"


def answer(query, key, value, mask=None):
    """Answer the exercise with parts of the library that it does not forbid."""
    scores = query @ np.swapaxes(key, -1, -2) / query.dtype.type(math.sqrt(query.shape[-1]))
    weights = attention.softmax(scores if mask is None else np.where(mask, -np.inf, scores))
    return weights @ value, weights


def test_a_pass_prints_one_line_and_returns_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(answer, NAME, hidden=True, seed=5) is None
    assert capsys.readouterr().out.count("\n") == 1


def test_a_failure_is_an_assertion_error_with_everything_that_a_tool_needs() -> None:
    with pytest.raises(CheckFailed) as caught:
        check(lambda query, key, value, mask=None: answer(query, query, value[:1], mask), NAME, seed=5)
    assert isinstance(caught.value, AssertionError)
    assert caught.value.exercise == NAME
    assert caught.value.case == "7 queries over 5 keys"
    assert caught.value.misconception is None
    assert "seed 5" in str(caught.value)
    shown = caught.value._render_traceback_()
    assert " ".join(shown).split() == str(caught.value).split()
    assert max(map(len, shown)) <= SHOWN_WIDTH


def test_the_same_seed_gives_the_same_verdict_and_no_seed_gives_fresh_inputs() -> None:
    def wrong(query, key, value, mask=None):
        return value.sum() * np.ones((7, 4)), np.full((7, 5), 0.2)

    assert evaluate(wrong, NAME, seed=8) == evaluate(wrong, NAME, seed=8)
    assert evaluate(wrong, NAME).seed != evaluate(wrong, NAME).seed


def test_an_exercise_is_found_by_the_name_of_the_function() -> None:
    def scaled_dot_product_attention(query, key, value, mask=None):
        return answer(query, key, value, mask)

    assert evaluate(scaled_dot_product_attention).passed


@pytest.mark.parametrize("name", ["softmaks", "nothing like it"])
def test_an_unknown_name_is_a_lookup_error_that_says_what_to_do(name: str) -> None:
    with pytest.raises(LookupError, match="There is no exercise called") as caught:
        evaluate(answer, name)
    assert "softmax" in str(caught.value)
    assert caught.value._render_traceback_() == [str(caught.value)]


def test_a_near_miss_is_offered() -> None:
    with pytest.raises(LookupError, match="did you mean scaled_dot_product_attention"):
        evaluate(answer, "scaled_dotproduct_attention")


@pytest.mark.parametrize("seed", [-1, 2.5, "x", True])
def test_a_seed_that_is_no_whole_number_is_refused(seed) -> None:
    with pytest.raises(ValueError, match="seed must be a whole number"):
        evaluate(answer, NAME, seed=seed)


def test_a_result_in_place_of_the_function_is_named() -> None:
    verdict = evaluate(np.ones(3), NAME)
    assert not verdict.passed
    assert "give the function itself" in verdict.message


def _prints(query, key, value, mask=None):
    print("look: " + "x" * 10_000_000)
    return answer(query, key, value, mask)


def _edits(query, key, value, mask=None):
    query /= 2
    return answer(2 * query, key, value, mask)


def _loops(query, key, value, mask=None):
    while True:
        pass


def _calls_the_reference(query, key, value, mask=None):
    return attention.scaled_dot_product_attention(query, key, value, mask)


def _takes_too_few(query, key):
    return answer(query, key, key)


def _yields(query, key, value, mask=None):
    yield from answer(query, key, value, mask)


def _leaves(query, key, value, mask=None):
    raise SystemExit(0)


def _recurses(query, key, value, mask=None):
    return _recurses(query, key, value, mask)


@pytest.mark.parametrize(
    ("solution", "words"),
    [
        (_edits, "your code changed its argument `query` in place; work on a copy"),
        (_calls_the_reference, "your code calls `course_lib.attention.scaled_dot_product_attention`"),
        (_takes_too_few, "takes 2 positional arguments but 3 were given"),
        (_yields, "it is an object of type generator"),
        (_leaves, "your code raised SystemExit: 0"),
        (_recurses, "RecursionError"),
        (lambda *args: (np.ones((7, 4)), np.ones((7, 5)) * np.nan), "should be"),
    ],
)
def test_bad_solutions_get_one_clear_sentence(solution, words: str) -> None:
    verdict = evaluate(solution, NAME, seed=1)
    assert not verdict.passed
    assert words in verdict.message
    assert "Traceback" not in verdict.message


def test_a_solution_that_never_returns_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.judge.time_limit", lambda: __import__("autograder.guard").guard.time_limit(0.3))
    verdict = evaluate(_loops, NAME, seed=1)
    assert "did not return in time: look for a loop that never ends" in verdict.message


def test_a_flood_of_prints_is_cut_and_the_check_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    check(_prints, NAME, seed=1)
    out = capsys.readouterr().out
    assert out.startswith("look: xxx")
    assert "more characters that your code printed are left out" in out
    assert len(out) < 4_000


def test_warnings_of_a_solution_are_told_on_stdout_only(capsys: pytest.CaptureFixture[str]) -> None:
    def divides(query, key, value, mask=None):
        np.log(np.zeros(1))
        return answer(query, key, value, mask)

    check(divides, NAME, seed=1)
    captured = capsys.readouterr()
    assert "Your code warned: RuntimeWarning: divide by zero" in captured.out
    assert captured.err == ""


def test_a_reference_that_is_handed_in_is_refused_by_check_and_known_to_evaluate() -> None:
    with pytest.raises(CheckFailed, match=r"your code calls `course_lib.attention.softmax`"):
        check(attention.softmax)
    assert evaluate(attention.softmax).passed


def test_names_are_listed_once_each() -> None:
    names = exercise_names()
    assert NAME in names
    assert len(names) == len(set(names))


class _Mute(Exception):
    """An exception whose text raises."""

    def __str__(self):
        raise RuntimeError("no text")


class _Answers:
    """A callable that answers every question about itself with an error."""

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __call__(self, *args, **kwargs):
        return answer(*args, **kwargs)


def test_an_exception_without_a_text_is_told() -> None:
    def raises(query, key, value, mask=None):
        raise _Mute

    assert "raised _Mute: an exception whose text cannot be read" in evaluate(raises, NAME, seed=1).message


def test_a_callable_that_hides_its_attributes_is_checked() -> None:
    assert evaluate(_Answers(), NAME, seed=1).passed


@pytest.mark.parametrize("name", [3, True, ["softmax"], answer])
def test_an_exercise_that_is_no_text_is_refused_in_one_sentence(name) -> None:
    with pytest.raises(LookupError, match="must be the name of an exercise"):
        evaluate(answer, name)


def test_a_seed_of_numpy_is_a_whole_number_and_a_bad_one_shows_one_line() -> None:
    assert evaluate(answer, NAME, seed=np.int64(3)).seed == 3
    with pytest.raises(ValueError, match="whole number") as caught:
        evaluate(answer, NAME, seed="x")
    assert caught.value._render_traceback_() == [str(caught.value)]


def test_a_check_that_is_stopped_says_so_in_one_line() -> None:
    def stops(query, key, value, mask=None):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        check(stops, NAME, seed=1)
    assert vars(caught.value)["_render_traceback_"]() == ["You stopped the check before it was done."]


def test_replacing_the_comparisons_of_numpy_does_not_help(monkeypatch: pytest.MonkeyPatch) -> None:
    def cheats(query, key, value, mask=None):
        for name in ("isclose", "allclose"):
            monkeypatch.setattr(np, name, lambda first, *_, **__: np.ones(np.shape(first), dtype=bool))
        return np.zeros((7, 4)), np.full((7, 5), 0.2)

    verdict = evaluate(cheats, NAME, seed=1)
    assert verdict.case == "7 queries over 5 keys"


def test_a_wrong_type_is_said_before_a_broken_property() -> None:
    assert "expected weights to be a NumPy array" in evaluate(lambda s: s.tolist(), "softmax", seed=1).message


def test_a_number_beyond_every_float_is_refused() -> None:
    assert not evaluate(lambda d_k, scaled: 10**400, "expected_score_std", seed=1).passed
