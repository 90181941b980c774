"""Deep two-sample test of models, baselines and files, in one table.

    python experiments/deep.py gazecom.safetensors bioeye.safetensors        # 10 minutes, one H200
    python experiments/deep.py ... --synthetic joint position kinematic-markov [NAME=PATH ...]

A set is NAME=WHAT or WHAT: a packaged model or run folder, which generates n windows with the
training participants' shares of tasks; a baseline, fitted to the training participants; or a
windows file, read as it is. A row for each set and test, with the floor and the planted defect: AUC
with its 95 % interval, and the windows tested.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gazediffusion as gd
from gazediffusion.evaluation.deep_test import REFERENCES, deep_tests
from gazediffusion.evaluation.reading import load_set, name_of
from gazediffusion.evaluation.sets import GazeSet, at_rate_of, synthetic_sets
from gazediffusion.generation.baselines import BASELINES
from report import Result, options, tiny_windows


def synthetic_of(windows: gd.Windows, what: str, n: int) -> gd.Windows:
    """The windows of a set."""
    if what in BASELINES:
        return at_rate_of(windows, what, gd.fit_baseline(what, windows).sample(n))
    return load_set(what, "synthetic", windows, n=n, reference=windows.train)


def main() -> None:
    """Test every set against every windows file."""
    parser = options(__doc__, "deep")
    parser.add_argument("windows", type=Path, nargs="*")
    parser.add_argument("--synthetic", nargs="+", default=["joint"], metavar="NAME=WHAT")
    parser.add_argument("-n", type=int, default=1800, help="windows generated")
    parser.add_argument("--trials", type=int, help="3 on a GPU, 2 otherwise")
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.5, 2.0, 8.0])
    parser.add_argument("--steps", type=int, help="of a training at most")
    parser.add_argument("--windows-per-side", type=int, default=4000)
    parser.add_argument("--no-references", action="store_true", help="no floor, no planted defect")
    given = parser.parse_args()
    model = gd.load(given.model, device=given.device)
    files = {path.stem: gd.Windows.load(path) for path in given.windows}
    config = gd.DeepConfig(
        seconds=tuple(given.seconds),
        n_windows=given.windows_per_side,
        n_seeds=given.trials,
        n_steps=given.steps,
        device=given.device,
    )
    if given.tiny:
        files = {"tiny": tiny_windows(model, "movies", 300)}
        given.synthetic, given.n, given.no_references = ["gaussian"], 200, True
        config = gd.DeepConfig(
            seconds=(0.5,), n_seeds=1, n_steps=2, batch_size=8, widths=(4,), device=given.device
        )
    result = Result.of(given, model, n=given.n)
    references = () if given.no_references else REFERENCES
    for name, windows in files.items():
        named = dict(map(name_of, given.synthetic))
        sets = {one: synthetic_of(windows, what, given.n) for one, what in named.items()}
        real = GazeSet.of("train", windows.train), GazeSet.of("real", windows.held_out)
        of_name = {one.name: one for one in synthetic_sets(sets, given.seed, None)}
        found: dict[str, Any] = dict(
            deep_tests(*real, of_name, config, given.seed, result.say, references)
        )
        rows = {"floor": found["floor"]} if found.get("floor") else {}
        for row, one in (rows | found.get("planted", {}) | found["synthetic"]).items():
            for test, auc in one.auc.items():
                cells = {"AUC": [auc.value, *(auc.interval or ())], "tested": one.n_test}
                result.add("auc", {"file": name, "set": row, "test": test, **cells})
    result.save()


if __name__ == "__main__":
    main()
