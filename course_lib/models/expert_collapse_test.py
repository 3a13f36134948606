"""Without the balance loss one expert takes most tokens and others none; with it all share, and the error falls."""

import pytest
import torch

from course_lib.models.expert_collapse import FEATURES, KINDS, KindsTask, train_experts

HEAD_START, WEIGHT = 6.0, 0.5  # as in chapter 09
# What chapter 09's two trainings reach.
BUSIEST_ALONE, BUSIEST_SHARED = (0.5, 0.9), (0.125, 0.25)
ERROR_ALONE, ERROR_SHARED = (0.1, 0.4), (0.0, 0.03)
IDLE = 0.005  # a share that reads as 0 %
SAME = 1e-5  # float32


def test_every_token_is_mapped_by_the_map_of_its_kind():
    task = KindsTask()
    tokens, wanted = task.batch(torch.Generator().manual_seed(3))
    for token, target in zip(tokens[:40], wanted[:40], strict=True):
        mapped = [(token[:-1] - center) @ kind for center, kind in zip(task.centers, task.maps, strict=True)]
        assert min((m - target).abs().max().item() for m in mapped) < SAME


def test_the_last_feature_of_every_token_is_one():
    tokens, wanted = KindsTask().batch(torch.Generator().manual_seed(0))
    assert (tokens[:, -1] == 1).all()
    assert (tokens.shape[1], wanted.shape[1]) == (FEATURES + 1, FEATURES)


def test_a_run_records_loads_that_sum_to_one_and_repeats_itself():
    run, again = (train_experts(WEIGHT, HEAD_START, steps=60) for _ in range(2))
    assert run == again
    assert run.steps == [0, 50, 59]
    assert all(len(row) == KINDS and abs(sum(row) - 1) < SAME for row in run.loads)


def test_a_head_start_gives_the_first_expert_most_tokens_at_the_beginning():
    first, even = (train_experts(0.0, start, steps=1).loads[0] for start in (HEAD_START, 0.0))
    assert first[0] == max(first)
    assert first[0] > 2 * max(even)


@pytest.mark.slow
def test_without_the_balance_loss_experts_collapse():
    run = train_experts(0.0, HEAD_START)
    assert BUSIEST_ALONE[0] < max(run.loads[-1]) < BUSIEST_ALONE[1]
    assert sum(load < IDLE for load in run.loads[-1]) >= KINDS // 2
    assert ERROR_ALONE[0] < run.error < ERROR_ALONE[1]


@pytest.mark.slow
def test_with_the_balance_loss_all_experts_work_and_the_error_falls():
    run = train_experts(WEIGHT, HEAD_START)
    assert BUSIEST_SHARED[0] < max(run.loads[-1]) < BUSIEST_SHARED[1]
    assert min(run.loads[-1]) > IDLE
    assert ERROR_SHARED[0] < run.error < ERROR_SHARED[1]
