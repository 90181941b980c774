"""Recordings of one call have blinks and labels alike, so that one table holds them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gazediffusion as gd
from gazediffusion.data.interop import alike
from gazediffusion.data.writers import write_into
from tests.data.interop.made import study


def test_a_recording_among_marked_ones_has_empty_marks(tmp_path: Path) -> None:
    marked, other = list(study())[:2]
    plain = replace(other, is_blink={}, labels=None)
    first, second = alike([marked, plain])
    assert first.labels is marked.labels
    assert second.labels is not None
    assert not second.labels.any()
    assert {eye: mask.any() for eye, mask in second.is_blink.items()} == {
        "left": False, "right": False,
    }  # fmt: skip
    write_into(tmp_path / "one", ((one, ()) for one in (first, second)), "parquet")
    assert alike([plain])[0].labels is None


def test_both_ways_back_use_it() -> None:
    marked, other = list(study())[:2]
    some = gd.Recordings.of([marked, replace(other, is_blink={}, labels=None)])
    for again in (gd.from_pymovements(some.to_pymovements()), gd.from_mne(some.to_mne())):
        assert [set(one.is_blink) for one in again] == [{"left", "right"}] * 2
        assert all(one.labels is not None for one in again)
        assert len({one.path for one in again}) == 1
