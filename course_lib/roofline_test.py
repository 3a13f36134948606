"""The roof rises with intensity up to the peak, and work counts what a product needs."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from course_lib.flop_counter import counted_flops
from course_lib.roofline import arithmetic_intensity, attainable_flops, product_work

positive = st.floats(1e-3, 1e15)


@given(positive, positive, positive)
def test_no_work_runs_faster_than_the_peak_or_than_its_bytes_arrive(intensity, peak, bandwidth):
    reached = attainable_flops(intensity, peak, bandwidth)
    assert reached <= peak
    assert reached <= intensity * bandwidth
    assert reached in (peak, intensity * bandwidth)


def test_the_roof_bends_where_bandwidth_and_peak_meet():
    peak, bandwidth = 312e12, 1.555e12  # an A100's, in half precision: NVIDIA's data sheet
    ridge = peak / bandwidth
    assert attainable_flops(ridge, peak, bandwidth) == pytest.approx(peak)
    assert attainable_flops(ridge / 2, peak, bandwidth) == pytest.approx(peak / 2)
    assert attainable_flops(ridge * 2, peak, bandwidth) == peak


def test_work_of_a_product_is_what_the_framework_counts_and_what_its_matrices_weigh():
    left, right = torch.ones(4, 3, 5), torch.ones(4, 5, 7)
    work = product_work(3, 5, 7, products=4)
    assert work.flops == counted_flops(torch.bmm, left, right)
    assert work.bytes_moved == left.nbytes + right.nbytes + torch.bmm(left, right).nbytes
    assert work.intensity == arithmetic_intensity(work.flops, work.bytes_moved)


def test_one_row_has_an_intensity_of_about_half_a_flop_per_byte_and_a_square_a_growing_one():
    assert product_work(1, 1000, 1000).intensity == pytest.approx(0.5, abs=0.01)
    assert product_work(600, 600, 600).intensity == pytest.approx(2 * 600 / 12)


def test_impossible_machines_and_work_are_refused():
    with pytest.raises(ValueError, match="`bytes_moved` must be above 0"):
        arithmetic_intensity(1, 0)
    with pytest.raises(ValueError, match="`flops` must not be negative"):
        arithmetic_intensity(-1, 1)
    with pytest.raises(ValueError, match="`bandwidth` must not be negative"):
        attainable_flops(1, 1, -1)
