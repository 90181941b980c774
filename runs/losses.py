"""Fit the model of losses to training participants, and compare it with held-out ones.

    python runs/losses.py FOLDER [--fit] [-o FILE]    # FOLDER has gazecom.parquet, bioeye.parquet

The split is that of the packaged model: recordings are prepared as for its training (docs/joint.md)
and the counts are compared with its configuration. With --fit the tables are written into its
folder. Then, for each task, losses are drawn for as many recordings as the held-out participants
have, each as long as theirs, on generated windows joined end to end, again and again for 300 min.
All sets are measured by `data.losses.find_losses`. Prints a Markdown table (-o: also writes it);
intervals are 95 % over held-out participants by bootstrap.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gazediffusion as gd
from gazediffusion.data.losses import Losses, find_losses
from gazediffusion.files import read_json
from gazediffusion.generation.losses import LossModel
from gazediffusion.models.pretrained import LOSSES, find_model

Floats = NDArray[np.float64]

SCREENS = {
    "gazecom": gd.Screen(1280, 720, 40, 22.5, 45),
    "bioeye": gd.Screen(1680, 1050, 47.4, 29.7, 55),
}
TASKS = {
    "gazecom": {
        "natural_movies": "movies",
        "natural_movies_repeated": "movies",
        "hollywood_trailers": "trailers",
        "stop_motion_movies": "stop-motion",
        "static_images": "stills",
        "additional_shuffled_stills": "stills",
    },
    "bioeye": {"reading_text": "reading", "random_dot_saccades": "dots"},
}
SAME = {"gazecom": (("R_K1B1", "K1B"),), "bioeye": ()}
N_WINDOWS, MINUTES, N_BOOTSTRAP = 100, 300, 500
COLUMNS = (
    "losses per min",
    "time lost (%)",
    "without losses (%)",
    "duration (ms)",
    "90 %",
    "seen between (s)",
    "90 %",
    "flank, vertical (deg)",
    "90 %",
)


def observed(folder: Path) -> tuple[list[Losses], list[Losses]]:
    """The losses of every recording of the training and of the held-out participants."""
    sides: tuple[list[Losses], list[Losses]] = ([], [])
    counts = np.zeros(4, dtype=int)
    for name, screen in SCREENS.items():
        recordings = gd.read(folder / f"{name}.parquet", screen=screen)
        config = gd.PrepareConfig(
            task_names=tuple(TASKS[name].items()), same_participant=SAME[name]
        )
        windows = gd.prepare(recordings, config)
        held_out = windows.validation
        counts += [
            len(windows.participants),
            len(held_out),
            len(windows.train),
            len(windows.held_out),
        ]
        for one in recordings:
            if one.participant in windows.participants:
                losses = find_losses(replace(one, task=TASKS[name][one.task]))
                sides[one.participant in held_out].append(losses)
    data = read_json(find_model("joint") / "config.json")["data"]
    names = ("n_participants", "n_held_out_participants", "n_windows", "n_held_out_windows")
    assert counts.tolist() == [data[one] for one in names], "the split is not the packaged model's"
    return sides


def generated(losses: LossModel, task: str, like: list[Losses], seed: int) -> Iterator[Losses]:
    """Losses of generated recordings of a task, as long as these."""
    model = gd.load("joint")
    windows = model.sample(N_WINDOWS, task=task, seed=seed, quality="fast")
    joined = np.concatenate(list(windows.cut()), axis=1)
    n_draws = math.ceil(MINUTES * 60_000 / sum(one.duration_ms for one in like))
    for number, one in enumerate(like * n_draws):
        n_samples = round(one.duration_ms * model.config.rate_hz / 1000)
        first = number * model.config.length % (joined.shape[1] - n_samples)
        gaze = joined[None, :, first : first + n_samples]
        cut = gd.Windows.from_array(gaze, windows.rate_hz, windows.screen, tasks=task)
        yield find_losses(recording_of(losses.add_to(cut, seed, number)))


def recording_of(windows: gd.Windows, number: int = 0) -> gd.Recording:
    """A window as a recording."""
    pixels = windows.to_numpy("px")[number]
    time_ms = np.arange(windows.length, dtype=np.float64) * 1000.0 / windows.rate_hz
    task = windows.tasks[windows.task[number]]
    return gd.Recording(
        participant="synthetic",
        task=task,
        trial=str(number),
        time_ms=time_ms,
        gaze_px={"cyclopean": pixels},
        path=Path("windows"),
        format="windows",
        screen=windows.screens[windows.screen_index[number]],
    )


def measured(recordings: Sequence[Losses]) -> Floats:
    """The numbers of COLUMNS."""
    losses = [loss for one in recordings for loss in one.losses]
    total_ms = sum(one.duration_ms for one in recordings)
    durations = [one.duration_ms for one in losses if one.is_whole] or [math.nan]
    seen = [one.seen_before_ms / 1000 for one in losses if math.isfinite(one.seen_before_ms)]
    flanks = [np.abs(one.flank_deg[1]).max() for one in losses if one.flank_deg is not None]
    return np.array(
        [
            len(losses) / total_ms * 60_000,
            100 * sum(one.lost_ms for one in recordings) / total_ms,
            100 * np.mean([not one.losses for one in recordings]),
            *np.quantile(durations, [0.5, 0.9]),
            *np.quantile(seen or [math.nan], [0.5, 0.9]),
            *np.quantile(flanks or [math.nan], [0.5, 0.9]),
        ]
    )


def interval(recordings: Sequence[Losses]) -> Floats:
    """2.5 and 97.5 % of the numbers over participants, (2, number)."""
    by_participant: dict[str, list[Losses]] = {}
    for one in recordings:
        by_participant.setdefault(one.participant, []).append(one)
    groups, rng = list(by_participant.values()), np.random.default_rng(0)
    draws = [
        measured([one for k in rng.integers(len(groups), size=len(groups)) for one in groups[k]])
        for _ in range(N_BOOTSTRAP)
    ]
    return np.asarray(np.nanquantile(draws, [0.025, 0.975], axis=0))


def row(task: str, name: str, recordings: Sequence[Losses], cells: Sequence[str]) -> str:
    """One line of the table."""
    n, minutes = len(recordings), sum(one.duration_ms for one in recordings) / 60_000
    return " | ".join(["", task, name, f"{n:,}", f"{minutes:.0f}", *cells, ""]).strip()


def table(losses: LossModel, sides: tuple[list[Losses], list[Losses]], seed: int) -> Iterator[str]:
    """The lines of the table, three for each task."""
    head = ["task", "set", "recordings", "min", *COLUMNS]
    yield f"| {' | '.join(head)} |"
    yield "|---|---|" + "---:|" * (len(head) - 2)
    for task in losses.tasks:
        training, held_out = ([one for one in side if one.task == task] for side in sides)
        drawn = list(generated(losses, task, held_out, seed))
        n = len({one.participant for one in held_out})
        low, high = interval(held_out)
        value = measured(held_out)
        cells = [f"{a:.3g} [{b:.3g}, {c:.3g}]" for a, b, c in zip(value, low, high, strict=True)]
        yield row(task, f"{n} held-out participant{'s' if n > 1 else ''}", held_out, cells)
        for name, recordings in (("training", training), ("generated", drawn)):
            yield row("", name, recordings, [f"{one:.3g}" for one in measured(recordings)])


def main() -> None:
    """Fit where asked to, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--fit", action="store_true", help="write the packaged model's tables")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    sides = observed(given.folder)
    model = find_model("joint")
    if given.fit:
        sources: Any = [f"{name}.parquet" for name in SCREENS]
        LossModel.fit(sides[0], sources=sources).save(model / LOSSES)
        print(f"wrote {model / LOSSES}: {(model / LOSSES).stat().st_size / 1000:.0f} kB")
    lines = []
    for line in table(LossModel.load(model), sides, given.seed):
        lines.append(line)
        print(line, flush=True)
    if given.output:
        given.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
