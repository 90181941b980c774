"""Scores of recordings: windows that cover every valid segment are scored, compared and tabulated.

One row for each window, with percentiles among held-out participants and provenance.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion import __version__
from gazediffusion.data.recordings import Recording
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.jobs import Job, Show, nothing
from gazediffusion.model import Model, load
from gazediffusion.network.pretrained import SCORES, pretrained_folder
from gazediffusion.options import Options, grouped
from gazediffusion.scoring.percentiles import MOST_WINDOWS, Percentiles, n_to_score, values_of
from gazediffusion.scoring.scorer import CONTRASTS, Floats, RawScores, Scorer
from gazediffusion.settings import CleaningConfig, Computing, Scoring
from gazediffusion.storage import (
    ending_of,
    is_file,
    read_json,
    read_parquet_header,
    require_free,
    upload_changes,
    write_json,
    written_whole,
)

if TYPE_CHECKING:
    import polars as pl

    from gazediffusion.data.reading import Recordings

FORMATS = ("parquet", "csv")
PICTURES = "*.png"  # by which a folder of pictures is known


def score(
    recordings: Recordings | Windows | Path | str,
    output: Path | str | None = None,
    model: Model | Path | str = "default",
    *options: Options,
    plot: Path | str | None = None,
    stride_s: float | None = None,
    cleaning: CleaningConfig | None = None,
    progress: Show = nothing,
    overwrite: bool = False,
    **given: Any,
) -> Scores:
    """Score every window of recordings: which are odd to a model, and how odd.

    recordings: what `read` gives, windows of the model's length and rate, or a path. output: a
    .parquet or .csv file to write. plot: a folder for a picture of each recording. stride_s: time
    between windows; None is their length. The last window of a segment ends with it, so that no
    valid segment of a window's length is left out. A complete output of the same windows, weights
    and settings raises CompleteError. progress: called with the phase of the work,
    what is done, of how much, and a note.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=2, minutes=0.3, rate_hz=250)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> scores = gd.score("study", has_likelihood=False, n_noise=1)
    >>> scores
    Scores(2 windows, calibrated)
    """
    loaded = model if isinstance(model, Model) else load(model)
    scoring, computing = grouped(options, given, Scoring, Computing)
    scorer = Scorer(loaded.run, scoring, computing.batch_size)
    if output is not None and ending_of(Path(output)) not in FORMATS:
        require_scores_path(Path(output), overwrite)
    cut = _cut(recordings, loaded, stride_s, cleaning)
    n_windows = len(cut.windows)

    def scored(show: Show) -> Scores:
        if plot is not None:
            require_free(Path(plot), overwrite, PICTURES)
        show("scoring", 0, n_windows, "")
        raw = scorer.scores(cut.windows, lambda done: show("scoring", done, n_windows, ""))
        return _tabulated(cut, raw, scorer)

    if output is None:
        scores = scored(progress)
    else:
        path = Path(output)
        made_of = _made_of(cut, scorer)
        with Job(path, made_of, progress, there=lambda: _there(path), overwrite=overwrite) as job:
            job.require_work()
            require_scores_path(path, overwrite)
            scores = scored(job.step)
            scores = replace(scores, card={**scores.card, "made_of": job.decisive})
            scores.save(path, overwrite=overwrite)
    if plot is not None:
        scores.plot(plot, overwrite=overwrite)
    return scores


def _made_of(cut: _Cut, scorer: Scorer) -> dict[str, Any]:
    """What decides scores: the windows by content, the weights and the settings."""
    windows, found = cut.windows, hashlib.sha256()
    for one in (windows.gaze, windows.starts, windows.task, windows.participant):
        found.update(np.ascontiguousarray(one).tobytes())
    names = [*cut.names, *windows.tasks, *windows.participants]
    found.update("\n".join(names).encode())
    table = Percentiles.load(scorer.run.path)
    return {
        "windows_sha256": found.hexdigest(),
        "weights_sha256": scorer.run.weights_sha256,
        "scores": asdict(scorer.config),
        "calibration": None if table is None else dict(table.settings),
    }


def _there(path: Path) -> Any:
    """What decided the scores in a file; None where there are none."""
    if not is_file(path):
        return None
    is_csv = ending_of(path) == "csv"
    card = read_json(card_of(path)) if is_csv and is_file(card_of(path)) else None
    return ((card if is_csv else read_parquet_header(path)) or {}).get("made_of")


def calibrate_scores(
    model: Model | Path | str,
    windows: Windows | Sequence[Windows],
    *options: Options,
    n: int = MOST_WINDOWS,
    progress: Show = nothing,
    overwrite: bool = False,
    **given: Any,
) -> Path:
    """Compare future scores of a run with held-out participants: writes RUN/scores.json.

    windows: with training and held-out participants, as the run was trained on. n: windows of each
    task, at most, of either.

    >>> import gazediffusion as gd
    >>> windows = gd.Windows.load("windows.safetensors")  # doctest: +SKIP
    >>> gd.calibrate_scores("run", windows)  # doctest: +SKIP
    PosixPath('run/scores.json')
    >>> try:
    ...     gd.calibrate_scores("default", [])
    ... except gd.GazeError as error:
    ...     print(error)  # doctest: +ELLIPSIS
    /...joint: a packaged model is not changed
    """
    loaded = model if isinstance(model, Model) else load(model)
    path = loaded.run.path / SCORES
    if loaded.run.path.parent == pretrained_folder():
        raise GazeError("a packaged model is not changed", path=loaded.run.path)
    if path.exists() and not overwrite:
        raise GazeError(
            "the scores of this model are calibrated already",
            path=path,
            remedy="give `overwrite` to calibrate them again",
        )
    parts = [windows] if isinstance(windows, Windows) else list(windows)
    scoring, computing = grouped(options, given, Scoring, Computing)
    scorer = Scorer(loaded.run, scoring, computing.batch_size)
    total = n_to_score(parts, n)
    shown = lambda done: progress("calibrating scores", done, total, "")  # noqa: E731
    Percentiles.fit(scorer, parts, n, shown).save(path)
    upload_changes(path.parent)
    return path


@dataclass(frozen=True)
class Coverage:
    """What of the recordings has scores.

    n_recordings, n_without_window: recordings, and those with no window. recorded_s, valid_s,
    scored_s: recorded time, valid time, and time in windows. n_off_screen: windows left out because
    much of them lies off the screen.
    """

    n_recordings: int
    n_without_window: int
    recorded_s: float
    valid_s: float
    scored_s: float
    n_off_screen: int

    def in_words(self, seconds: float) -> str:
        """One line; seconds: the length of a window."""
        short_s = max(self.valid_s - self.scored_s, 0.0)
        lost_s = max(self.recorded_s - self.valid_s, 0.0)
        return (
            f"scored {self.scored_s:.0f} of {self.recorded_s:.0f} s; without a score: "
            f"{lost_s:.0f} s lost or invalid, {short_s:.0f} s in valid segments shorter than "
            f"{seconds:g} s or off the screen; recordings without a window: "
            f"{self.n_without_window} of {self.n_recordings}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """Scores of windows.

    columns: name -> values (window,). span_percentile: (window, span), the percentile of the error
    of each part of a window, NaN without a calibration; span_error: the errors. card: model,
    settings and calibration. notes: what to know of them, one line each.

    >>> import gazediffusion as gd
    >>> gaze = gd.load("default").sample(2, task="reading")
    >>> scores = gd.score(gaze, has_likelihood=False, n_noise=1)
    >>> scores.order.tolist(), scores.to_frame().height  # the oddest window first
    ([1, 0], 2)
    """

    windows: Windows
    columns: Mapping[str, NDArray[Any]]
    span_error: Floats
    span_percentile: Floats
    span_samples: int
    coverage: Coverage
    card: Mapping[str, Any]
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.windows)

    def __repr__(self) -> str:
        state = "calibrated" if self.is_calibrated else "not calibrated"
        return f"Scores({len(self)} windows, {state})"

    @property
    def is_calibrated(self) -> bool:
        """Whether there are percentiles."""
        return self.card["calibration"] is not None

    @property
    def order(self) -> NDArray[np.int64]:
        """Windows from the oddest on: by profile distance, or by error without a calibration."""
        name = "profile_distance" if self.is_calibrated else "denoising_error"
        return np.argsort(-self.columns[name], kind="stable")

    def to_frame(self) -> pl.DataFrame:
        """One row per window (polars)."""
        import polars as pl

        return pl.DataFrame(dict(self.columns))

    def save(self, path: Path | str, *, overwrite: bool = False) -> list[Path]:
        """Write the rows as .parquet, with the card in it, or as .csv, with the card beside it."""
        path = Path(path)
        require_scores_path(path, overwrite)
        import pyarrow as pa
        from pyarrow import csv, parquet

        table = pa.table({name: pa.array(values) for name, values in self.columns.items()})
        if ending_of(path) == "parquet":
            table = table.replace_schema_metadata({"gazediffusion": json.dumps(self.card)})
            with written_whole(path, overwrite) as temporary:
                parquet.write_table(table, temporary, compression="zstd")
            return [path]
        with written_whole(path, overwrite) as temporary:
            csv.write_csv(table, temporary)
        write_json(card_of(path), self.card)
        return [path, card_of(path)]

    def plot(self, folder: Path | str, *, overwrite: bool = False) -> list[Path]:
        """A picture of each recording: gaze over time, odd stretches shaded."""
        from gazediffusion.plotting.gaze import plot_scored_recording
        from gazediffusion.plotting.style import house_style, save_figure

        folder = Path(folder)
        identity = self.windows.identity
        keys = list(zip(*(identity[one] for one in ("participant", "task", "trial")), strict=True))
        shade = self.span_percentile if self.is_calibrated else _ranks_within(self.span_error)
        paths = []
        with house_style(), written_whole(folder, overwrite, PICTURES) as temporary:
            temporary.mkdir(parents=True)
            for number, key in enumerate(dict.fromkeys(keys)):
                chosen = np.array([one == key for one in keys])
                figure = plot_scored_recording(
                    self.windows.select(chosen),
                    self.columns["onset_ms"][chosen],
                    shade[chosen],
                    self.columns["profile_percentile"][chosen],
                    self.span_samples,
                    f"participant {key[0]}, {key[1]}, trial {key[2]}",
                    "held-out windows" if self.is_calibrated else "these windows",
                )
                name = f"{number + 1:03d}_{_safe('_'.join(key))}.png"
                save_figure(figure, temporary / name)
                paths.append(folder / name)
        return paths


def require_scores_path(path: Path, overwrite: bool) -> None:
    """Refuse an output that cannot be written, before the long work."""
    if ending_of(path) not in FORMATS:
        raise GazeError(
            "scores are written as .parquet or .csv", path=path, remedy="end the name in .parquet"
        )
    require_free(path, overwrite)
    if ending_of(path) == "csv":
        require_free(card_of(path), overwrite)


def card_of(path: Path) -> Path:
    """The card beside a CSV file."""
    return path.with_suffix(".json")


@dataclass(frozen=True)
class _Cut:
    """Windows to score, and the name of each one's recording, (window,)."""

    windows: Windows
    names: Sequence[str]
    coverage: Coverage
    notes: tuple[str, ...] = ()

    @property
    def onset_ms(self) -> Floats:
        windows, segment = self.windows, self.windows.segment_of_window
        within = (windows.starts - windows.segment_starts[segment]) * 1000.0 / windows.rate_hz
        return np.asarray(windows.segment_onset_ms[segment] + within)


def _cut(
    given: Recordings | Windows | Path | str,
    model: Model,
    stride_s: float | None,
    cleaning: CleaningConfig | None,
) -> _Cut:
    name = "windows"
    if isinstance(given, Path | str):
        name = Path(given).name
        if Path(given).suffix == ".safetensors":
            given = Windows.load(given)
        else:
            from gazediffusion.data.reading import read

            given = read(given)
    if not isinstance(given, Windows):
        return _of_recordings(given, model, stride_s, cleaning)
    scored_s = _covered_s(given)
    coverage = Coverage(len(set(_whose(given))), 0, scored_s, scored_s, scored_s, 0)
    return _Cut(given, [name] * len(given), coverage)


def _of_recordings(
    recordings: Recordings, model: Model, stride_s: float | None, cleaning: CleaningConfig | None
) -> _Cut:
    # Here, so that windows files are scored where readers' packages are not installed.
    from gazediffusion.data.preparing import NoWindowError, prepare
    from gazediffusion.data.resampling import LowRateError
    from gazediffusion.settings import PrepareConfig

    config = model.config
    seconds = config.length / config.rate_hz
    if stride_s is not None and not 1 / config.rate_hz <= stride_s <= seconds:
        raise GazeError(f"`stride_s` must lie between a sample and {seconds:g} s, not {stride_s:g}")
    path_of: dict[tuple[str, ...], str] = {}
    recorded_s = 0.0

    def note(one: Recording) -> None:
        nonlocal recorded_s
        path_of[one.participant, one.task, one.trial] = one.path.name
        if len(one.time_ms) > 1:
            step_ms = float(np.median(np.diff(one.time_ms)))
            recorded_s += float(one.time_ms[-1] - one.time_ms[0] + step_ms) / 1000.0

    cut_as = PrepareConfig(
        rate_hz=config.rate_hz,
        seconds=seconds,
        stride_s=seconds if stride_s is None else stride_s,
        validation_fraction=0,
        cleaning=cleaning,
    )
    try:
        windows, n_dropped = _with_ends(prepare(recordings, cut_as, on_recording=note))
    except NoWindowError as error:
        raise GazeError(
            f"scores need {seconds:g} s of valid gaze in a row; the longest valid segment is "
            f"{error.longest_s:.2f} s",
            path=recordings.sources[0].path,
            remedy="fill short gaps first with gazediffusion fill",
        ) from error
    except GazeError as error:
        if not isinstance(error.__cause__, LowRateError):
            raise
        raise GazeError(
            f"this model scores recordings of {config.rate_hz:g} Hz or more",
            path=error.path,
            remedy="train a model at their rate: `rate_hz` of prepare",
        ) from error
    counts, whose = windows.provenance["cleaning"]["all"], _whose(windows)
    coverage = Coverage(
        n_recordings=len(path_of),
        n_without_window=len(path_of) - len(set(whose)),
        recorded_s=recorded_s,
        valid_s=recorded_s * counts["valid"] / max(counts["total"], 1),
        scored_s=_covered_s(windows),
        n_off_screen=windows.provenance["windows_dropped_off_screen"] + n_dropped,
    )
    notes: tuple[str, ...] = ()
    if coverage.n_off_screen:
        notes = (f"{coverage.n_off_screen} windows lie off the screen and have no score",)
    return _Cut(windows, [path_of[key] for key in whose], coverage, notes)


def _with_ends(windows: Windows) -> tuple[Windows, int]:
    """With a window at the end of each segment; and how many of those lie off the screen."""
    from gazediffusion.data.preparing import window_starts

    ends = np.append(windows.segment_starts[1:], windows.gaze.shape[1])
    found, n_dropped = list(windows.starts), 0
    for first, end in zip(windows.segment_starts, ends, strict=True):
        start = end - windows.length
        if start < first or start in windows.starts:
            continue
        kept, _ = window_starts(windows.gaze[:, start:end], windows.length, windows.length)
        n_dropped += len(kept) == 0
        found += [start] if len(kept) else []
    return replace(windows, starts=np.array(sorted(found), dtype=np.int64)), n_dropped


def _whose(windows: Windows) -> list[tuple[str, ...]]:
    """Participant, task and trial of each window."""
    identity = windows.identity
    columns = (map(str, identity[name]) for name in ("participant", "task", "trial"))
    return list(zip(*columns, strict=True))


def _covered_s(windows: Windows) -> float:
    """Time that lies in one window or more."""
    edges = np.zeros(windows.gaze.shape[1] + 1, dtype=np.int64)
    np.add.at(edges, windows.starts, 1)
    np.add.at(edges, windows.starts + windows.length, -1)
    return float((np.cumsum(edges) > 0).sum() / windows.rate_hz)


def _tabulated(cut: _Cut, raw: RawScores, scorer: Scorer) -> Scores:
    """Rows of raw scores, compared with held-out windows where the model has percentiles."""
    run, config, windows = scorer.run, scorer.config, cut.windows
    table = Percentiles.load(run.path)
    problem = "it has no calibration of scores"
    if table is not None:
        problem = table.mismatch(run, config) or ""
    notes, every = cut.notes, np.arange(len(windows))
    distance = np.full(len(windows), np.nan)
    if table is None or problem:
        table = None
        notes += (f"scores of this model have no percentiles: {problem}",)
        unknown = values_of(raw, distance)
        percentile = {name: np.full(one.shape, np.nan) for name, one in unknown.items()}
    else:
        distance = table.distances(raw)
        percentile = table.percentiles(raw, distance)
    by_level = np.stack([percentile[f"level_{k}"] for k in range(len(config.levels))], axis=1)
    # Without percentiles levels cannot be compared.
    oddest = np.abs(np.nan_to_num(by_level, nan=50.0) - 50.0).argmax(axis=1)
    level_percentile, oddest_span = by_level[every, oddest], raw.by_span.argmax(axis=1)
    identity, onset_ms = windows.identity, cut.onset_ms
    columns: dict[str, NDArray[Any]] = {
        "recording": np.array(cut.names, dtype=object),
        **{name: identity[name] for name in ("participant", "task", "trial")},
        "onset_ms": onset_ms,
        "n_samples": np.full(len(windows), windows.length),
        "given_task": np.array(raw.tasks, dtype=object),
        "log_likelihood": raw.log_likelihood,
        "log_likelihood_se": raw.standard_error,
        "denoising_error": raw.denoising_error,
        "profile_distance": distance,
        "log_likelihood_percentile": percentile["log_likelihood"],
        "denoising_error_percentile": percentile["denoising_error"],
        "profile_percentile": percentile["profile_distance"],
        **{f"{name}_percentile": percentile[name] for name in CONTRASTS},
        "compared_with": np.array(
            [table.group_of(task) if table else "" for task in raw.tasks], dtype=object
        ),
        "oddest_level": np.where(
            np.isnan(level_percentile), np.nan, np.array(config.levels)[oddest]
        ),
        "oddest_level_percentile": level_percentile,
        "oddest_span_ms": onset_ms + oddest_span * (1000.0 * scorer.span / windows.rate_hz),
        "oddest_span_percentile": percentile["span_error"][every, oddest_span],
        **dict(zip(CONTRASTS, raw.contrasts.T, strict=True)),
        **{f"error_{level:g}": raw.by_level[:, k] for k, level in enumerate(config.levels)},
    }
    edm = run.config.recipe.edm
    card = {
        "format": "gazediffusion-window-scores",
        "gazediffusion_version": __version__,
        "scores": {**asdict(config), "solver": "unipc, order 4, even in ln sigma"},
        "units": {
            "log_likelihood": "nats per dimension of the noised gaze channels, from sigma "
            f"{edm.sigma_min:g} to {edm.sigma_max:g}",
            "onset_ms": "ms in the recording",
            "percentile": "percentage of held-out windows below",
        },
        "model": {
            "recipe": run.config.recipe.name,
            "weights": run.weights,
            "weights_sha256": run.weights_sha256,
            "trained_on": dict(run.config.data),
        },
        "calibration": None if table is None else dict(table.settings),
        "coverage": asdict(cut.coverage),
        "notes": list(notes),
    }
    spans = percentile["span_error"]
    return Scores(windows, columns, raw.by_span, spans, scorer.span, cut.coverage, card, notes)


def _ranks_within(errors: Floats) -> Floats:
    """Percentiles of spans among themselves."""
    flat = errors.ravel()
    return 100.0 * np.searchsorted(np.sort(flat), flat).reshape(errors.shape) / len(flat)


def _safe(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
