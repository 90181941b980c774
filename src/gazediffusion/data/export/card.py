"""The card of exported windows: what they are and where they come from, as JSON and in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gazediffusion.data.export.projection import Projection
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.geometry import Screen
from gazediffusion.version import __version__

CARD_KEY = "GazediffusionCard"


def screen_fields(screen_of_task: Mapping[str, Screen]) -> dict[str, Any]:
    """`screen` where there is one, otherwise `screens` by task."""
    different = list(dict.fromkeys(screen_of_task.values()))
    if len(different) == 1:
        return {"screen": vars(different[0])}
    return {"screens": {task: vars(screen) for task, screen in screen_of_task.items()}}


def complete_card(
    card: Mapping[str, Any] | None, pieces: Iterable[Windows], projection: Projection
) -> tuple[dict[str, Any], dict[str, Screen]]:
    """The card of these windows, and the screen of each task in the order of the windows.

    A card that is given says where the windows come from; their number and length, and the
    tracker's steps in pixels by task where they are known, are those of the windows.
    """
    n_windows, length, rate_hz = 0, 0, 0.0
    screens: dict[str, Screen] = {}
    steps: dict[str, set[tuple[float, ...]]] = {}
    provenance: Mapping[str, Any] = {}
    for piece in pieces:
        n_windows += len(piece)
        length, rate_hz = projection.n_samples or piece.length, piece.rate_hz
        provenance = piece.provenance
        known, of_window = projection.screens(piece)
        for task, number in zip(piece.task.tolist(), of_window.tolist(), strict=True):
            name, screen = piece.tasks[task], known[number]
            if screens.setdefault(name, screen) != screen:
                raise GazeError(
                    f"task {name!r} was recorded on several screens",
                    remedy="choose the windows of one screen with select(), or save .safetensors",
                )
        resolution = projection.resolution_px(piece)
        is_coarse = resolution.any(axis=1)
        for task, step in zip(piece.task[is_coarse], resolution[is_coarse], strict=True):
            steps.setdefault(piece.tasks[task], set()).add(tuple(np.round(step, 4).tolist()))
    if n_windows == 0:
        raise GazeError("there are no windows to write")
    resolutions = {task: [list(one) for one in sorted(steps[task])] for task in sorted(steps)}
    if card is None:
        card = {
            "format": "gazediffusion-windows",
            "synthetic": False,
            "gazediffusion_version": __version__,
            "n_windows": n_windows,
            "window_samples": length,
            "rate_hz": rate_hz,
            **screen_fields(screens),
            "provenance": dict(provenance),
        }
    complete = {**card, "n_windows": n_windows, "window_samples": length}
    return complete | ({"resolution_px": resolutions} if resolutions else {}), screens


def readme_of(card: Mapping[str, Any], format: str) -> str:
    """The card in words."""
    seconds = card["window_samples"] / card["rate_hz"]
    how_long = f"{seconds:g} s at {card['rate_hz']:g} Hz"
    units = """Gaze is in pixels, origin top left and y down; times are in milliseconds. Tables also
give degrees of visual angle from the screen's centre, where its size is known, and `x_screen`,
`y_screen`, normalized so that the screen is [-1, 1]. Each window is a trial of its own and begins
at 0 ms. Fixations and saccades in ASC and BIDS files were found by a velocity threshold of
30 deg/s.
"""
    written = f"- written by gazediffusion {card['gazediffusion_version']} as {format}"
    if not card["synthetic"]:
        return f"""# Gaze windows

These are **{card["n_windows"]} windows** of {how_long}.

{_screen_lines(card)}
{written}

{units}"""
    sampling = {"seed": card["seed"], **card["sampling"]}
    how = ", ".join(f"{key} {value}" for key, value in sampling.items() if value is not None)
    return f"""# Synthetic gaze

These are **{card["n_windows"]} synthetic windows** of {how_long}.
No participant was recorded: {_generated_by(card["model"])} generated them. Do not analyse or
publish them as recordings.

{_model_lines(card["model"])}
- sampling: {how}
{_screen_lines(card)}
{written}

{units}"""


def _generated_by(model: Mapping[str, Any]) -> str:
    return "a baseline" if "baseline" in model else "a diffusion model"


def _model_lines(model: Mapping[str, Any]) -> str:
    data = model["trained_on"]
    if "baseline" in model:
        smoothing = model.get("smoothing_cells")
        more = "" if smoothing is None else f", smoothing of {smoothing:g} cells"
        lines = [f"- baseline `{model['baseline']}`{more}"]
    else:
        lines = [
            f"- model: recipe `{model['recipe']}`, training seed {model['training_seed']}, "
            f"{model['weights']} weights of epoch {model['epoch']}, "
            f"sha256 `{model['weights_sha256']}`"
        ]
    n_participants = data["n_participants"] - data["n_held_out_participants"]
    tasks = ", ".join(data["tasks"])
    lines.append(
        f"- trained on: {data['n_windows']} windows of {n_participants} participants, tasks {tasks}"
    )
    return "\n".join(lines)


def _screen_lines(card: Mapping[str, Any]) -> str:
    if "screen" in card:
        return f"- screen: {Screen(**card['screen']).in_words()}"
    listed = (f"{task}: {Screen(**one).in_words()}" for task, one in card["screens"].items())
    return f"- screens: {'; '.join(listed)}"


def read_card(path: Path) -> dict[str, Any] | None:
    """The card of exported windows at a file or folder; None where there is none."""
    if path.is_dir():
        card_path = path / "card.json"
        return read_fields(card_path) if card_path.is_file() else None
    sidecar = path.with_suffix(".json")
    card = read_fields(sidecar).get(CARD_KEY) if sidecar.is_file() and sidecar != path else None
    return card if isinstance(card, dict) else None


def read_fields(path: Path) -> dict[str, Any]:
    """The fields of a JSON file, empty where it holds no object."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise GazeError(f"the card is damaged ({error})", path=path) from error
    return values if isinstance(values, dict) else {}
