"""Put a trained run into the package: compact weights, configuration and model card.

    python runs/ship.py RUN NAME [--levels 31] [--fidelity FILE] [--tasks FILE] [--membership FILE]
        [--copies FILE]

writes src/gazediffusion/models/NAME. The files are those that runs/fidelity.py, runs/tasks.py,
runs/membership.py and runs/copies.py write with -o; their numbers go into the card. How many levels
a model needs: runs/rounding.py, and docs/results, "Rounded weights". Sampling is that of the recipe
as it is today: its levels and steps may have been chosen after training (docs/log.md).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

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
    """How near the model comes to people it has not seen, file by file and task by task."""
    rows = [
        "| people | windows | median ratio | above 1.5 | saccades | path | main sequence | C2ST |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for people, one in found.items():
        slope = one.get("main_sequence_percent")
        accuracy = one.get("c2st_features")
        rows.append(
            f"| {people} | {one['n']} | {one['median_ratio']:.2f} "
            f"| {one['n_above_1.5']} of {one['n_entries']} "
            f"| {one['saccade_count_percent']:+.1f} % | {one['path_length_percent']:+.1f} % "
            f"| {'' if slope is None else f'{slope:+.1f} %'} "
            f"| {'' if accuracy is None else f'{accuracy:.2f}'} |"
        )
    worst = "; ".join(
        f"{people}: " + ", ".join(f"{key} {value:.2f}" for key, value in one["worst"].items())
        for people, one in found.items()
    )
    return f"""\
Distances to held-out people, each divided by the training people's own (1 is as near as other
people are; `runs/fidelity.py`); counts, path length and slope against the training people's; C2ST:
how often a classifier tells the model's windows from people's (0.5: never).

{chr(10).join(rows)}

Largest ratios. {worst}."""


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


def privacy_lines(
    fidelity: Mapping[str, Any], attack: Mapping[str, Any] | None, near: Mapping[str, Any] | None
) -> str:
    """Copies of training windows, and the membership attack."""
    lines = []
    for people, one in fidelity.items():
        copies = one.get("memorisation")
        if copies:
            low, high = copies["share_of_copies_interval"]
            lines.append(
                f"- {people}: {100 * copies['share_of_copies']:.1f} % of the windows "
                f"[{100 * low:.1f}, {100 * high:.1f}] are nearer to a training window than all but "
                f"1 % of real held-out ones (1 % by chance), "
                f"{100 * copies['share_below_minimum']:.1f} % nearer than all of them "
                f"(`runs/fidelity.py`)"
            )
    for people, one in (near or {}).items():
        found = one["model"]["over its spread"]
        low, high = found["interval"]
        lines.append(
            f"- {people}: over a window's own spread, of which calm gaze has little, "
            f"{100 * found['share_of_copies']:.1f} % [{100 * low:.1f}, {100 * high:.1f}] are "
            f"nearer than all but 1 % of training people's windows are to those of other training "
            f"people, {100 * found['share_below_minimum']:.1f} % nearer than all of them "
            f"(`runs/copies.py`, {one['model']['n']} windows)"
        )
    if attack is not None:
        low, high = attack["interval"]
        lines.append(
            f"- membership: an attack by the model's loss tells training windows from held-out "
            f"ones with AUC {attack['auc']:.3f} [{low:.3f}, {high:.3f}] over windows, "
            f"{attack['auc_people']:.3f} over people; 0.5 is a coin (`runs/membership.py`, "
            f"{attack['n_members']} and {attack['n_others']} windows)"
        )
    return "\n".join(lines)


def evidence_of(
    fidelity: Mapping[str, Any] | None,
    tasks: Mapping[str, Any] | None,
    attack: Mapping[str, Any] | None,
    near: Mapping[str, Any] | None,
) -> str:
    """The card's part on fidelity and privacy."""
    if fidelity is None:
        return """\
How near its windows come to people nobody trained on, against how near other people come, what it
gets wrong, and how many of its windows are nearer to a training window than real ones are:
docs/results/README.md."""
    parts = [fidelity_table(fidelity), tasks_table(tasks) if tasks else ""]
    return "\n\n".join(part for part in [*parts, privacy_lines(fidelity, attack, near)] if part)


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
    names = ("fidelity", "tasks", "membership", "copies")
    for name in names:
        parser.add_argument(f"--{name}", type=Path)
    arguments = parser.parse_args()
    fidelity, tasks, attack, near = (
        None if (path := getattr(arguments, name)) is None else read_json(path) for name in names
    )
    folder = models_folder() / arguments.name
    run = load_run(arguments.run)
    run = replace(run, config=replace(run.config, recipe=sampled_as_today(run.config.recipe)))
    ship(run, folder, arguments.levels)
    megabytes = (folder / "weights.safetensors").stat().st_size / 1e6
    evidence = evidence_of(fidelity, tasks, attack, near)
    card = card_of(arguments.name, run, megabytes, arguments.levels, evidence)
    (folder / "README.md").write_text(card, encoding="utf-8")
    print(f"wrote {folder}: {megabytes:.1f} MB")


if __name__ == "__main__":
    main()
