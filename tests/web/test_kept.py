"""Kept comparisons: found by their ids, bounded in time, number and bytes."""

from __future__ import annotations

import pytest

from gazediffusion.web.state import KeptComparisons


def test_a_comparison_is_found_by_its_id_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    comparisons = KeptComparisons()
    name = comparisons.add(b"one")
    assert name is not None
    assert comparisons.find(name) == b"one"
    assert comparisons.find("another") is None
    monkeypatch.setattr(KeptComparisons, "max_age_s", -1.0)
    assert comparisons.find(name) is None


def test_the_oldest_leave_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeptComparisons, "max_number", 3)
    monkeypatch.setattr(KeptComparisons, "max_bytes", 10)
    comparisons = KeptComparisons()
    names = [str(comparisons.add(b"1234")) for _ in range(4)]
    found = [comparisons.find(name) is not None for name in names]
    assert found == [False, False, True, True], "ten bytes hold two of them"
    assert comparisons.add(b"x" * 11) is None
    names = [str(comparisons.add(b"1")) for _ in range(4)]
    assert [comparisons.find(name) is not None for name in names] == [False, True, True, True]
