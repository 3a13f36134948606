"""Traffic against a walk over the loops of the algorithm, read by read and write by write."""

import pytest

from course_lib.efficient.traffic import document_flops, standard_traffic, tiled_traffic


def walked(length, d_head, fast_memory):
    """Walk through the two loops and add up the size of everything that is loaded or stored."""
    columns = fast_memory // (4 * d_head)
    rows = min(columns, d_head)
    moved = 0
    for left in range(0, length, columns):
        moved += 2 * (min(left + columns, length) - left) * d_head  # keys and values
        for top in range(0, length, rows):
            here = min(top + rows, length) - top
            moved += here * d_head  # queries
            moved += 2 * here * (d_head + 2)  # output, largest score and sum: in and out
    return moved


@pytest.mark.parametrize(
    ("length", "d_head", "fast_memory"), [(64, 8, 256), (100, 8, 500), (17, 4, 16), (30, 16, 9999)]
)
def test_traffic_equals_a_walk_through_the_loops(length, d_head, fast_memory):
    assert tiled_traffic(length, d_head, fast_memory) == walked(length, d_head, fast_memory)


def test_tiles_pay_only_when_the_fast_memory_is_large_against_the_width():
    ratios = [standard_traffic(1024, 64) / tiled_traffic(1024, 64, size) for size in (4096, 16384, 65536)]
    assert [round(ratio, 2) for ratio in ratios] == [0.34, 1.33, 4.77]


def test_the_documents_formula_is_far_below_any_traffic():
    assert document_flops(1024, 64, 65536) == 1024
    assert document_flops(1024, 64, 65536) < tiled_traffic(1024, 64, 65536) / 100


def test_a_memory_without_room_for_one_token_is_refused():
    with pytest.raises(ValueError, match="`fast_memory` must hold at least 32 numbers for width 8; got 31"):
        tiled_traffic(10, 8, 31)
