"""The package as it is installed: what is in the wheel, and what light use loads."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

import gazediffusion as gd
from tests.test_documents import ROOT

# Bytes; packaged weights are most of it. PyPI takes 100 MB.
MOST = 40_000_000


def succeeded(*command: object, **options: Any) -> str:
    """What a command prints; an error if it fails."""
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Wheel and source archive of the files that git knows."""
    folder = tmp_path_factory.mktemp("built")
    names = succeeded("git", "-C", ROOT, "ls-files", "-co", "--exclude-standard").splitlines()
    for name in names:
        source = ROOT / name
        if source.is_file():
            target = folder / "tree" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(source)
    dist = folder / "dist"
    succeeded(sys.executable, "-m", "build", "--no-isolation", "-o", dist, folder / "tree")
    (wheel,), (archive,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    return wheel, archive


@pytest.mark.slow
def test_wheel_and_source_archive_hold_the_package_and_nothing_else(
    built: tuple[Path, Path],
) -> None:
    wheel, archive = built
    succeeded(sys.executable, "-m", "twine", "check", "--strict", wheel, archive)
    assert max(one.stat().st_size for one in built) < MOST
    with zipfile.ZipFile(wheel) as stream:
        names = set(stream.namelist())
        about = f"gazediffusion-{gd.__version__}.dist-info"
        metadata = email.message_from_bytes(stream.read(f"{about}/METADATA"))
    source = ROOT / "src" / "gazediffusion"
    tracked = succeeded("git", "-C", source, "ls-files", "-co", "--exclude-standard")
    expected = {
        f"gazediffusion/{name}" for name in tracked.splitlines() if (source / name).exists()
    }
    assert {name for name in names if not name.startswith(about)} == expected
    assert "gazediffusion/py.typed" in names
    assert f"{about}/licenses/LICENSE" in names
    assert (metadata["License-Expression"], metadata["Version"]) == ("MIT", gd.__version__)
    assert metadata["Requires-Python"] == ">=3.11"
    with tarfile.open(archive) as stream:
        inside = {name.partition("/")[2] for name in stream.getnames()}
    assert not [one for one in inside if one.split("/")[0] in ("scratch", "shared", ".venv")]
    assert {"LICENSE", "README.md", "pyproject.toml", "src/gazediffusion/py.typed"} <= inside


@pytest.mark.slow
def test_the_wheel_runs_in_an_environment_of_its_own(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    """The dependencies are those of this environment; the package is the wheel's."""
    venv.create(tmp_path / "env", with_pip=False)
    (libraries,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(built[0]) as stream:
        stream.extractall(libraries)
    here = Path(pytest.__file__).parents[1]
    (libraries / "dependencies.pth").write_text(f"{here}\n", encoding="utf-8")
    python = tmp_path / "env" / "bin" / "python"
    call = [python, "-E", "-P", "-m", "gazediffusion"]
    where = succeeded(python, "-E", "-P", "-c", "import gazediffusion as g; print(g.__file__)")
    assert Path(where.strip()).is_relative_to(libraries)
    assert succeeded(*call, "--version").strip() == f"gazediffusion {gd.__version__}"
    assert "benchmark" in succeeded(*call, "--help")
    succeeded(*call, "generate", "-n", 2, "--steps", 2, "--task", "reading", "-o",
              tmp_path / "gaze.csv")  # fmt: skip
    assert (tmp_path / "gaze.csv").stat().st_size > 10_000


def test_shells_complete_the_commands() -> None:
    """The script that a shell sources, and what it asks for at `gazediffusion ben<TAB>`."""
    program = (
        "import sys; sys.argv[0] = 'gazediffusion'; from gazediffusion.cli import main; main()"
    )
    known = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    for shell in ("bash", "zsh", "fish"):
        script = succeeded(sys.executable, "-c", program, "--show-completion", shell, env=known)
        assert "_GAZEDIFFUSION_COMPLETE=complete_" in script
    asked = {"_GAZEDIFFUSION_COMPLETE": "complete_bash", "COMP_CWORD": "1"}
    words = {**known, **asked, "COMP_WORDS": "gazediffusion ben"}
    assert succeeded(sys.executable, "-c", program, env=words).split() == ["benchmark"]


def loaded(commands: list[str], folder: Path) -> set[str]:
    """Modules that are loaded after some commands in one process."""
    script = """
import sys
from gazediffusion.cli import main
for command in sys.argv[1:]:
    sys.argv[1:] = command.split()
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
print()
print(*sys.modules)
"""
    return set(
        succeeded(sys.executable, "-c", script, *commands, cwd=folder).splitlines()[-1].split()
    )


def test_modules_of_light_use_do_not_load_torch() -> None:
    names = ("data.preparing", "evaluation.reading", "evaluation.benchmark", "data.simulation")
    modules = ", ".join(f"gazediffusion.{name}" for name in names)
    found = succeeded(sys.executable, "-c", f"import {modules}, sys; print(*sys.modules)").split()
    assert "gazediffusion.evaluation.real_gaze" in found
    assert "torch" not in found


@pytest.mark.slow
def test_light_use_does_not_load_torch(tmp_path: Path) -> None:
    commands = [
        "simulate -o study --participants 4 --minutes 1.5",
        "inspect study",
        "prepare study -o windows.safetensors --stride 0.2",
        "evaluate --real windows.safetensors --synthetic windows.safetensors -o report --quick",
        "info windows.safetensors",
    ]
    modules = loaded(commands, tmp_path)
    assert "polars" in modules
    assert not {"torch", "gazediffusion.generation.sampler"} & modules


def test_the_citation_is_valid_and_of_this_version() -> None:
    """Keys and types of the Citation File Format 1.2.0."""
    import yaml

    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    known = {
        "abstract", "authors", "cff-version", "commit", "contact", "date-released", "doi",
        "identifiers", "keywords", "license", "license-url", "message", "preferred-citation",
        "references", "repository", "repository-artifact", "repository-code", "title", "type",
        "url", "version",
    }  # fmt: skip
    assert set(cited) <= known
    assert (cited["cff-version"], cited["type"], cited["license"]) == ("1.2.0", "software", "MIT")
    assert cited["version"] == gd.__version__
    entity, named = {"name"}, {"family-names", "given-names"}
    for one in (cited, *cited["references"]):
        assert one["authors"]
        assert all(set(author) in (entity, named) for author in one["authors"])
    for one in cited["references"]:
        assert {"type", "title", "authors"} <= set(one)
        assert one["type"] == "article"
