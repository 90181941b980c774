"""Imports flow one way, and importing the package loads nothing heavy."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gazediffusion

PACKAGE = Path(gazediffusion.__file__).parent
ROOT = Path(__file__).parents[1]
# A module may import only modules that stand before it in this list.
ORDER = [
    "errors",
    "storage",
    "jobs",
    "screen",
    "options",
    "settings",
    "seeds",
    "device",
    "parallel",
    "plugins",
    "data",
    "diffusion",
    "conditioning",
    "network",
    "generation",
    "training",
    "plotting",
    "evaluation",
    "model",
    "distillation",
    "synthesizer",
    "studies",
    "scoring",
    "description",
    "reproduction",
    "web",
    "cli",
    "__main__",
]


def imported(path: Path) -> set[str]:
    """Modules of the package that a file imports at run time, at any depth."""
    tree = ast.parse(path.read_text())
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    names = [
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and id(node) not in for_types
        for name in ([node.module] if node.module != "gazediffusion" else
                     [f"gazediffusion.{alias.name}" for alias in node.names
                      if alias.name != "__version__"])
        if name and name.startswith("gazediffusion.")
    ]  # fmt: skip
    return {name.split(".")[1] for name in names}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: p.stem)
def test_imports_flow_one_way(path: Path) -> None:
    module = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if module == "__init__":
        return
    assert module in ORDER, f"{module} has no place in the order"
    for other in imported(path) - {module}:
        assert ORDER.index(other) < ORDER.index(module), f"{module} imports {other}"


def loaded_by(statement: str) -> set[str]:
    script = f"{statement}\nimport sys\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = {"numpy", "polars", "torch", "pymovements", "matplotlib", "scipy"}
    assert not heavy & loaded_by("import gazediffusion")


def test_windows_load_where_polars_and_pymovements_are_not_installed() -> None:
    missing = {"polars", "pymovements", "scipy", "matplotlib", "pandas"}
    assert not missing & loaded_by(
        "import gazediffusion.data.windows, gazediffusion.network.representations"
    )


def test_training_and_sampling_need_nothing_the_gpu_machine_lacks() -> None:
    missing = {"polars", "pymovements", "pydantic", "diffusers", "pyarrow", "scipy", "matplotlib"}
    modules = "gazediffusion.cli, gazediffusion.model, gazediffusion.description"
    modules += ", gazediffusion.evaluation.reading, gazediffusion.scoring.scores"
    assert not missing & loaded_by(f"import {modules}")
    reproduction = loaded_by("import gazediffusion.reproduction.build")
    assert not {"polars", "pymovements", "pydantic", "diffusers"} & reproduction


# What the GPU machine lacks, what is for URLs alone, and what is for a cluster alone.
BLOCKED = ("polars", "pymovements", "pydantic", "ray", "upath")
WITHOUT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

sys.meta_path.insert(0, Blocked())
from dataclasses import replace
import numpy as np
import gazediffusion as gd
from gazediffusion.network.unet import UNetConfig
from gazediffusion.training import calibration

calibration.WINDOWS = 4
network = UNetConfig(channels=4, widths=(8, 16, 16), embedding=16, attention_blocks=2, rotary=True)
recipe = replace(gd.RECIPES["joint-tiny"], network=network, epochs=1, batch_size=8, distillation=0)
gaze = np.random.default_rng(0).normal(0, 0.02, (24, 2, 64)).cumsum(axis=2)
names, screen = [f"P{k % 4}" for k in range(24)], gd.Screen(1280, 720, 40, 22.5, 45)
windows = gd.Windows.from_array(gaze, 250, screen, participants=names, tasks=["dots"] * 24)
phases = set()
model = gd.train(windows, "run", recipe, device="cpu", progress=lambda *one: phases.add(one[0]))
assert model.is_calibrated and phases == {"training", "calibrating"}, phases
assert len(gd.load("default").sample(1, task="dots", steps=2)) == 1
assert len(gd.score(model.sample(3, steps=2), model=model, n_draws=1, has_likelihood=False)) == 3
"""


def test_models_work_where_nothing_else_is_installed(tmp_path: Path) -> None:
    run = [sys.executable, "-c", WITHOUT, ",".join(BLOCKED)]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_windows_files_are_generated_and_evaluated_without_polars(tmp_path: Path) -> None:
    gaze, report = tmp_path / "gaze.safetensors", tmp_path / "report"
    commands = [
        f"generate -n 25 --task dots --steps 2 --screen 800x600 -o {gaze}",
        f"evaluate --real {gaze} --synthetic {gaze} --quick -o {report}",
    ]
    script = """
import sys
sys.modules.update({"polars": None, "pymovements": None})
from gazediffusion.cli import main
for command in sys.argv[1:]:
    sys.argv[1:] = command.split()
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""
    run = [sys.executable, "-c", script, *commands]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (report / "report.html").is_file()
    windows = gazediffusion.Windows.load(gaze)
    assert (len(windows), windows.screen) == (25, gazediffusion.Screen(800, 600))
    assert windows.provenance["card"]["sampling"]["task"] == "dots"


def test_the_network_and_the_diffusion_do_not_know_each_other() -> None:
    assert "diffusion" not in imported(PACKAGE / "network" / "unet.py")
    for path in (PACKAGE / "diffusion").glob("*.py"):
        assert "network" not in imported(path)


def test_every_public_name_exists_and_dir_shows_them_alone() -> None:
    for name in gazediffusion.__all__:
        assert getattr(gazediffusion, name) is not None
    assert dir(gazediffusion) == sorted(gazediffusion.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(gazediffusion, "nothing")  # noqa: B009


@pytest.mark.parametrize("package", [n for n in ORDER if (PACKAGE / n).is_dir()])
def test_a_package_says_what_it_holds_and_what_it_must_not_know(package: str) -> None:
    docstring = ast.get_docstring(ast.parse((PACKAGE / package / "__init__.py").read_text()))
    assert docstring is not None
    assert 2 <= len(docstring.splitlines()) <= 7
    assert re.search(
        r"must not|knows? nothing|neither|no other|contains no|nothing here", docstring
    )


# What the command line and the web service import besides `import gazediffusion as gd`.
FRONT = {"cli", "web", "errors", "jobs", "options", "settings", "storage"}


@pytest.mark.parametrize("package", ["cli", "web"])
def test_commands_and_service_call_public_functions_alone(package: str) -> None:
    for path in (PACKAGE / package).glob("*.py"):
        assert imported(path) <= FRONT, f"{path.name} imports {imported(path) - FRONT}"
        private = re.findall(
            rf"from gazediffusion\.(?!{package})\S+ import .*\b_(?!_)\w+", path.read_text()
        )
        assert not private, f"{path.name} imports private names: {private}"


def measure_script() -> Any:
    spec = importlib.util.spec_from_file_location("measure", ROOT / "docs" / "measure.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_way_of_the_data_is_short(tmp_path: Path) -> None:
    measure = measure_script()
    generate, train, load = measure.traces(tmp_path).values()
    assert len(generate["files"]) <= measure.FILES_OF_GENERATE
    assert len(train["files"]) <= measure.FILES_OF_TRAIN
    assert len(load["modules"]) <= measure.MODULES_OF_LOAD


def test_the_page_shows_the_tree_of_the_package() -> None:
    measure_script().main(["--check"])
