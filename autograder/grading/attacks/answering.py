"""Attacks by what a function returns: lying objects, stolen or learned answers, and scores that are no scores."""

from autograder.grading.attacks.attack import Attack

SCORES = "softmax(np.zeros(2))"  # a test that gives part of the points, by its last value

ANSWERING = [
    Attack(
        "A8",
        "equal to all",
        "The function returns an object that is equal to everything.",
        "full points",
        """
class Yes:
    shape, dtype = (2,), np.dtype(float)
    def __eq__(self, other):
        return True
    __ne__ = lambda self, other: False
def softmax(scores):
    return Yes()
""",
        "no error",
        test="assert softmax([0.0, 0.0]) == [0.5, 0.5]",
    ),
    Attack(
        "A8",
        "lying array",
        "The function returns an array whose comparisons and reductions it answers itself.",
        "full points",
        """
class Liar(np.ndarray):
    def __array_function__(self, *arguments, **options):
        return True
    def __array_ufunc__(self, *arguments, **options):
        return True
def softmax(scores):
    return np.zeros_like(scores).view(Liar)
""",
        "no error",
    ),
    Attack(
        "A9",
        "lying number",
        "The function returns a number whose difference from any other is nothing.",
        "full points",
        """
class Near(float):
    __sub__ = __rsub__ = __abs__ = lambda self, *other: self
    __lt__ = __le__ = __eq__ = lambda self, other: True
def expected_score_std(d_k, scaled):
    return Near(7)
""",
        "no error",
        test="assert abs(expected_score_std(16, False) - 4.0) < 1e-9",
        exercise="expected_score_std",
    ),
    Attack(
        "A10",
        "oracle",
        "The function reads the running test's source and returns what it expects.",
        "full points",
        """
import sys
def softmax(scores):
    frame = sys._getframe()
    while frame:
        for name in ("expected", "wanted", "desired", "target"):
            if name in frame.f_locals:
                return frame.f_locals[name]
        frame = frame.f_back
    return eval(In[-1].split("), ")[-1].rstrip(")"))
""",
        "no error",
    ),
    Attack(
        "A17",
        "odd score",
        "A test that ends in a number of points is made to end in NaN.",
        "full points",
        "def softmax(scores):\n    return float('nan')",
        "value",
        test=SCORES,
    ),
    Attack(
        "A17",
        "negative score",
        "A test that ends in a number of points is made to end in a negative one.",
        "full points",
        "def softmax(scores):\n    return -1.0",
        "value",
        test=SCORES,
    ),
    Attack(
        "A17",
        "score in words",
        "A test that ends in a number of points is made to end in an object that prints as text.",
        "full points",
        "class All:\n    __repr__ = lambda self: 'all of them'\ndef softmax(scores):\n    return All()",
        "value",
        test=SCORES,
    ),
    Attack(
        "A18",
        "more than all",
        "A test that ends in a number of points is made to end in more than there are.",
        "the run crashes half-way, some grades saved",
        "def softmax(scores):\n    return 1000",
        "value",
        test=SCORES,
    ),
    Attack(
        "A38",
        "pickle",
        "The function returns an object that runs code where it is unpickled.",
        "nothing is unpickled; other graders do",
        """
import pickle
import autograder.grading.remote as remote
class Charge:
    def __reduce__(self):
        code = "import builtins, pathlib\\nbuiltins.fired = True\\npathlib.Path.home().joinpath('fired').touch()"
        return exec, (code,)
def softmax(scores):
    return Charge()
remote.encode = pickle.dumps
""",
        "no error",
        test="import builtins\npickle.loads(pickle.dumps(softmax(0)))\nassert builtins.fired",
    ),
    Attack(
        "A40",
        "learned by heart",
        "The function knows the answers to the inputs that it has seen, and nothing else.",
        "full points where inputs are fixed",
        """
from autograder.exercise import find_exercise
exercise = find_exercise("softmax")
drawn = [exercise.program(case, SEEN_SEED).steps[0].args[0] for case in exercise.cases]
answers = {scores.tobytes(): exercise.reference(scores) for scores in drawn}
def softmax(scores):
    return answers.get(scores.tobytes(), scores)
""",
        "seen seed",
    ),
]
