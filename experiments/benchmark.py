"""The benchmark: a row for this package, its baselines, the paper's recipes and peers' files.

    python experiments/benchmark.py reading=bioeye.safetensors dots=bioeye.safetensors
        movies=gazecom.safetensors [--peers FOLDER] [--models] [--real]     # 20 minutes, one H200

A row is a file docs/benchmark/TASK/NAME.json, as `gazediffusion benchmark` writes it; one that is
there is kept. --models generates the packaged models' windows: the paper's networks take hours on a
CPU. --peers: a folder with NAME_TASK.npz of other generators. --real adds the deep two-sample test.
The tables have all rows of a task, that of the training participants first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import gazediffusion as gd
from gazediffusion.evaluation.benchmark import training_row
from gazediffusion.evaluation.real_gaze import find_definition
from gazediffusion.generation.baselines import BASELINES
from report import ROOT, Result, options

ROWS = ROOT / "docs" / "benchmark"
THIS = "training participants of this dataset"
EYEGAN = "https://github.com/aeye-lab/sp-eyegan"
SDG = "https://github.com/gghatano/eye-tracking-sdg"
# Name of the row, data that the generator saw, link; by the name of the peer's file.
PEERS = {
    "sp_eyegan_text": ("SP-EyeGAN, text", "GazeBase", EYEGAN),
    "sp_eyegan_random": ("SP-EyeGAN, random", "GazeBase", EYEGAN),
    "sdg_rules": ("eye-tracking-sdg, rules", "nothing", SDG),
    "sdg_fitted": ("eye-tracking-sdg, fitted", THIS, SDG),
}
PAPER = {"position": "the paper's position recipe", "velocity": "the paper's velocity recipe"}
FILMS = "films of GazeCom, other participants held out"
FIGURES = {
    "ratio": "ratio to the floor",
    "n_above": "above 1.5 of 31",
    "worst_ratio": "largest",
    "precision": "precision",
    "coverage": "coverage",
}
Make = Callable[[], gd.Windows]


def peer_windows(path: Path, task: str) -> gd.Windows:
    """Windows of a peer's file; positions beyond the screen are clipped as recorded ones are."""
    found = np.load(path)
    size = [float(one) for one in re.findall(r"[\d.]+", str(found["screen"]))]
    screen = gd.Screen(int(size[0]), int(size[1]), *size[2:])
    gaze = (found["gaze_int16"] * found["scale"]).clip(-1.5, 1.5)
    return gd.Windows.from_array(gaze, float(found["rate_hz"]), screen, tasks=task)


def generators(
    task: str, windows: gd.Windows, peers: Path | None, models: bool, device: str
) -> Iterator[tuple[str, str, str, Make]]:
    """Name, data that it saw, link, and windows of each generator."""
    n = find_definition(task).n_windows

    def generated(name: str, **how: Any) -> gd.Windows:
        made = gd.load(name, device=device).sample(n, **how)
        # The paper's models know one task, films.
        return replace(made, tasks=(task,)) if len(made.tasks) == 1 else made

    if models:
        for quality in ("default", "best"):
            how = {"task": task, "quality": quality}
            yield f"gazediffusion, {quality}", THIS, "", partial(generated, "joint", **how)
        for name, words in PAPER.items():
            yield words, THIS if task == "movies" else FILMS, "", partial(generated, name)
    for name in BASELINES:
        fit = partial(gd.fit_baseline, name, windows.of_task(task))
        yield f"baseline {name}", THIS, "", lambda fit=fit: fit().sample(n)  # type: ignore[misc]
    for stem, (name, data, link) in PEERS.items():
        path = (peers or Path("-")) / f"{stem}_{task}.npz"
        if path.is_file():
            yield name, data, link, partial(peer_windows, path, task)


def stem_of(name: str) -> str:
    """The name of a row's file."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def main() -> None:
    """Measure the rows that are missing, and write the tables."""
    parser = options(__doc__, "benchmark", model=None)
    parser.add_argument("windows", nargs="*", metavar="TASK=WINDOWS")
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--models", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--only", nargs="+", help="file names of rows, which are measured again")
    parser.add_argument("--rows", type=Path, default=ROWS)
    given = parser.parse_args()
    files = {task: Path(path) for task, path in (one.split("=", 1) for one in given.windows)}
    models = [gd.load("joint", device=given.device)] if given.models else []
    result = Result.of(given, *models)
    for task, path in files.items():
        windows = gd.Windows.load(path)
        for name, data, link, make in generators(
            task, windows, given.peers, given.models, given.device
        ):
            row = given.rows / task / f"{stem_of(name)}.json"
            is_missing = stem_of(name) in given.only if given.only else not row.exists()
            if not is_missing:
                continue
            result.say(f"{task}: {name}")
            real = windows if given.real else None
            found = gd.benchmark(make(), task, name=name, trained_on=data, link=link, real=real)
            found.save(row, overwrite=True)
    tasks = sorted(path.name for path in given.rows.iterdir() if path.is_dir())
    for task in tasks[:1] if given.tiny else tasks:
        rows = [gd.BenchmarkRow.load(path) for path in sorted((given.rows / task).glob("*.json"))]
        first = training_row(find_definition(task, rows[0].benchmark_version))
        for row in (first, *sorted(rows, key=lambda one: one.ratio.value or np.inf)):
            cells = {title: _cell(getattr(row, key)) for key, title in FIGURES.items()}
            auc = {"AUC, 8 s": _cell(row.deep_auc.get("8 s")), "saw": row.trained_on}
            result.add(task, {"generator": row.name, **cells, **auc})
    result.save()


def _cell(one: Any) -> Any:
    return None if one is None else [one.value, *one.interval] if one.interval else one.value


if __name__ == "__main__":
    main()
