import math
import tracemalloc

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from course_lib.memory import (
    allocated_shapes,
    bytes_text,
    numpy_peak_bytes,
    peak_bytes,
    saved_bytes,
)

FLOAT = 4  # bytes
BATCH, HEADS, QUERIES, KEYS, D_HEAD = 2, 3, 50, 40, 8
PYTHON_OBJECTS = 20_000  # bytes that Python itself may allocate while a NumPy function runs


def ones(*shape, device="cpu"):
    return torch.ones(shape, device=device)


def naive_attention(query, key, value):
    return torch.softmax(query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]), -1) @ value


def attention_inputs(device="cpu", queries=QUERIES, keys=KEYS):
    return (
        ones(BATCH, HEADS, queries, D_HEAD, device=device),
        ones(BATCH, HEADS, keys, D_HEAD, device=device),
        ones(BATCH, HEADS, keys, D_HEAD, device=device),
    )


@pytest.fixture(params=["cpu", "meta"])
def device(request):
    return request.param


def test_a_chain_of_products_peaks_at_its_two_largest_neighbors(device):
    a, b, c = ones(60, 30, device=device), ones(30, 70, device=device), ones(70, 5, device=device)
    peak = peak_bytes(lambda: a @ b @ c)
    assert peak.bytes == FLOAT * (60 * 70 + 60 * 5)
    assert (peak.largest_tensor, peak.largest_shape) == (FLOAT * 60 * 70, (60, 70))
    assert peak.tensors_allocated == 2


def test_the_other_order_of_the_same_products_needs_less(device):
    a, b, c = ones(60, 30, device=device), ones(30, 70, device=device), ones(70, 5, device=device)
    assert peak_bytes(lambda: a @ (b @ c)).bytes == FLOAT * (30 * 5 + 60 * 5)


def test_naive_attention_holds_two_matrices_of_all_pairs(device):
    """The scaled scores and the unscaled, then the weights and the scaled: two at a time, and no third."""
    peak = peak_bytes(naive_attention, *attention_inputs(device))
    pairs = FLOAT * BATCH * HEADS * QUERIES * KEYS
    assert peak.bytes == 2 * pairs
    assert peak.largest_tensor == pairs
    assert peak.largest_shape[-2:] == (QUERIES, KEYS)


def test_the_fused_attention_of_the_cpu_allocates_its_output_and_one_number_per_query():
    inputs = attention_inputs()
    peak = peak_bytes(F.scaled_dot_product_attention, *inputs)
    assert peak.bytes == FLOAT * BATCH * HEADS * QUERIES * (D_HEAD + 1)
    assert peak.bytes < peak_bytes(naive_attention, *inputs).bytes


def test_meta_counts_what_fits_nowhere():
    million = 1_000_000
    peak = peak_bytes(naive_attention, *attention_inputs("meta", million, million))
    assert peak.largest_tensor == FLOAT * BATCH * HEADS * million**2
    assert peak.text().startswith("peak 43.7 TiB; largest of 4 tensors: 6 × 1000000 × 1000000, 21.8 TiB")


@pytest.mark.parametrize("backward", [False, True])
def test_meta_equals_cpu_for_a_layer_with_and_without_its_backward_pass(backward):
    def run(device):
        with torch.random.fork_rng():
            layer = torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, device=device)

        def step(x):
            loss = layer(x).sum()
            if backward:
                loss.backward()

        return peak_bytes(step, ones(2, 7, 16, device=device))

    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        on_cpu, on_meta = run("cpu"), run("meta")
    assert on_cpu == on_meta
    assert on_cpu.bytes > 0


def test_what_autograd_saves_stays_alive_until_the_backward_pass(device):
    x = ones(100, device=device).requires_grad_()

    def forward():
        y = x
        for _ in range(3):
            y = y.exp()
        return y

    assert peak_bytes(forward).bytes == 3 * FLOAT * 100
    with torch.no_grad():
        assert peak_bytes(forward).bytes == 2 * FLOAT * 100


def test_forward_and_backward_of_one_exponential_are_known_to_the_byte(device):
    """Alive at the end of backward: the result and its sum, the ones of the start, the gradient of x."""
    x = ones(100, device=device).requires_grad_()

    def step():
        x.exp().sum().backward()

    peak = peak_bytes(step)
    result, gradient, loss, start = FLOAT * 100, FLOAT * 100, FLOAT, FLOAT
    assert peak.bytes == result + gradient + loss + start


def test_allocated_shapes_lists_each_new_tensor_in_order(device):
    shapes = allocated_shapes(lambda x: (x @ x.t()).sum(0).relu_(), ones(6, 4, device=device))
    assert shapes == [(6, 6), (6,)]


def test_a_flat_tensor_does_not_hide_the_square_that_it_is_viewed_as(device):
    def hidden(x):
        return torch.outer(x, x).flatten().view(6, 6)

    def flat(x):
        return x.repeat(6).view(6, 6)

    x = ones(6, device=device)
    assert (6, 6) not in allocated_shapes(flat, x)
    assert (6, 6) in allocated_shapes(flat, x, views=True)
    assert (6, 6) in allocated_shapes(hidden, x)


def test_a_mask_that_is_only_broadcast_is_no_square(device):
    row = ones(1, 6, device=device)
    assert allocated_shapes(lambda: row.expand(6, 6).t(), views=True) == []


def test_the_rule_about_all_pairs_tells_naive_attention_from_a_window(device):
    def windowed(query, key, value, window=5):
        key = F.pad(key, (0, 0, window - 1, 0)).unfold(-2, window, 1)
        value = F.pad(value, (0, 0, window - 1, 0)).unfold(-2, window, 1)
        weights = torch.softmax((query.unsqueeze(-1) * key).sum(-2), -1)
        return (value * weights.unsqueeze(-2)).sum(-1)

    inputs = attention_inputs(device, queries=QUERIES, keys=QUERIES)
    square = (QUERIES, QUERIES)
    assert square in [shape[-2:] for shape in allocated_shapes(naive_attention, *inputs, views=True)]
    assert square not in [shape[-2:] for shape in allocated_shapes(windowed, *inputs, views=True)]


def test_saved_bytes_of_a_linear_layer_leave_out_input_and_weight(device):
    layer = torch.nn.Linear(4, 6, device=device)
    x = ones(10, 4, device=device).requires_grad_()
    assert saved_bytes(lambda: layer(x).exp()) == FLOAT * 10 * 6
    assert saved_bytes(lambda: layer(x).exp(), include_existing=True) == FLOAT * (10 * 6 + 10 * 4 + 4 * 6)


def test_memory_that_is_saved_twice_counts_once(device):
    x = ones(10, device=device).requires_grad_()

    def square_of_exponential():
        y = x.exp()  # saved by exp as its result and by the product as both factors
        return y * y

    assert saved_bytes(square_of_exponential) == FLOAT * 10


def test_a_graph_that_is_dropped_before_the_return_keeps_nothing(device):
    x = ones(10, device=device).requires_grad_()
    assert saved_bytes(lambda: x.exp().detach() + 1) == 0
    with torch.no_grad():
        assert saved_bytes(lambda: x.exp()) == 0


def test_checkpointing_saves_nothing_inside(device):
    x = ones(10, device=device).requires_grad_()

    def three(y):
        return y.exp().sin().exp()

    # Each exponential saves its result; the sine saves its input, the first of them again.
    assert saved_bytes(lambda: three(x)) == 2 * FLOAT * 10
    assert saved_bytes(lambda: checkpoint(three, x, use_reentrant=False)) == 0


def test_counting_saved_bytes_leaves_the_gradients_right():
    x = torch.linspace(0, 1, 10).requires_grad_()
    results = []
    saved_bytes(lambda: results.append(x.exp().sum()))
    results[0].backward()
    torch.testing.assert_close(x.grad, x.detach().exp())


def test_a_numpy_function_is_counted_within_pythons_own_objects():
    n = 400

    def two_squares():
        a = np.ones((n, n))
        return a + a

    peak = numpy_peak_bytes(two_squares)
    assert 2 * n * n * 8 <= peak <= 2 * n * n * 8 + PYTHON_OBJECTS
    assert not tracemalloc.is_tracing()


def test_numpy_inputs_and_earlier_peaks_do_not_count():
    tracemalloc.start()
    try:
        held = np.ones(100_000)
        np.ones(1_000_000)
        assert numpy_peak_bytes(lambda: held[::2].sum()) <= PYTHON_OBJECTS
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def test_a_numpy_function_that_fails_leaves_no_tracing_behind():
    with pytest.raises(ZeroDivisionError):
        numpy_peak_bytes(lambda: 1 / 0)
    assert not tracemalloc.is_tracing()


def test_a_numpy_function_is_not_reported_as_free():
    with pytest.raises(TypeError, match="count this function with numpy_peak_bytes"):
        peak_bytes(lambda x: x + 1, np.ones(10))


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (1023, "1,023 bytes"),
        (1536, "1.5 KiB"),
        (1000 * 1024, "1,000 KiB"),
        (2**40, "1 TiB"),
        (5000 * 2**40, "5,000 TiB"),
    ],
)
def test_bytes_are_written_in_the_unit_that_suits_them(count, text):
    assert bytes_text(count) == text
