"""Tables and lines about runs, windows and recordings, from the library's own summaries."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from gazediffusion.cli.console import out, plain, warn
from gazediffusion.storage import is_remote

if TYPE_CHECKING:
    from gazediffusion.data.inspection import TaskSummary
    from gazediffusion.data.windows import Windows
    from gazediffusion.diffusion.likelihood import Bound
    from gazediffusion.evaluation.benchmark import BenchmarkRow
    from gazediffusion.evaluation.result import Evaluation
    from gazediffusion.scoring.scores import Scores
    from gazediffusion.screen import Screen


_SHOWN = 10  # odd windows
# Why samples are dropped, in the words of the table.
_DROPPED = (
    ("lost", "lost"),
    ("zero", "zero"),
    ("frozen", "frozen"),
    ("labelled_blink", "labelled as blinks"),
    ("padding", "beside losses"),
    ("too_fast", "too fast"),
    ("repeated_time", "at repeated times"),
)


def print_description(path: str) -> None:
    """What a file or folder is, in words."""
    import gazediffusion as gd

    if path.endswith(".safetensors") and (is_remote(path) or Path(path).is_file()):
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
        state = "calibrated" if run["is_calibrated"] else "not calibrated: train it on"
        out.print(f"conditioned on {len(statistics)} summary statistics, {state}")
    versions = run["gazediffusion_version"], run["torch_version"]
    out.print(f"trained with gazediffusion {versions[0]}, torch {versions[1]}")


def print_bound(bound: Bound, representation: str) -> None:
    """The variational bound of a run, its standard error and its parts."""
    out.print(
        f"variational bound on held-out windows: {bound.total:.4f} nats per dimension "
        f"({representation}), standard error {bound.standard_error:.4f}"
    )
    if bound.log_determinant:
        out.print(f"as a density of position: {bound.total_in_position:.4f} nats per dimension")
    out.print(
        f"prior {bound.prior:.2g}, diffusion {bound.diffusion:.4f}, reconstruction "
        f"{bound.reconstruction:.4f}; {bound.n_windows} windows, {bound.n_steps} steps of each"
    )


def print_evaluation(evaluation: Evaluation) -> None:
    """The headline of an evaluation, after its warnings."""
    out.print(plain(evaluation.headline()), soft_wrap=True)


def print_benchmark(row: BenchmarkRow) -> None:
    """A row of the benchmark beside that of real windows."""
    out.print(
        f"[bold]benchmark of {plain(row.task)}[/bold], version {row.benchmark_version}: "
        f"{row.n_windows} windows of {row.n_given}, 95 % intervals"
    )
    table = Table(box=None, header_style="bold", pad_edge=False)
    real = row.of_real()
    for title in ("", plain(row.name), plain(real.name)):
        table.add_column(title)
    of_real = real.figures()
    for title, words in row.figures().items():
        table.add_row(title, words, of_real.get(title, ""))
    out.print(table)


def inspection_table(one: TaskSummary, seconds: float) -> Table:
    """What one task of one format holds: a row per fact, with where it was found."""
    counts = one.counts
    total = max(counts.total, 1)
    table = Table(box=None, header_style="bold", pad_edge=False, title_justify="left")
    table.title = f"{plain(one.task)} ({plain(one.format)})"
    table.add_column("", no_wrap=True)
    table.add_column("")
    table.add_column("from", max_width=22)

    def add(name: str, value: str, source: str = "") -> None:
        table.add_row(name, plain(value), plain(source))

    def found(name: str) -> tuple[str, str]:
        facts = one.facts.get(name, ())
        values, sources = ({fact[k] for fact in facts} - {""} for k in (0, 1))
        return shortened(values), shortened(sources)

    names, source = sorted(one.participants), found("participant")[1]
    add("participants", f"{len(names)}: {shortened(names)}", source)
    add("trials", f"{one.n_trials}, {one.minutes:.1f} minutes")
    add("rate", f"{shortened(one.rates) or 'unknown'} Hz")
    add("eye", f"{shortened(one.eyes_used)} of {shortened(one.eyes)}")
    for name in ("columns", "labels", "unit", "origin", "screen"):
        if name in one.facts:
            add(name, *found(name))
    add("samples", f"{counts.total:,}, {counts.valid / total:.1%} valid")
    dropped = (f"{getattr(counts, reason) / total:.2%} {words}" for reason, words in _DROPPED)
    add("dropped", ", ".join(dropped))
    shares = sorted((quality.completeness, name) for name, quality in one.quality.items())
    add("completeness", _first_and_last([f"{share:.1%} ({name})" for share, name in shares], 3))
    errors = sorted(
        (-quality.calibration_error_deg, name)
        for name, quality in one.quality.items()
        if quality.calibration_error_deg is not None
    )
    if errors:
        words = _first_and_last([f"{-error:.2f} ({name})" for error, name in errors], 3)
        n_silent = len(one.quality) - len(errors)
        silent = f"; unknown for {n_silent}" if n_silent else ""
        add("calibration", f"error in deg: {words}{silent}", "file")
    add("blinks", f"{counts.blinks:,}")
    off = f"{counts.off_screen / total:.2%} of the samples, {one.off_screen_windows} windows"
    add("off screen", off)
    add("longest", f"{one.longest_segment_s:.1f} s without a loss")
    windows = f"{one.position_windows:,} position, {one.velocity_windows:,} velocity"
    add(f"{seconds:g} s windows", windows)
    return table


def shortened(names: Collection[str], most: int = 4) -> str:
    """Names in order; of many the first and the last: `P01, P02, P03 ... P20`."""
    return _first_and_last(sorted(names), most)


def _first_and_last(listed: Sequence[str], most: int) -> str:
    if len(listed) <= most:
        return ", ".join(listed)
    return f"{', '.join(listed[: most - 1])} ... {listed[-1]}"


def screen_words(screen: Screen | None) -> str:
    """A screen in words: `1280x720 px, 40x22.5 cm at 45 cm`."""
    return "unknown" if screen is None else screen.in_words()


def print_windows(windows: Windows) -> None:
    """What the windows are, how many by task and split, and what cleaning dropped."""
    import numpy as np

    import gazediffusion as gd

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
    if windows.labels is not None:
        shares = np.bincount(windows.labels, minlength=5) / len(windows.labels)
        words = zip(("no label", *gd.EVENT_CLASSES), shares, strict=True)
        out.print(f"labels: {', '.join(f'{share:.1%} {word}' for word, share in words)}")
    if windows.targets is not None:
        share = 1 - np.isnan(windows.targets[0]).mean()
        others = windows.provenance.get("targets", {}).get("rows_without_gaze", 0)
        out.print(f"targets: known for {share:.1%} of the samples; {others} rows without gaze")
    _print_cleaning(windows.provenance)


def _print_cleaning(provenance: Mapping[str, Any]) -> None:
    for line in provenance.get("warnings", ()):
        warn(line)
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
    excluded = provenance.get("participants_excluded", {})
    if excluded:
        out.print(f"participants excluded by data quality: {len(excluded)}")
    for name, reason in excluded.items():
        out.print(f"  {plain(name)}: {plain(reason)}")
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


def print_scores(scores: Scores) -> None:
    """The oddest windows first, and what could not be scored."""
    columns, order = scores.columns, scores.order[:_SHOWN]
    titles = {
        "recording": "recording", "participant": "participant", "task": "task", "trial": "trial",
        "onset_ms": "onset (s)", "profile_percentile": "profile %",
        "denoising_error_percentile": "error %", "log_likelihood_percentile": "likelihood %",
        "denoising_error": "error", "log_likelihood": "log-likelihood",
        "oddest_level": "odd at sigma", "oddest_span_ms": "odd from (s)",
    }  # fmt: skip
    table = Table(title=f"oddest of {len(scores)} windows")
    shown = [name for name in titles if columns[name].dtype == object or _is_known(columns[name])]
    for name in shown:
        table.add_column(titles[name], justify="left" if columns[name].dtype == object else "right")
    for row in order:
        table.add_row(*(_cell(name, columns[name][row]) for name in shown))
    out.print(table)
    out.print(scores.coverage.in_words(scores.windows.length / scores.windows.rate_hz))


def _is_known(values: Any) -> bool:
    return not bool((values != values).all())


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return plain(value)
    if name.endswith("_ms"):
        return f"{value / 1000:.1f}"
    return f"{value:.1f}" if name.endswith("percentile") else f"{value:.3g}"


def print_installed() -> None:
    """The readers, exporters, metrics and generators of plug-ins."""
    import gazediffusion as gd

    groups = ("readers", "exporters", "metrics", "generators")
    found = [one for group in groups for one in gd.find_plugins(group).values()]  # type: ignore[arg-type]
    for one in found:
        out.print(plain(f"{one.group.removesuffix('s')} {one.name}: {one.package}"))
    if not found:
        out.print("no plug-ins are installed")
