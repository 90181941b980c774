"""The examples in docstrings run and give what they show."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import warnings

import pytest

import gazediffusion.data

MODULES = [
    one.name for one in pkgutil.walk_packages(gazediffusion.data.__path__, "gazediffusion.data.")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # packages of others warn when they are imported
        module = importlib.import_module(name)
        found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found.failed == 0


def test_every_conversion_of_windows_has_an_example() -> None:
    from gazediffusion.data.windows import Windows

    public = ["save", "load", "from_array", *(name for name in dir(Windows) if name[:3] == "to_")]
    assert len(public) == 8
    for name in public:
        assert ">>>" in (getattr(Windows, name).__doc__ or "")
