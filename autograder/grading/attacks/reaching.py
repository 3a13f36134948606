"""Attacks on what lies outside the notebook: grades, sources, other students, the grader, and the network."""

from autograder.grading.attacks.attack import Attack

REACHING = [
    Attack(
        "A11",
        "hidden tests",
        "The hidden tests are read out of the gradebook.",
        "their source is printed",
        """
import sqlite3
print(*sqlite3.connect(f"file:{COURSE}/gradebook.db?mode=ro", uri=True).execute("SELECT source FROM source_cell"))
""",
        "harm",
        "secret read",
    ),
    Attack(
        "A12",
        "source folder",
        "The solution is read from the instructor's notebook and run.",
        "full points of that cell",
        """
import json
for cell in json.load(open(f"{COURSE}/build/source/01_attention/01_attention.ipynb"))["cells"]:
    print(cell["source"])
    exec(cell["source"])
""",
        "harm",
        "secret read",
    ),
    Attack(
        "A13",
        "gradebook",
        "Every grade is set to 99 in the gradebook's file.",
        "every student's grade is changed",
        """
import sqlite3
with sqlite3.connect(f"{COURSE}/gradebook.db") as book:
    book.execute("UPDATE grade SET manual_score = 99")
""",
        "harm",
        "gradebook",
    ),
    Attack(
        "A14",
        "startup file",
        "A file that IPython runs at its start is left in the grader's home for the next student's kernel.",
        "the next student's wrong answers get full points",
        """
from pathlib import Path
cheat = "get_ipython().input_transformers_cleanup.append(lambda lines: [])"
for home in (Path(GRADERS_HOME), Path.home()):
    try:
        folder = home / ".ipython" / "profile_default" / "startup"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "00-all-pass.py").write_text(cheat)
    except OSError:
        pass
""",
        "harm",
        "home",
    ),
    Attack(
        "A15",
        "configuration",
        "Code is added to the course's configuration, which runs as the instructor.",
        "the file can be written",
        'open(f"{COURSE}/nbgrader_config.py", "a").write("import os\\n")',
        "harm",
        "others' files",
    ),
    Attack(
        "A16",
        "others' work",
        "Other students' submitted and graded notebooks are overwritten.",
        "they can be written",
        """
from pathlib import Path
for step in ("submitted", "autograded"):
    Path(f"{COURSE}/{step}/other/01_attention/01_attention.ipynb").write_text("{}")
""",
        "harm",
        "others' files",
    ),
    Attack(
        "A26",
        "signal to the grader",
        "The grading process is killed.",
        "the run dies, and later runs skip the half-made submission",
        "import os, signal\nos.kill(GRADER, signal.SIGKILL)",
        "harm",
        "grader",
    ),
    Attack(
        "A26",
        "spying on the grader",
        "What the grading process holds in its environment is read, as a debugger would.",
        "allowed, as it runs as the same user",
        'print(open(f"/proc/{GRADER}/environ").read())',
        "harm",
        "secret read",
    ),
    Attack(
        "A26",
        "own guardian",
        "The process above the notebook's is killed, which watches its limits.",
        "nbgrader itself is that process, and dies",
        "import os, signal\nfor _ in range(3):\n    os.kill(os.getppid(), signal.SIGKILL)\nraise SystemError",
        "stopped",
    ),
    Attack(
        "A27",
        "neighbor's kernel",
        "The connection files of kernels that run at the same time are read, to run code in them.",
        "readable, where several run at a time",
        """
from pathlib import Path
own = get_ipython().kernel.session.key.decode()
for file in Path(POOL).glob("*/kernel.json"):
    if own not in file.read_text():
        print(file.read_text())
""",
        "harm",
        "secret read",
    ),
    Attack(
        "A28",
        "network",
        "A service is asked for answers, and told the tests.",
        "connected",
        """
import socket
with socket.create_connection(("127.0.0.1", PORT), timeout=5) as line:
    line.sendall(b"the tests")
    print(line.recv(100))
""",
        "harm",
        "connection",
    ),
]
