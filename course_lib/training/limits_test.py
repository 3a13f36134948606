"""The limit is where exp really overflows in each dtype."""

import pytest
import torch

from course_lib.training.limits import largest_safe_score

# A step below and above that every dtype can tell apart from the limit.
STEPS = {torch.float16: 0.02, torch.bfloat16: 1.0, torch.float32: 1e-3, torch.float64: 1e-9}


@pytest.mark.parametrize("dtype", STEPS, ids=str)
def test_exp_is_finite_just_below_and_infinite_just_above(dtype):
    limit, step = largest_safe_score(dtype), STEPS[dtype]
    below, above = torch.tensor([limit - step, limit + step], dtype=torch.float64).to(dtype).exp()
    assert torch.isfinite(below)
    assert torch.isinf(above)


@pytest.mark.parametrize("wrong", [torch.int64, torch.bool, torch.complex64], ids=str)
def test_what_is_no_floating_dtype_is_refused(wrong):
    with pytest.raises(TypeError, match="`dtype` must be a floating dtype"):
        largest_safe_score(wrong)
