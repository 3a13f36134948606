"""The test bench: the encodings differ where they should, and in nothing else."""

import pytest
import torch

from course_lib.models.lookback import ENCODINGS, LENGTHS, TRAINED_LENGTH, Lookback, committed_lengths
from course_lib.position_tasks import accuracy, lookback_batch
from course_lib.training.loop import forever, train

every_encoding = pytest.mark.parametrize("encoding", ENCODINGS)


@pytest.fixture(autouse=True)
def full_length(monkeypatch):
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("COURSE_QUICK", raising=False)


def model(encoding, seed=0, **sizes):
    torch.manual_seed(seed)
    return Lookback(encoding, **sizes)


def texts(length, batch=2):
    return lookback_batch(batch, length, torch.Generator().manual_seed(0))[0]


@every_encoding
def test_no_place_sees_what_comes_after_it(encoding):
    tokens = texts(10)
    changed = tokens.clone()
    changed[:, 6:] = (changed[:, 6:] + 1) % 16
    before, after = model(encoding)(tokens), model(encoding)(changed)
    torch.testing.assert_close(before[:, :6], after[:, :6])
    assert not torch.allclose(before[:, 6:], after[:, 6:])


@pytest.mark.parametrize("encoding", [name for name in ENCODINGS if name not in ("none", "T5 buckets")])
def test_with_an_encoding_the_order_of_the_past_matters_and_without_it_does_not(encoding):
    tokens = texts(10)
    shuffled = tokens[:, [3, 0, 5, 1, 4, 2, 6, 7, 8, 9]]
    last = slice(-1, None)
    plain = model("none")
    torch.testing.assert_close(plain(tokens)[:, last], plain(shuffled)[:, last])
    assert not torch.allclose(model(encoding)(tokens)[:, last], model(encoding)(shuffled)[:, last])


def test_buckets_begin_as_no_encoding_and_learn_one_number_per_head_and_bucket():
    bench = model("T5 buckets")
    assert bench.encoding.table.weight.shape == (32, 4)
    plain = model("none")
    plain.load_state_dict({name: value for name, value in bench.state_dict().items() if "table" not in name})
    torch.testing.assert_close(bench(texts(10)), plain(texts(10)))


def test_only_rotary_looks_at_positions_and_only_at_their_differences():
    tokens = texts(10)
    for encoding in ENCODINGS:
        bench = model(encoding)
        torch.testing.assert_close(bench(tokens), bench(tokens, torch.arange(10) + 7), atol=1e-4, rtol=1e-4)
    rotary = model("rotary")
    assert not torch.allclose(rotary(tokens), rotary(tokens, torch.arange(10) * 2))


@every_encoding
def test_every_encoding_takes_texts_of_every_length(encoding):
    for length in LENGTHS:
        assert model(encoding)(texts(length)).shape == (2, length, 32)


def test_an_unknown_encoding_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match=r"must be one of none, sinusoids.* got 'rope'"):
        Lookback("rope")


def test_a_small_rotary_model_learns_the_task():
    bench = model("rotary", d_model=32)
    generator = torch.Generator().manual_seed(0)
    history = train(bench, forever(lambda: lookback_batch(32, 12, generator)), 60, learning_rate=0.01)
    assert history[-1] < history[0] / 2
    assert accuracy(bench, lookback_batch, 12) > 0.5


def test_the_committed_runs_hold_three_seeds_of_every_encoding():
    runs = committed_lengths()
    assert {run["encoding"] for run in runs} == set(ENCODINGS)
    for run in runs:
        same = [other for other in runs if all(other[key] == run[key] for key in ("encoding", "layers", "steps"))]
        assert sorted(other["seed"] for other in same) == [0, 1, 2]
        assert set(run["accuracy"]) == {str(length) for length in LENGTHS}
        assert all(0 <= share <= 1 for share in run["accuracy"].values())
    assert LENGTHS[0] == TRAINED_LENGTH
