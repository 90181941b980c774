"""Tables and lines about runs, windows and recordings, from the library's own summaries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from gazediffusion.cli.console import out, plain

if TYPE_CHECKING:
    from gazediffusion.data.inspection import TaskSummary
    from gazediffusion.data.windows import Windows
    from gazediffusion.evaluation.result import Evaluation
    from gazediffusion.geometry import Screen


def print_description(path: str) -> None:
    """What a file or folder is, in words."""
    import gazediffusion as gd

    if path.endswith(".safetensors") and Path(path).is_file():
        windows = gd.Windows.load(path)
        print_windows(windows)
        print_provenance(windows.provenance)
        return
    described = gd.describe(path)
    if described["kind"] == "run":
        print_run(described)
    else:
        out.print(plain(described["in_words"]))


def print_run(run: Mapping[str, Any]) -> None:
    """What a run is, and how far its training and calibration are."""
    recipe, data, metrics = run["recipe"], run["data"], run["epochs_done"]
    out.print(
        f"[bold]{recipe['name']} run[/bold]: {run['n_parameters']:,} parameters, "
        f"seed {run['seed']}, {run['precision']} on {run['device']}, windows of {run['length']} "
        f"samples at {run['rate_hz']:g} Hz"
    )
    out.print(
        f"trained on {data['n_windows']} windows of "
        f"{data['n_participants'] - data['n_held_out_participants']} participants "
        f"({plain(', '.join(data['tasks']))}), {data['n_held_out_windows']} windows of "
        f"{data['n_held_out_participants']} participants held out, data sha256 {data['sha256']}"
    )
    if metrics:
        done = f"{len(metrics)} of {recipe['epochs']} epochs"
        done += f", training loss {metrics[-1]['training_loss']:.5f}"
        losses = [m["validation_loss"] for m in metrics if m["validation_loss"] is not None]
        if losses:
            best = losses.index(min(losses))
            done += f", held-out loss {losses[-1]:.5f}, best {losses[best]:.5f} at epoch {best}"
        out.print(done)
    if run["has_statistics"]:
        statistics = run["conditioning"]["schema"]["statistics"]
        state = "calibrated" if run["is_calibrated"] else "not calibrated (gazediffusion calibrate)"
        out.print(f"conditioned on {len(statistics)} summary statistics, {state}")
    versions = run["gazediffusion_version"], run["torch_version"]
    out.print(f"trained with gazediffusion {versions[0]}, torch {versions[1]}")


def print_evaluation(evaluation: Evaluation) -> None:
    """The headline of an evaluation, after its warnings."""
    out.print(plain(evaluation.headline()), soft_wrap=True)


def inspection_table(summaries: list[TaskSummary], seconds: float) -> Table:
    """One row per task, and their sum."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("task")
    table.add_column("format")
    right = ("participants", "trials", "rate (Hz)", "eyes", "minutes")
    counted = ("lost", "blinks", "usable", "off screen", "longest segment")
    windows = (f"{seconds:g} s windows:\nposition", "\nvelocity")
    for name in (*right, *counted, *windows):
        table.add_column(name, justify="right")
    for one in summaries:
        table.add_row(
            plain(one.task),
            plain(one.format),
            str(len(one.participants)),
            str(one.n_trials),
            ", ".join(sorted(one.rates)) or "-",
            ", ".join(sorted(one.eyes)),
            *_sums([one]),
        )
    if len(summaries) > 1:
        participants = set().union(*(one.participants for one in summaries))
        n_trials = sum(one.n_trials for one in summaries)
        table.add_section()
        table.add_row("all", "", str(len(participants)), str(n_trials), "", "", *_sums(summaries))
    return table


def _sums(summaries: list[TaskSummary]) -> list[str]:
    """The columns that add up, from minutes to windows."""

    def count(name: str) -> int:
        return sum(getattr(one.counts, name) for one in summaries)

    total = max(count("total"), 1)
    return [
        f"{sum(one.minutes for one in summaries):.1f}",
        f"{count('lost') / total:.1%}",
        str(count("blinks")),
        f"{count('valid') / total:.1%}",
        f"{count('off_screen') / total:.1%}",
        f"{max(one.longest_segment_s for one in summaries):.1f} s",
        str(sum(one.position_windows for one in summaries)),
        str(sum(one.velocity_windows for one in summaries)),
    ]


def screen_words(screen: Screen | None) -> str:
    """A screen in words: `1280x720 px, 40x22.5 cm at 45 cm`."""
    return "unknown" if screen is None else screen.in_words()


def print_windows(windows: Windows) -> None:
    """What the windows are, how many by task and split, and what cleaning dropped."""
    import numpy as np

    grid = f"grid {windows.grid_px:g} px" if windows.grid_px else "no grid"
    scale = f", c_v {windows.velocity_scale:.4f}/s" if windows.velocity_scale else ""
    out.print(
        f"[bold]{windows.protocol} windows[/bold]: {windows.length} samples at "
        f"{windows.rate_hz:g} Hz, {'; '.join(map(screen_words, windows.screens))}, {grid}{scale}"
    )
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("task")
    for name in ("participants", "training", "windows", "held out", "windows"):
        table.add_column(name, justify="right")
    participant, task, held = windows.participant, windows.task, windows.is_validation
    rows = [(name, task == index) for index, name in enumerate(windows.tasks)]
    if len(rows) > 1:
        rows.append(("all", np.ones(len(windows), dtype=bool)))
    for name, chosen in rows:
        n_participants = [len(np.unique(participant[chosen & side])) for side in (~held, held)]
        n_windows = [int((chosen & side).sum()) for side in (~held, held)]
        cells = (
            sum(n_participants),
            n_participants[0],
            n_windows[0],
            n_participants[1],
            n_windows[1],
        )
        table.add_row(plain(name), *map(str, cells))
    out.print(table)
    _print_cleaning(windows.provenance)


def _print_cleaning(provenance: Mapping[str, Any]) -> None:
    counts = provenance.get("cleaning", {}).get("all")
    if counts:
        total = max(counts["total"], 1)
        kept = ("total", "valid", "blinks", "off_screen")
        dropped = [
            f"{count / total:.2%} {reason.replace('_', ' ')}"
            for reason, count in counts.items()
            if count and reason not in kept
        ]
        out.print(
            f"cleaning: {counts['total']:,} samples, {counts['valid'] / total:.2%} valid; "
            f"dropped {', '.join(dropped) or 'none'}; {counts['blinks']} blinks; "
            f"{provenance['windows_dropped_off_screen']} windows dropped as off screen"
        )
    without = provenance.get("participants_without_windows")
    if without:
        out.print(f"participants without a window: {plain(', '.join(without))}")


def print_provenance(provenance: Mapping[str, Any]) -> None:
    """By which version, from which files, with which settings."""
    out.print(f"prepared with gazediffusion {provenance.get('gazediffusion_version', 'unknown')}")
    out.print(f"data sha256 {provenance.get('data_sha256')}")
    sources = provenance.get("sources", [])
    for source in sources[:10]:
        out.print(
            f"from {plain(source['name'])} ({source['format']}, {source['bytes']:,} bytes, "
            f"sha256 {source['sha256'][:16]}...)"
        )
    if len(sources) > 10:
        out.print(f"and {len(sources) - 10} more files (--json lists all)")
    settings = ", ".join(f"{name}={value}" for name, value in provenance["config"].items())
    out.print(f"settings: {plain(settings)}")
