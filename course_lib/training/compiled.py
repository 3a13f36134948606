"""Let PyTorch's compiler fuse a function, where a compiler is there, and count the kernels that it made."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.settings import quick

COMPILERS = ("c++", "g++", "clang++", "cl")
# One process, no compiled headers, no search for vector instructions: a small function is ready in a third of the time.
FAST_TO_COMPILE = {"compile_threads": 1, "cpp_cache_precompile_headers": False, "cpp.simdlen": 1}


@dataclass(frozen=True)
class Fused:
    """What the compiler made: the function's result, and the number of kernels behind it."""

    result: Tensor
    kernels: int


class _Operations(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor) and not func.is_view:
            self.names.append(func.overloadpacket.__name__)
        return result


def operations(function: Callable[..., Tensor], *args: Tensor) -> list[str]:
    """List the operations that PyTorch runs one by one for a function: each reads and writes whole tensors."""
    with torch.no_grad(), _Operations() as seen:
        function(*args)
    return seen.names


def why_not_compiled() -> str | None:
    """Say in one sentence why nothing is compiled here, or give None."""
    if quick():
        return "a quick run does not wait for a compiler"
    if not any(map(shutil.which, COMPILERS)):
        return "there is no C++ compiler on this machine"
    return None


def fused(function: Callable[..., Tensor], *args: Tensor) -> Fused | None:
    """Compile a function and run it once; where that cannot be done print one sentence and give None."""
    reason = why_not_compiled()
    if reason is None:
        try:
            return _compile(function, *args)
        except Exception as error:  # a compiler that is there can still fail in many ways
            reason = f"the compiler failed ({type(error).__name__})"
    print(f"Not compiled: {reason}. The text goes on without this measurement.")
    return None


def _compile(function: Callable[..., Tensor], *args: Tensor) -> Fused:
    from torch._inductor import config, metrics  # slow to load, so only where it is used

    torch._dynamo.reset()
    metrics.reset()
    with torch.no_grad(), config.patch(FAST_TO_COMPILE):
        result = torch.compile(function)(*args)
    return Fused(result, metrics.generated_kernel_count)
