"""Put a trained run into the package: compact weights, configuration and model card.

    python runs/ship.py RUN NAME [--levels 31] [--evaluation RESULTS.json ...] [--tasks FILE]

writes src/gazediffusion/models/NAME. The evaluations are results.json of `gazediffusion evaluate
--real WINDOWS --synthetic RUN --by-task --membership -o FOLDER`, one for each windows file, and
FILE is what runs/tasks.py writes with -o; their numbers go into the card. How many levels a model
needs: runs/rounding.py, and docs/results, "Rounded weights". Sampling is that of the recipe as it
is today: its levels and steps may have been chosen after training (docs/log.md).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gazediffusion.document import Cell, as_text
from gazediffusion.evaluation.headline import Headline
from gazediffusion.files import read_json
from gazediffusion.models.checkpoint import Run, RunConfig, load_run
from gazediffusion.models.pretrained import models_folder, ship
from gazediffusion.models.recipes import Recipe, find_recipe

# What the data's README asks for, by the name of the file.
SOURCES = {
    "gazecom.parquet": 'GazeCom (free; "please cite": Dorr, Martinetz, Gegenfurtner, Barth 2010, '
    "Variability of eye movements when viewing dynamic natural scenes, J Vision 10(10):28)",
    "bioeye.parquet": "BioEye 2015 (use granted without fee provided it is cited as: BioEye 2015 - "
    "Competition on Biometrics via Eye Movements, doi 10.1109/BTAS.2015.7358750)",
}


def _other_screens(config: RunConfig) -> str:
    """Screens of tasks that were recorded on another one."""
    others = dict(zip(config.tasks, config.task_screens, strict=True))
    told = [f"; {task}: {one.in_words()}" for task, one in others.items() if one != config.screen]
    return "".join(told)


def fidelity_table(found: Mapping[str, Any]) -> str:
    """How close the model is to held-out participants, file by file and task by task."""
    rows = [
        "| windows file and task | windows | median ratio | above 1.5 | saccades (%) "
        "| path length (%) | main sequence (%) | C2ST | largest |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for label, results in found.items():
        for name, row in results["headline"].items():
            one = Headline.of(row)
            whose = label if name in results["sets"]["synthetic"] else f"{label}, {name}"
            cells: list[Cell] = [
                one.n_windows,
                one.ratio,
                f"{as_text(one.n_above)} of {one.n_distances}",
                one.saccade_count_percent,
                one.path_length_percent,
                one.main_sequence_percent,
                one.c2st,
                f"{one.worst} {as_text(one.worst_ratio)}",
            ]
            rows.append(f"| {whose} | {' | '.join(map(as_text, cells))} |")
    return f"""\
Ratios to the floor over 31 distances: 1 is as close to held-out participants as the training
participants are (`gazediffusion evaluate --by-task`). Counts, path length and slope are in percent
of the training participants'. C2ST: accuracy of a classifier, 0.5 is chance.

{chr(10).join(rows)}"""


def tasks_table(found: Mapping[str, Any]) -> str:
    """How each task looks, of people and of the model."""
    rows = [
        "| task | whose | fixation, median and mean (ms) | moves a second | to the right "
        "| sweeps back a second | recognised |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for task, sides in found.items():
        for side, whose in (("real", "held-out people"), ("model", "model")):
            one = sides[side]
            rows.append(
                f"| {task} | {whose} | {one['fixation_ms']:.0f}, {one['mean_fixation_ms']:.0f} "
                f"| {one['moves_per_s']:.2f} "
                f"| {100 * one['right_share']:.0f} % | {one['sweeps_per_s']:.2f} "
                f"| {100 * one['recognised']:.0f} % |"
            )
    return f"""\
By task (`runs/tasks.py`); recognised: by a classifier that learned the tasks from the training
people.

{chr(10).join(rows)}"""


def privacy_lines(found: Mapping[str, Any]) -> str:
    """Copies of training windows, and the membership attack."""
    lines = []
    for label, results in found.items():
        for copies in results["tests"]["memorisation"].get("synthetic", {}).values():
            between = copies["between_participants"]["distance_over_spread"]
            lines += [
                f"- {label}: {_share(copies, 'share_of_copies_interval')} of the windows are "
                "nearer to a training window than the nearest 1 % of held-out windows are, "
                f"{100 * copies['share_below_minimum']:.1f} % nearer than all of them",
                f"- {label}: relative to a window's own spread, {_share(between, 'interval')} are "
                "nearer than the nearest 1 % of training windows are to other participants'",
            ]
        for attack in results["tests"].get("membership", {}).get("synthetic", {}).values():
            low, high = attack["interval"]
            lines.append(
                f"- {label}: membership inference by the loss has an AUC of {attack['auc']:.3f} "
                f"[{low:.3f}, {high:.3f}] over windows, {attack['auc_participants']:.3f} over "
                f"participants ({attack['n_members']} and {attack['n_others']} windows); 0.5 is "
                "chance"
            )
    return "\n".join(lines)


def _share(found: Mapping[str, Any], interval: str) -> str:
    low, high = found[interval]
    return f"{100 * found['share_of_copies']:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def evidence_of(found: Mapping[str, Any], tasks: Mapping[str, Any] | None) -> str:
    """The card's part on fidelity and privacy."""
    if not found:
        return "See docs/results/README.md."
    parts = [fidelity_table(found), tasks_table(tasks) if tasks else "", privacy_lines(found)]
    return "\n\n".join(part for part in parts if part)


def card_of(name: str, run: Run, megabytes: float, levels: int, evidence: str) -> str:
    """The model card, in Markdown."""
    config, data = run.config, run.config.data
    recipe = config.recipe
    people = data["n_participants"] - data["n_held_out_participants"]
    sources = "\n".join(f"- {SOURCES.get(source, source)}" for source in data["sources"])
    return f"""# Model card: {name}

A diffusion model that generates gaze of {config.length / config.rate_hz:g} s at
{config.rate_hz:g} Hz: `gazediffusion generate --model {name} -n 10 -o gaze.parquet`.

- recipe `{recipe.name}`, seed {config.seed}, {recipe.epochs} epochs on {config.device}
  ({config.precision}); averaged weights of epoch {run.epoch + 1}, held-out loss
  {run.validation_loss:.5f}
- weights: {megabytes:.1f} MB; large ones rounded to {levels} levels on either side of zero, Huffman
  coded, in safetensors, SHA-256 checked on loading (`runs/ship.py`; what rounding costs:
  `runs/rounding.py` and docs/results)
- trained on {data["n_windows"]} windows of {people} people
- kept apart: {data["n_held_out_participants"]} people
- tasks: {", ".join(data["tasks"])}
- screen: {config.screen.in_words()}{_other_screens(config)}

## Data

{sources}

No recording, and no part of one, is in the package.

## Fidelity and privacy

{evidence}

## Intended use and limits

For developing and testing software, for augmenting small datasets, for teaching. It is no model of
a person, and nothing generated by it is evidence about people. It learned healthy adults in front
of one laboratory screen; other screens are a matter of scale, other tasks and groups are not
covered. Say in every publication that the gaze is synthetic; each set's card does.
"""


def sampled_as_today(recipe: Recipe) -> Recipe:
    """The recipe a model was trained with, and the sampling of the one of that name now."""
    today = find_recipe(recipe.name)
    names = ("sigma_min", "sigma_max", "rho")
    edm = replace(recipe.edm, **{name: getattr(today.edm, name) for name in names})
    return replace(recipe, edm=edm, sampling_steps=today.sampling_steps)


def main() -> None:
    """Ship the run named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("name")
    parser.add_argument("--levels", type=int, default=31)
    parser.add_argument("--evaluation", type=Path, nargs="*", default=[])
    parser.add_argument("--tasks", type=Path)
    arguments = parser.parse_args()
    found = {
        f"{path.parent.name}, {part}": results
        for path in arguments.evaluation
        for part, results in read_json(path)["parts"].items()
    }
    folder = models_folder() / arguments.name
    run = load_run(arguments.run)
    run = replace(run, config=replace(run.config, recipe=sampled_as_today(run.config.recipe)))
    ship(run, folder, arguments.levels)
    megabytes = (folder / "weights.safetensors").stat().st_size / 1e6
    evidence = evidence_of(found, read_json(arguments.tasks) if arguments.tasks else None)
    card = card_of(arguments.name, run, megabytes, arguments.levels, evidence)
    (folder / "README.md").write_text(card, encoding="utf-8")
    print(f"wrote {folder}: {megabytes:.1f} MB")


if __name__ == "__main__":
    main()
