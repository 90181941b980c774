"""The joint recipe on several splits of participants: trained, calibrated, evaluated.

    python experiments/joint.py gazecom.safetensors bioeye.safetensors --runs FOLDER    # on a GPU
    python experiments/joint.py gazecom.safetensors bioeye.safetensors     # the packaged model only

Tells how much a ratio depends on who is held out. A run of each split seed is trained in FOLDER and
resumed by the same command, about an hour each on an H200; without --runs the model is evaluated on
the participants that it was trained without, ten minutes on two cores. A row for each run and
windows file: the headline of `evaluate`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gazediffusion as gd
from gazediffusion.evaluation.reading import split_again
from report import Result, options, tiny_windows

MEASURES = (
    "ratio",
    "n_above",
    "worst_ratio",
    "saccade_count_percent",
    "path_length_percent",
    "main_sequence_percent",
    "c2st",
)


def trained(
    given: Any, files: dict[str, gd.Windows], seed: int
) -> tuple[gd.Model, dict[str, gd.Windows]]:
    """The run of a split, and the windows with that split."""
    split = {name: split_again(windows, seed) for name, windows in files.items()}
    folder = given.runs / f"{given.recipe}-split-{seed}"
    how = {"seed": given.seed, "epochs": given.epochs, "device": given.device}
    return gd.train(list(split.values()), folder, given.recipe, **how), split


def main() -> None:
    """Train what is missing, and write the table."""
    parser = options(__doc__, "joint")
    parser.add_argument("windows", type=Path, nargs="*")
    parser.add_argument("--runs", type=Path, help="folder of runs to be trained")
    parser.add_argument("--recipe", default="joint")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--split-seeds", type=int, nargs="+", default=[42, 1, 2])
    parser.add_argument("-n", type=int, default=1500, help="windows evaluated")
    given = parser.parse_args()
    model = gd.load(given.model, device=given.device)
    files = {path.stem: gd.Windows.load(path) for path in given.windows}
    config = gd.EvaluationConfig()
    if given.tiny:
        files, config = {"tiny": tiny_windows(model, "movies", 90)}, gd.EvaluationConfig(quick=True)
        given.n = 25
    result = Result.of(given, model, n=given.n)
    runs = {given.model: (model, files)}
    if given.runs is not None:
        runs = {f"split {seed}": trained(given, files, seed) for seed in given.split_seeds}
    for run, (one, parts) in runs.items():
        for name, windows in parts.items():
            made = one.sample(given.n, task=_only(windows.tasks), seed=given.seed)
            held_out, sets = windows.held_out, {"model": made}
            found = gd.evaluate(held_out, sets, windows.train, config).headlines["model"]
            cells = {key: _cell(getattr(found, key)) for key in MEASURES}
            about = {"run": run, "file": name, "windows": len(held_out)}
            result.add("headline", {**about, "worst": found.worst, **cells})
    result.save()


def _only(tasks: tuple[str, ...]) -> str | None:
    """The task of a file with one; of others the model's mixture."""
    return tasks[0] if len(tasks) == 1 else None


def _cell(one: Any) -> Any:
    return one.value if one is None or one.interval is None else [one.value, *one.interval]


if __name__ == "__main__":
    main()
