"""Attacks on the test's own process: the shell, the kernel, the comparison and the modules that a test uses."""

from autograder.grading.attacks.attack import ASSERTS, CHECKS, Attack

WRONG = "import numpy as np\ndef softmax(scores):\n    return scores * 0\n"

PATCHING = [
    Attack(
        "A1",
        "emptied cells",
        "An input transformer makes every later cell empty, so that no test runs.",
        "full points",
        "get_ipython().input_transformers_cleanup.append(lambda lines: [])",
        "no error",
    ),
    Attack(
        "A2",
        "no assert",
        "A syntax-tree transformer drops every `assert`.",
        "two thirds of the points",
        """
import ast
class Drop(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.copy_location(ast.Pass(), node)
get_ipython().ast_transformers.append(Drop())
""",
        "no error",
    ),
    Attack(
        "A3",
        "pass for all",
        "A late input transformer turns every cell into `pass`.",
        "full points",
        "get_ipython().input_transformers_post.append(lambda lines: ['pass\\n'])",
        "no error",
    ),
    Attack(
        "A4",
        "patched shell",
        "The shell's class is changed so that it runs `pass` for whatever it is given.",
        "full points",
        """
from IPython.core.interactiveshell import InteractiveShell
honest = InteractiveShell.run_cell_async
async def run(self, raw_cell, *arguments, transformed_cell=None, **options):
    return await honest(self, "pass", *arguments, transformed_cell="pass", **options)
InteractiveShell.run_cell_async = run
""",
        "no error",
    ),
    Attack(
        "A5",
        "patched kernel",
        "The kernel's handler is replaced by one that answers `ok` without running anything.",
        "full points",
        """
async def fine(code, silent, *arguments, **options):
    return {"status": "ok", "execution_count": 1, "payload": [], "user_expressions": {}}
get_ipython().kernel.do_execute = fine
""",
        "no error",
    ),
    Attack(
        "A6",
        "forged value",
        "The function publishes the points as the test cell's value before it fails.",
        "full points of these cells",
        """
kernel = get_ipython().kernel
def softmax(scores):
    value = {"execution_count": 1, "data": {"text/plain": "4"}, "metadata": {}}
    kernel.send_response(kernel.iopub_socket, "execute_result", value)
    raise ValueError("too late")
""",
        "value",
    ),
    Attack(
        "A7",
        "silent errors",
        "Tracebacks are no longer shown, so that a failing test looks like a passing one.",
        "0, nbgrader notices",
        "get_ipython().showtraceback = get_ipython()._showtraceback = lambda *arguments, **options: None",
        "no error",
    ),
    Attack(
        "A29",
        "patched comparison",
        "The comparisons of NumPy, PyTorch and Python agree to everything.",
        "full points",
        WRONG
        + """
import math, torch
yes = lambda *arguments, **options: True
np.allclose = np.isclose = np.array_equal = torch.allclose = torch.equal = math.isclose = yes
np.testing.assert_allclose = torch.testing.assert_close = lambda *arguments, **options: None
""",
        "no error",
    ),
    Attack(
        "A29",
        "shadowed library",
        "A file named like the checking library lies beside the notebook and is imported in its place.",
        "full points: files beside the notebook are copied along",
        WRONG
        + """
import sys
from pathlib import Path
Path("autograder.py").write_text("check = lambda *arguments, **options: None\\n")
for name in [name for name in sys.modules if name.split(".")[0] == "autograder"]:
    del sys.modules[name]
sys.path.insert(0, "")
""",
        "no error",
        test=CHECKS,
    ),
    Attack(
        "A30",
        "patched helper",
        "The modules that a check uses are changed so that every verdict is a pass.",
        "full points",
        WRONG
        + """
import autograder, autograder.checking, autograder.compare, autograder.judge, autograder.grading.remote as remote
autograder.check = autograder.checking.check = lambda *arguments, **options: None
autograder.compare.difference = autograder.judge.difference = lambda *arguments, **options: None
def passed(exercise, *arguments, **options):
    return autograder.judge.Verdict(True, "softmax", None, None, "passed", 0)
autograder.judge.judge = remote.judge = passed
remote.answer = lambda request, namespace: {"passed": True, "verdict": {"passed": True}, "run": True}
""",
        "no error",
        test=CHECKS,
    ),
    Attack(
        "A31",
        "honest at home",
        "The notebook looks whether it is being graded, and cheats only then.",
        "full points: a variable tells",
        """
import os
if os.environ.get("NBGRADER_EXECUTION") == "autograde":
    get_ipython().input_transformers_cleanup.append(lambda lines: [])
""",
        "no error",
    ),
    Attack(
        "A41",
        "race",
        "A thread changes the comparison over and over, so that it is honest whenever somebody looks.",
        "full points",
        WRONG
        + """
import threading, time
def swap():
    for _ in range(60_000):
        np.allclose = np.testing.assert_allclose = lambda *arguments, **options: True
        time.sleep(0.001)
threading.Thread(target=swap, daemon=True).start()
time.sleep(0.05)
""",
        "no error",
        test=ASSERTS,
    ),
]
