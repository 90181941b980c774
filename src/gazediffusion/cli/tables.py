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
    from gazediffusion.geometry import Screen


def print_run(folder: Path, as_json: bool = False) -> None:
    """What a run is, and how far it has come."""
    from gazediffusion.models.checkpoint import read_config, read_metrics
    from gazediffusion.models.unet import n_parameters

    config = read_config(folder)
    metrics = read_metrics(folder)
    if as_json:
        out.print_json(data={"kind": "run", **config.to_json(), "epochs_done": metrics})
        return
    recipe, data = config.recipe, config.data
    out.print(
        f"[bold]{recipe.name} run[/bold]: {n_parameters(recipe.network):,} parameters, "
        f"seed {config.seed}, {config.precision} on {config.device}, windows of {config.length} "
        f"samples at {config.rate_hz:g} Hz"
    )
    out.print(
        f"trained on {data['n_windows']} windows of "
        f"{data['n_participants'] - data['n_held_out_participants']} people "
        f"({plain(', '.join(data['tasks']))}), {data['n_held_out_windows']} windows of "
        f"{data['n_held_out_participants']} people held out, data sha256 {data['sha256']}"
    )
    done = f"{len(metrics)} of {recipe.epochs} epochs"
    if metrics:
        done += f", training loss {metrics[-1]['training_loss']:.5f}"
        losses = [m["validation_loss"] for m in metrics if m["validation_loss"] is not None]
        if losses:
            best = losses.index(min(losses))
            done += f", held-out loss {losses[-1]:.5f}, best {losses[best]:.5f} at epoch {best}"
    out.print(done)
    out.print(f"made by gazediffusion {config.gazediffusion_version}, torch {config.torch_version}")


def print_evaluation(results: Mapping[str, Any]) -> None:
    """The headline of an evaluation: ratios to the floor by family."""
    ratios = results["ratios"]
    names = list(results["sets"]["synthetic"])
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("ratio to the floor")
    for name in names:
        table.add_column(plain(name), justify="right")
    for family, by_name in ratios["families"].items():
        table.add_row(family, *(f"{by_name[name]:.2f}" for name in names))
    table.add_section()
    table.add_row("overall", *(f"{ratios['overall'][name]:.2f}" for name in names))
    out.print(table)
    real = results["sets"]["real"]
    out.print(
        f"real: {real['n_windows']} windows of {real['n_participants']} people; every other set "
        f"cut to {results['about']['n_common']} windows; 1.0 is as near as other people"
    )


def inspection_table(summaries: list[TaskSummary], seconds: float) -> Table:
    """One row per task, and their sum."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("task")
    table.add_column("format")
    right = ("people", "trials", "rate (Hz)", "eyes", "minutes")
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
        people = set().union(*(one.participants for one in summaries))
        n_trials = sum(one.n_trials for one in summaries)
        table.add_section()
        table.add_row("all", "", str(len(people)), str(n_trials), "", "", *_sums(summaries))
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
        f"{windows.rate_hz:g} Hz, {screen_words(windows.screen)}, {grid}{scale}"
    )
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("task")
    for name in ("people", "training", "windows", "validation", "windows"):
        table.add_column(name, justify="right")
    participant, task, held = windows.participant, windows.task, windows.is_validation
    rows = [(name, task == index) for index, name in enumerate(windows.tasks)]
    if len(rows) > 1:
        rows.append(("all", np.ones(len(windows), dtype=bool)))
    for name, chosen in rows:
        n_people = [len(np.unique(participant[chosen & side])) for side in (~held, held)]
        n_windows = [int((chosen & side).sum()) for side in (~held, held)]
        cells = (sum(n_people), n_people[0], n_windows[0], n_people[1], n_windows[1])
        table.add_row(plain(name), *map(str, cells))
    out.print(table)
    _print_cleaning(windows.provenance)


def _print_cleaning(provenance: Mapping[str, Any]) -> None:
    counts = provenance.get("cleaning", {}).get("all")
    if counts:
        from gazediffusion.data.cleaning import REASONS

        total = max(counts["total"], 1)
        dropped = [
            f"{counts[reason] / total:.2%} {reason.replace('_', ' ')}"
            for reason in REASONS
            if counts[reason]
        ]
        out.print(
            f"cleaning: {counts['total']:,} samples, {counts['valid'] / total:.2%} valid; "
            f"dropped {', '.join(dropped) or 'none'}; {counts['blinks']} blinks; "
            f"{provenance['windows_dropped_off_screen']} windows dropped as off screen"
        )
    without = provenance.get("participants_without_windows")
    if without:
        out.print(f"no window from: {plain(', '.join(without))}")


def print_provenance(provenance: Mapping[str, Any]) -> None:
    """By which version, from which files, with which settings."""
    out.print(f"made by gazediffusion {provenance.get('gazediffusion_version', 'unknown')}")
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
