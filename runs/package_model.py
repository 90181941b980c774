"""Put a trained run into the package: compact weights, configuration and model card.

    python runs/package_model.py RUN NAME [--levels 31] [--evaluation REPORT/results.json ...]

writes src/gazediffusion/models/pretrained/NAME. RUN is a run folder, or a packaged model, which is
rounded again. The headlines of `gazediffusion evaluate ... -o REPORT` go into the card. How many
levels a model needs: runs/rounding.py, and docs/results, "Rounded weights". Sampling settings are
those of the recipe today, which may have been chosen after training (docs/log.md).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from gazediffusion.document import Estimate, Table, to_markdown
from gazediffusion.files import read_json
from gazediffusion.models.checkpoint import Run
from gazediffusion.models.pretrained import (
    WEIGHTS,
    load_model,
    pretrained_folder,
    save_pretrained,
)
from gazediffusion.models.recipes import Recipe, find_recipe

# The terms of the data, by the name of the file.
SOURCES = {
    "gazecom.parquet": 'GazeCom (free; "please cite": Dorr, Martinetz, Gegenfurtner, Barth 2010, '
    "Variability of eye movements when viewing dynamic natural scenes, J Vision 10(10):28)",
    "bioeye.parquet": "BioEye 2015 (use granted without fee provided it is cited as: BioEye 2015 - "
    "Competition on Biometrics via Eye Movements, doi 10.1109/BTAS.2015.7358750)",
}
LIMITS = (
    "For developing and testing software, augmenting small datasets, and teaching. The model does "
    "not represent an individual, and its output is not evidence about human participants. It was "
    "trained on healthy adults in a laboratory. Other screens are a change of scale; other tasks "
    "and groups are not covered. State in every publication that the gaze is synthetic; the card "
    "of each set does."
)


COLUMNS = {
    "median_ratio": "median ratio",
    "n_above": "above 1.5",
    "saccade_count_percent": "saccades (%)",
    "path_length_percent": "path length (%)",
    "main_sequence_percent": "main sequence (%)",
    "c2st": "C2ST",
}


def _estimate(cell: dict[str, Any] | None) -> Estimate:
    return Estimate(cell["value"], cell.get("interval")) if cell else Estimate(None)


def headline_table(path: Path) -> Table:
    """The headline of each part of an evaluation."""
    rows = [
        [part, found["n_windows"], *(_estimate(found.get(key)) for key in COLUMNS)]
        for part, results in read_json(path)["parts"].items()
        for name, found in results["headline"].items()
        if name in results["sets"]["synthetic"]
    ]
    return Table(path.parent.name, ["part", "windows", *COLUMNS.values()], rows)


def card_of(name: str, run: Run, levels: int, megabytes: float, evidence: list[Path]) -> str:
    """The model card in Markdown."""
    config, data, recipe = run.config, run.config.data, run.config.recipe
    conditioning = config.conditioning
    by_screen: dict[Any, list[str]] = {}
    for task, screen in zip(conditioning.tasks, conditioning.task_screens, strict=True):
        by_screen.setdefault(screen, []).append(task)
    by_screen = by_screen or {config.screen: list(data["tasks"])}
    facts = [
        ["recipe, seed", f"{recipe.name}, {config.seed}"],
        ["training", f"{recipe.epochs} epochs on {config.device} ({config.precision})"],
        ["weights", f"EMA of epoch {run.epoch + 1}, validation loss {run.validation_loss}; "
         f"{megabytes:.1f} MB, {levels} levels"],
        ["training data", f"{data['n_windows']} windows of "
         f"{data['n_participants'] - data['n_held_out_participants']} participants"],
        ["held out", f"{data['n_held_out_participants']} participants"],
        *([f"screen of {', '.join(tasks)}", one.in_words()] for one, tasks in by_screen.items()),
    ]  # fmt: skip
    sections: dict[str, list[Any]] = {
        "Model": [
            f"Windows of {config.length / config.rate_hz:g} s at {config.rate_hz:g} Hz: "
            f"gazediffusion generate --model {name} -n 10 -o gaze.parquet",
            Table("Facts", ["", ""], facts),
        ],
        "Data": [SOURCES.get(source, source) for source in data["sources"]]
        + ["The package contains no recording and no part of one."],
        "Fidelity": [headline_table(path) for path in evidence],
        "Intended use and limits": [LIMITS],
    }
    return to_markdown(f"Model card: {name}", sections, {})


def with_present_sampling(recipe: Recipe) -> Recipe:
    """The recipe a model was trained with, and the sampling of the one of that name now."""
    today = find_recipe(recipe.name)
    names = ("sigma_min", "sigma_max", "rho")
    edm = replace(recipe.edm, **{name: getattr(today.edm, name) for name in names})
    return replace(recipe, edm=edm, sampling_steps=today.sampling_steps)


def main() -> None:
    """Package the run named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="a run folder or a packaged model")
    parser.add_argument("name")
    parser.add_argument("--levels", type=int, default=31)
    parser.add_argument("--evaluation", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    folder = pretrained_folder() / given.name
    run = load_model(given.run)
    run = replace(run, config=replace(run.config, recipe=with_present_sampling(run.config.recipe)))
    save_pretrained(run, folder, given.levels)
    megabytes = (folder / WEIGHTS).stat().st_size / 1e6
    card = card_of(given.name, run, given.levels, megabytes, given.evaluation)
    (folder / "README.md").write_text(card, encoding="utf-8")
    print(f"wrote {folder}: {megabytes:.1f} MB")


if __name__ == "__main__":
    main()
