"""Committed results can be read by name, and an unknown name is answered with those there are."""

import pytest

from course_lib import results


def test_what_is_saved_can_be_loaded(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "path_of", lambda name: tmp_path / f"{name}.json")
    results.save("one", {"rows": [1, 2.5, "three"]})
    assert results.load("one") == {"rows": [1, 2.5, "three"]}


def test_unknown_result_is_a_lookup_error_that_lists_the_known_ones():
    with pytest.raises(LookupError, match=r"There is no result 'nothing'; there are: .*norm_placement"):
        results.load("nothing")


def test_norm_placement_has_every_variant_at_every_depth_and_rate():
    result = results.load("norm_placement")
    rows = result["rows"]
    axes = [{row[axis] for row in rows} for axis in ("variant", "depth", "rate")]
    assert len(rows) == len(axes[0]) * len(axes[1]) * len(axes[2])
    for row in rows:
        assert len(row["accuracies"]) == len(row["last_losses"]) == len(result["seeds"])
        assert all(0 <= accuracy <= 1 for accuracy in row["accuracies"])
