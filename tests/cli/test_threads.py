"""The command line lets threads spin briefly, unless the user has chosen otherwise."""

from __future__ import annotations

import os

import pytest

from gazediffusion import cli


@pytest.mark.parametrize(
    ("given", "spin"),
    [({}, "2000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "ACTIVE"}, None)],
)
def test_threads_spin_briefly_unless_the_user_says_otherwise(
    given: dict[str, str], spin: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str | None] = []
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cli, "app", lambda: seen.append(os.environ.get("GOMP_SPINCOUNT")))
    cli.main()
    assert seen == [spin]
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
