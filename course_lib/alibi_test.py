"""ALiBi against published slopes and a plain triple loop."""

import pytest
import torch

from course_lib.alibi import alibi_bias, alibi_slopes


def test_slopes_of_eight_heads_halve_from_one_half():
    assert alibi_slopes(8).tolist() == [2.0**-power for power in range(1, 9)]


def test_slopes_of_sixteen_heads_start_at_the_root_of_one_half():
    torch.testing.assert_close(alibi_slopes(16), torch.tensor([2.0 ** (-k / 2) for k in range(1, 17)]))


@pytest.mark.parametrize(
    ("heads", "published"),
    [
        (1, [1 / 256]),
        (3, [1 / 16, 1 / 256, 1 / 4]),
        (6, [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8]),
        (12, [*(2.0**-k for k in range(1, 9)), 2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]),
    ],
)
def test_other_counts_are_filled_up_from_the_next_power_of_two(heads, published):
    torch.testing.assert_close(alibi_slopes(heads), torch.tensor(published))


@pytest.mark.parametrize("heads", range(1, 40))
def test_no_two_heads_share_a_slope(heads):
    slopes = alibi_slopes(heads)
    assert slopes.dtype == torch.float32
    assert len(set(slopes.tolist())) == heads
    assert ((slopes > 0) & (slopes < 1)).all()


@pytest.mark.parametrize(("n_q", "n_k"), [(5, 5), (2, 5), (1, 4), (4, 2)])
def test_bias_falls_with_the_distance_to_the_aligned_query(n_q, n_k):
    slopes = alibi_slopes(3)
    expected = [
        [[-slopes[head].item() * abs(i + n_k - n_q - j) for j in range(n_k)] for i in range(n_q)] for head in range(3)
    ]
    torch.testing.assert_close(alibi_bias(3, n_q, n_k), torch.tensor(expected))


def test_a_cached_query_has_the_last_row_of_the_full_bias():
    torch.testing.assert_close(alibi_bias(4, 1, 9), alibi_bias(4, 9, 9)[:, -1:])


def test_the_row_form_gives_the_same_causal_weights():
    scores = torch.randn(2, 6, 6, generator=torch.Generator().manual_seed(0))
    future = torch.ones(6, 6, dtype=torch.bool).triu(1)
    row_form = alibi_slopes(2)[:, None, None] * torch.arange(6)
    weights, other = (
        torch.softmax((scores + bias).masked_fill(future, -torch.inf), dim=-1)
        for bias in (alibi_bias(2, 6, 6), row_form)
    )
    torch.testing.assert_close(weights, other)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: alibi_slopes(0), "`num_heads` must be at least 1, got 0"),
        (lambda: alibi_bias(2, 0, 3), "`n_q` must be at least 1, got 0"),
        (lambda: alibi_bias(2, 3, 0), "`n_k` must be at least 1, got 0"),
    ],
)
def test_a_bad_argument_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
