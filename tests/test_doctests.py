"""The examples in docstrings run and give what they show."""

from __future__ import annotations

import doctest
import importlib
import warnings
from pathlib import Path

import pytest

import gazediffusion

SOURCE = Path(gazediffusion.__file__).parent
MODULES = [
    ".".join(["gazediffusion", *path.relative_to(SOURCE).with_suffix("").parts])
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>>" in path.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # packages of others warn when they are imported
        module = importlib.import_module(name.removesuffix(".__init__"))
        found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 0
    assert found.failed == 0


def test_every_conversion_of_windows_has_an_example() -> None:
    from gazediffusion.data.windows import Windows

    public = ["save", "load", "from_array", *(name for name in dir(Windows) if name[:3] == "to_")]
    assert len(public) == 11
    for name in public:
        assert ">>>" in (getattr(Windows, name).__doc__ or "")


def test_every_adapter_has_an_example() -> None:
    of_recordings = [name for name in dir(gazediffusion.Recordings) if name[:3] == "to_"]
    back = [name for name in gazediffusion.__all__ if name[:5] == "from_"]
    assert (len(of_recordings), len(back)) == (6, 5)
    for name in of_recordings:
        assert ">>>" in (getattr(gazediffusion.Recordings, name).__doc__ or "")
    for name in back:
        assert ">>>" in (getattr(gazediffusion, name).__doc__ or "")
