"""The examples in docstrings run and give what they show; every public name has one."""

from __future__ import annotations

import ast
import doctest
import importlib
import warnings
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

import gazediffusion

SOURCE = Path(gazediffusion.__file__).parent
MODULES = [
    ".".join(["gazediffusion", *path.relative_to(SOURCE).with_suffix("").parts])
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>>" in path.read_text()
]


def constant_texts(module: ModuleType) -> dict[str, str]:
    """The texts below the assignments of a module's constants, by name."""
    body = ast.parse(Path(str(module.__file__)).read_text()).body
    return {
        ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0]): str(
            text.value.value
        )
        for node, text in pairwise(body)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


def examples(module: ModuleType) -> list[doctest.DocTest]:
    """Those of a module's docstrings and of the texts below its constants."""
    parser, globs = doctest.DocTestParser(), dict(vars(module))
    constants = [
        parser.get_doctest(text, globs, name, str(module.__file__), 0)
        for name, text in constant_texts(module).items()
    ]
    found = [*doctest.DocTestFinder().find(module), *constants]
    return [one for one in found if one.examples]


@pytest.mark.usefixtures("one_figure", "small_calibration")
@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # packages of others warn when they are imported
        module = importlib.import_module(name.removesuffix(".__init__"))
        found = examples(module)
        assert found
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        for number, one in enumerate(found):
            folder = tmp_path / str(number)  # examples write into the working folder
            folder.mkdir()
            monkeypatch.chdir(folder)
            runner.run(one)
    assert runner.summarize(verbose=False).failed == 0


PUBLIC = [name for name in gazediffusion.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example(name: str) -> None:
    thing = getattr(gazediffusion, name)
    texts = [thing.__doc__ or ""]
    if isinstance(thing, type):
        texts += [getattr(one, "__doc__", None) or "" for one in vars(thing).values()]
    elif not callable(thing):
        home = importlib.import_module(f"gazediffusion.{gazediffusion._HOME[name]}")
        texts = [constant_texts(home)[name]]
    assert any(">>>" in text for text in texts)


def test_every_conversion_of_windows_has_an_example() -> None:
    from gazediffusion.data.windows import Windows

    public = ["save", "load", "from_array", *(name for name in dir(Windows) if name[:3] == "to_")]
    assert len(public) == 11
    for name in public:
        assert ">>>" in (getattr(Windows, name).__doc__ or "")


def test_every_adapter_has_an_example() -> None:
    of_recordings = [name for name in dir(gazediffusion.Recordings) if name[:3] == "to_"]
    back = [name for name in gazediffusion.__all__ if name[:5] == "from_"]
    assert (len(of_recordings), len(back)) == (4, 3)
    for name in of_recordings:
        assert ">>>" in (getattr(gazediffusion.Recordings, name).__doc__ or "")
    for name in back:
        assert ">>>" in (getattr(gazediffusion, name).__doc__ or "")
