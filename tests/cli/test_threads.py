"""The command line lets threads spin briefly, unless the user has chosen otherwise."""

from __future__ import annotations

import os

import pytest

from gazediffusion import cli


@pytest.mark.parametrize(
    ("command", "given", "spin"),
    [
        ("info", {}, "2000"),
        ("info", {"GOMP_SPINCOUNT": "7"}, "7"),
        ("info", {"OMP_WAIT_POLICY": "ACTIVE"}, None),
        ("serve", {}, None),  # its threads sleep at once
        ("serve", {"GOMP_SPINCOUNT": "7"}, "7"),
    ],
)
def test_threads_spin_briefly_unless_the_user_says_otherwise(
    command: str, given: dict[str, str], spin: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "")  # so that what is set here is taken back
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    cli.app([command, "--help"], standalone_mode=False)
    assert os.environ.get("GOMP_SPINCOUNT") == spin
