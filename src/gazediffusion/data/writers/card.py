"""The card of exported windows: what they are and where they come from, as JSON and in words."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gazediffusion import __version__
from gazediffusion.data.recordings import EVENT_CLASSES
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from gazediffusion.storage import read_parquet_header

CARD_KEY = "GazediffusionCard"


def screen_fields(screen_of_task: Mapping[str, Screen]) -> dict[str, Any]:
    """`screen` where there is one, otherwise `screens` by task."""
    different = list(dict.fromkeys(screen_of_task.values()))
    if len(different) == 1:
        return {"screen": vars(different[0])}
    return {"screens": {task: vars(screen) for task, screen in screen_of_task.items()}}


def complete_card(
    card: Mapping[str, Any] | None, pieces: Iterable[Windows]
) -> tuple[dict[str, Any], dict[str, Screen]]:
    """The card of these windows, and the screen of each task in the order of the windows.

    A card that is given says where the windows come from; their number and length, the tracker's
    steps in pixels by task where they are known, and the share of lost samples of windows with
    losses, are those of the windows.
    """
    n_windows, n_samples, n_lost = 0, 0, 0
    screens: dict[str, Screen] = {}
    steps: dict[str, set[tuple[float, ...]]] = {}
    for piece in pieces:
        n_windows += len(piece)
        is_lost = piece.is_lost
        n_samples, n_lost = n_samples + is_lost.size, n_lost + int(is_lost.sum())
        tasks, resolution = piece.identity["task"], piece.resolution_px
        for task, number in dict.fromkeys(zip(tasks, piece.screen_index, strict=True)):
            screen = piece.screens[number]
            if screens.setdefault(task, screen) != screen:
                raise GazeError(
                    f"task {task!r} was recorded on several screens",
                    remedy="choose the windows of one screen with select(), or save .safetensors",
                )
        is_coarse = resolution.any(axis=1)
        for task, step in zip(tasks[is_coarse], resolution[is_coarse], strict=True):
            steps.setdefault(task, set()).add(tuple(np.round(step, 4).tolist()))
    if n_windows == 0:
        raise GazeError("there are no windows to write")
    counts = {"n_windows": n_windows, "window_samples": piece.length}
    if card is None:
        card = {
            "format": "gazediffusion-windows",
            "synthetic": False,
            "gazediffusion_version": __version__,
            **counts,
            "rate_hz": piece.rate_hz,
            **screen_fields(screens),
            "provenance": dict(piece.provenance),
        }
    resolutions = {task: [list(one) for one in sorted(steps[task])] for task in sorted(steps)}
    complete = {**card, **counts} | ({"resolution_px": resolutions} if resolutions else {})
    if piece.labels is not None and "labels" not in card:
        complete["labels"] = {"classes": list(EVENT_CLASSES), "by": "those of the recordings"}
    if n_lost or "losses" in card:
        complete["share_lost"] = round(n_lost / n_samples, 6)
    return complete, screens


def readme_of(card: Mapping[str, Any], format: str) -> str:
    """The card in words."""
    seconds = card["window_samples"] / card["rate_hz"]
    how_long = f"{seconds:g} s at {card['rate_hz']:g} Hz"
    if "low_passed_from_hz" in card:
        how_long += f" (low-passed, generated at {card['low_passed_from_hz']:g} Hz)"
    units = f"""Gaze is in pixels, origin top left and y down; times are in milliseconds. Tables
also give degrees of visual angle from the screen's centre, where its size is known, and `x_screen`,
`y_screen`, normalized so that the screen is [-1, 1]. Each window is a trial of its own and begins
at 0 ms. {_events_lines(card, format)}
"""
    described = f"""{_screen_lines(card)}
{_losses_line(card)}- written by gazediffusion {card["gazediffusion_version"]} as {format}

{units}"""
    if not card["synthetic"]:
        return f"""# Gaze windows

These are **{card["n_windows"]} windows** of {how_long}.

{described}"""
    sampling = {"seed": card["seed"], **card["sampling"]}
    like = _style_line(sampling.pop("like", None))
    how = ", ".join(f"{key} {value}" for key, value in sampling.items() if value is not None)
    model, data = card["model"], card["model"]["trained_on"]
    n_participants = data["n_participants"] - data["n_held_out_participants"]
    trained_on = f"{data['n_windows']} windows of {n_participants} participants"
    generator = "a baseline" if "baseline" in model else "a diffusion model"
    return f"""# Synthetic gaze

These are **{card["n_windows"]} synthetic windows** of {how_long}.
No participant was recorded: {generator} generated them. Do not analyse or
publish them as recordings.

{_model_line(model)}
- trained on: {trained_on}, tasks {", ".join(data["tasks"])}
- sampling: {how}
{like}{described}"""


def _style_line(like: Mapping[str, Any] | None) -> str:
    """Whose summary statistics the windows have."""
    if like is None:
        return ""
    listed = ", ".join(f"`{one['name']}` (sha256 `{one['sha256']}`)" for one in like["recordings"])
    return (
        f"- in the style of one participant: {like['seconds']:g} s of gaze, {like['n_windows']} "
        f"windows{': ' if listed else ''}{listed}\n"
    )


def _model_line(model: Mapping[str, Any]) -> str:
    if "baseline" in model:
        smoothing = model.get("smoothing_cells")
        more = "" if smoothing is None else f", smoothing of {smoothing:g} cells"
        more += f" of the plug-in package {model['plugin']}" if "plugin" in model else ""
        return f"- baseline `{model['baseline']}`{more}"
    return (
        f"- model: recipe `{model['recipe']}`, training seed {model['training_seed']}, "
        f"{model['weights']} weights of epoch {model['epoch']}, sha256 `{model['weights_sha256']}`"
    )


def _events_lines(card: Mapping[str, Any], format: str) -> str:
    """Where the events in the files come from."""
    if "labels" not in card:
        return (
            "Fixations and saccades in ASC and BIDS files were found by a velocity threshold of\n"
            "30 deg/s; saccades last 12 ms or more, fixations 60 ms or more."
        )
    lines = f"Samples have the class of their event. Labels: {card['labels']['by']}."
    if format == "asc":
        lines += "\nPursuits are fixations in ASC files; messages LABEL tell them apart."
    return lines


def _losses_line(card: Mapping[str, Any]) -> str:
    if "share_lost" not in card:
        return ""
    percent = f"{100 * card['share_lost']:.2g} %"
    line = f"- losses: the eye is lost in {percent} of the samples, which are missing; blinks "
    line += "(50 to 1,000 ms) are marked"
    if "losses" in card:
        fitted = card["losses"]
        line += (
            f". They are synthetic too: drawn by a model of {fitted['n_losses']} losses of "
            f"{fitted['n_participants']} training participants, which also moves the gaze up to "
            "100 ms before and 150 ms after as the lid does. The same seed without losses gives "
            "the gaze beneath"
        )
    return line + "\n"


def _screen_lines(card: Mapping[str, Any]) -> str:
    if "screen" in card:
        return f"- screen: {Screen(**card['screen']).in_words()}"
    listed = (f"{task}: {Screen(**one).in_words()}" for task, one in card["screens"].items())
    return f"- screens: {'; '.join(listed)}"


def read_card(path: Path) -> dict[str, Any] | None:
    """The card of exported windows at a file or folder; None where there is none.

    A Parquet or NPZ file contains its card; that of a CSV file is in the JSON file beside it.
    """
    inside = _card_inside(path)
    if inside is not None:
        return inside
    beside = path / "card.json" if path.is_dir() else path.with_suffix(".json")
    if beside == path or not beside.is_file():
        return None
    try:
        fields = json.loads(beside.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise GazeError(f"the card is damaged ({error})", path=beside) from error
    card = fields.get(CARD_KEY) if beside.parent != path and isinstance(fields, dict) else fields
    return card if isinstance(card, dict) else None


def _card_inside(path: Path) -> dict[str, Any] | None:
    if path.suffix.lower() == ".parquet":
        return read_parquet_header(path)
    if path.suffix.lower() != ".npz":
        return None
    try:
        with zipfile.ZipFile(path) as archive, archive.open("card.npy") as stream:
            card = json.loads(str(np.lib.format.read_array(stream)))
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    return card if isinstance(card, dict) else None
