import gc

import pytest
import torch

from course_lib.allocation import AllocationCounter
from course_lib.memory import peak_bytes

FLOAT = 4  # bytes
INDEX = 8


def ones(*shape, device="cpu"):
    return torch.ones(shape, device=device)


@pytest.fixture(params=["cpu", "meta"])
def device(request):
    return request.param


def test_what_is_released_before_the_next_allocation_does_not_add_up(device):
    def released():
        for _ in range(3):
            x = ones(100, device=device)
            del x

    def kept():
        return [ones(100, device=device) for _ in range(3)]

    assert peak_bytes(released).bytes == FLOAT * 100
    assert peak_bytes(released).tensors_allocated == 3
    assert peak_bytes(kept).bytes == 3 * FLOAT * 100


def test_a_name_bound_again_holds_old_and_new_for_a_moment(device):
    def rebound():
        x = ones(100, device=device)
        for _ in range(5):
            x = x + 1
        return x

    assert peak_bytes(rebound).bytes == 2 * FLOAT * 100


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.view(20, 5),
        lambda x: x.t(),
        lambda x: x[2:5, ::2],
        lambda x: x.unsqueeze(0).expand(1000, 10, 10),
        lambda x: x.unfold(0, 3, 1),
        lambda x: x.chunk(2),
        lambda x: x.detach(),
        lambda x: x.contiguous(),
    ],
)
def test_a_view_of_an_input_allocates_nothing(device, view):
    peak = peak_bytes(view, ones(10, 10, device=device))
    assert (peak.bytes, peak.tensors_allocated) == (0, 0)
    assert peak.text() == "no tensor allocated"


def test_a_view_keeps_the_whole_memory_alive_and_counts_once(device):
    with AllocationCounter() as counter:
        one_number = ones(100, device=device)[3:4]
        assert counter.alive == FLOAT * 100
        del one_number
    assert counter.alive == 0
    assert counter.shapes == [(100,)]


@pytest.mark.parametrize("in_place", [torch.relu_, lambda x: x.add_(1), lambda x: x.zero_()])
def test_an_in_place_operation_allocates_nothing(device, in_place):
    assert peak_bytes(in_place, ones(10, device=device)).bytes == 0


def test_inputs_are_not_counted_even_when_the_call_lets_them_go(device):
    holder = [ones(1000, device=device)]
    assert peak_bytes(lambda: holder.pop() + 1).bytes == FLOAT * 1000


def test_bytes_follow_the_dtype(device):
    for dtype, itemsize in ((torch.float64, 8), (torch.float16, 2), (torch.bool, 1)):
        assert peak_bytes(torch.zeros, 10, dtype=dtype, device=device).bytes == 10 * itemsize


def test_a_tensor_made_from_python_numbers_counts():
    assert peak_bytes(lambda: torch.tensor([1.0, 2.0, 3.0])).bytes == 3 * FLOAT


def test_an_output_argument_that_grows_counts_its_growth():
    def grow():
        out = torch.empty(0)
        torch.add(ones(5), 1, out=out)
        return out

    assert peak_bytes(grow).bytes == 2 * 5 * FLOAT


def test_a_tensor_that_is_resized_in_place_counts_its_growth_alone(device):
    with AllocationCounter() as counter:
        x = ones(2, device=device)
        x.resize_(5)
        assert counter.alive == 5 * FLOAT
    del x
    assert counter.alive == 0


def test_a_sparse_tensor_counts_its_indices_and_values():
    indices, values = torch.tensor([[0, 1], [1, 0]]), ones(2)
    sparse = torch.sparse_coo_tensor(indices, values, (9, 9), check_invariants=True)
    assert peak_bytes(lambda: sparse.clone()).bytes == 2 * 2 * INDEX + 2 * FLOAT


def test_memory_freed_after_the_block_is_still_followed(device):
    with AllocationCounter() as counter:
        x = ones(10, device=device)
    assert (counter.alive, counter.peak) == (10 * FLOAT, 10 * FLOAT)
    del x
    assert (counter.alive, counter.peak) == (0, 10 * FLOAT)


def test_a_cycle_is_alive_until_the_collector_runs(device):
    with AllocationCounter() as counter:
        cycle = [ones(10, device=device)]
        cycle.append(cycle)
        del cycle
        assert counter.alive == 10 * FLOAT
        gc.collect()
    assert counter.alive == 0
