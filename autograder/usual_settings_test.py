"""A check gives the same verdict whatever a notebook's earlier cells have set."""

import numpy as np
import pytest
import torch

from autograder import evaluate
from autograder.usual_settings import usual_settings
from course_lib.multi_head import MultiHeadAttention


@pytest.fixture(params=["gradients off", "float64", "float errors raise", "meta device"])
def unusual_session(request):
    """Change one setting as a notebook cell would."""
    errors = np.geterr()
    if request.param == "gradients off":
        torch.set_grad_enabled(False)
    elif request.param == "float64":
        torch.set_default_dtype(torch.float64)
    elif request.param == "float errors raise":
        np.seterr(all="raise")
    else:
        torch.set_default_device("meta")
    yield
    torch.set_default_device(None)
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    np.seterr(**errors)


@pytest.mark.usefixtures("unusual_session")
def test_settings_are_usual_inside():
    with usual_settings():
        made = torch.ones(2)
        assert torch.is_grad_enabled()
        assert np.geterr()["under"] == "ignore"
    assert (made.dtype, made.device.type) == (torch.float32, "cpu")


@pytest.mark.usefixtures("unusual_session")
def test_a_right_layer_passes_in_an_unusual_session():
    verdict = evaluate(MultiHeadAttention, hidden=True, seed=3)
    assert verdict.passed, verdict.message


def test_settings_that_the_code_changes_are_set_back():
    with usual_settings():
        torch.set_default_dtype(torch.float64)
        np.seterr(all="raise")
    assert torch.get_default_dtype() is torch.float32
    assert np.geterr()["under"] == "ignore"
