"""The settings of NumPy and PyTorch under which every program runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import torch


@contextlib.contextmanager
def usual_settings() -> Iterator[None]:
    """Set what a session may have changed: gradients, float errors, the default dtype and device."""
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    elsewhere = device.type != "cpu"
    torch.set_default_dtype(torch.float32)
    try:
        with (
            np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"),
            torch.enable_grad(),
            torch.device("cpu") if elsewhere else contextlib.nullcontext(),
        ):
            yield
    finally:
        torch.set_default_dtype(dtype)
