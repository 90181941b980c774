"""The joint recipe on several splits of participants: trained, calibrated, evaluated.

    python experiments/joint.py gazecom.safetensors bioeye.safetensors --runs FOLDER    # on a GPU
    python experiments/joint.py gazecom.safetensors bioeye.safetensors     # the packaged model only

Tells how much a ratio depends on who is held out. A run of each split seed is trained in FOLDER and
resumed by the same command, about an hour each on an H200; without --runs the model is evaluated on
the participants that it was trained without, ten minutes on two cores. A row for each run and
windows file: the headline of `evaluate`, beside that of a second draw of real windows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gazediffusion as gd
from gazediffusion.evaluation.reading import matched_windows, split_again
from report import Result, options, tiny_windows

MEASURES = {
    "ratio": "median ratio",
    "n_above": "above 1.5 of 31",
    "worst_ratio": "largest",
    "saccade_count_percent": "saccades (%)",
    "path_length_percent": "path length (%)",
    "main_sequence_percent": "main sequence (%)",
    "c2st": "C2ST",
}
COPIES = ("below the 1 % quantile", "below the minimum")  # of held-out windows' distances


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
    parser.add_argument("--qualities", nargs="+", default=["default", "best"])
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
            held_out = windows.held_out
            sets = {
                quality: matched_windows(one.run, held_out, given.n, quality=quality)
                for quality in given.qualities
            }
            found = gd.evaluate(held_out, sets, windows.train, config)
            for which, row in found.headlines.items():
                about = {"run": run, "file": name, "set": which, "windows": row.n_windows}
                cells = {title: _cell(getattr(row, key)) for key, title in MEASURES.items()}
                result.add("headline", {**about, **cells})
            copies = found.results["tests"].get("memorisation", {}).get("synthetic", {})
            for which, row in copies.items():
                about = {"run": run, "file": name, "set": which}
                copied = [row.get("share_of_copies"), *row.get("share_of_copies_interval", ())]
                cells = {COPIES[0]: copied, COPIES[1]: row.get("share_below_minimum")}
                result.add("memorisation", {**about, **cells})
    result.save()


def _cell(one: Any) -> Any:
    return one.value if one is None or one.interval is None else [one.value, *one.interval]


if __name__ == "__main__":
    main()
