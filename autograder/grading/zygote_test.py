"""What every notebook imports is loaded once, before the first of them starts."""

import subprocess
import sys
from pathlib import Path

from autograder.grading.pool import KernelPool
from autograder.grading.zygote import BOUND_TO_A_SHELL

LOADED = "from autograder.grading.zygote import preload; preload()"
NAMES = "import sys; print(*sys.modules)"
USUAL = (
    "import numpy, torch, matplotlib.pyplot as plt; from course_lib import plots",
    "plt.plot([1, 2]); plt.show(); plots.show(plots.attention_map(numpy.eye(3)))",
    "numpy.testing.assert_allclose(1, 1); torch.testing.assert_close(torch.ones(1), torch.ones(1)); 1 / 0",
)


def test_a_usual_notebook_finds_all_that_it_imports_loaded(warm_pool: KernelPool, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-c", f"{LOADED}; {NAMES}"]
    before = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert "torch._dynamo" in before
    assert "debugpy" not in before
    with warm_pool.kernel(tmp_path) as kernel:
        statuses = [kernel.execute(source).status for source in USUAL]
        after = kernel.execute(NAMES).outputs[0]["text"].split()
    assert statuses == ["ok", "ok", "error"]
    late = {name for name in set(after) - set(before) if not name.startswith("encodings.")}
    assert late <= set(BOUND_TO_A_SHELL), f"a name for LATE_LIBRARIES: {sorted(late)}"
