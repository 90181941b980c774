"""Scoring recordings: windows are cut so that they cover every valid segment, scored, compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np

from gazediffusion.data.recordings import Recording
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.jobs import Show, nothing
from gazediffusion.model import Model, load
from gazediffusion.network.pretrained import SCORES, pretrained_folder
from gazediffusion.scoring.calibration import MOST_WINDOWS, Calibration, n_to_score
from gazediffusion.scoring.scorer import Floats, Scorer
from gazediffusion.scoring.scores import PICTURES, Coverage, Scores, require_scores_path, tabulated
from gazediffusion.settings import CleaningConfig, Scoring
from gazediffusion.storage import require_free, upload_changes

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings


class ScoreSettings(TypedDict, total=False):
    """How windows are scored; see `scoring.scorer.Scoring`."""

    levels: tuple[float, ...]
    n_noise: int
    span_s: float
    has_likelihood: bool
    n_steps: int
    n_draws: int
    has_statistics: bool
    task: str | None
    seed: int


def score(
    recordings: Recordings | Windows | Path | str,
    output: Path | str | None = None,
    model: Model | Path | str = "default",
    *,
    plot: Path | str | None = None,
    stride_s: float | None = None,
    cleaning: CleaningConfig | None = None,
    batch_size: int | None = None,
    progress: Show = nothing,
    overwrite: bool = False,
    **settings: Unpack[ScoreSettings],
) -> Scores:
    """Score every window of recordings: which are odd to a model, and how odd.

    recordings: what `read` gives, windows of the model's length and rate, or a path. output: a
    .parquet or .csv file to write. plot: a folder for a picture of each recording. stride_s: time
    between windows; None is their length. The last window of a segment ends with it, so that no
    valid segment of a window's length is left out. progress: called with the
    phase of the work, what is done, of how much, and a note.

    >>> import gazediffusion as gd
    >>> config = gd.SimulationConfig(n_participants=2, minutes=0.3, rate_hz=250)
    >>> files = gd.write_simulation(config, "study", "csv")
    >>> scores = gd.score("study", has_likelihood=False, n_noise=1)
    >>> scores
    Scores(4 windows, calibrated)
    """
    loaded = model if isinstance(model, Model) else load(model)
    scorer = Scorer(loaded.run, Scoring(**settings), batch_size)
    if output is not None:
        require_scores_path(Path(output), overwrite)
    if plot is not None:
        require_free(Path(plot), overwrite, PICTURES)
    cut = _cut(recordings, loaded, stride_s, cleaning)
    n_windows = len(cut.windows)
    progress("scoring", 0, n_windows, "")
    raw = scorer.scores(cut.windows, lambda done: progress("scoring", done, n_windows, ""))
    scores = tabulated(
        cut.windows,
        raw,
        np.array(cut.names, dtype=object),
        cut.onset_ms,
        loaded.run,
        scorer.config,
        Calibration.load(loaded.run.path),
        scorer.span,
        cut.coverage,
        cut.notes,
    )
    if output is not None:
        scores.save(output, overwrite=overwrite)
    if plot is not None:
        scores.plot(plot, overwrite=overwrite)
    return scores


def calibrate_scores(
    model: Model | Path | str,
    windows: Windows | Sequence[Windows],
    *,
    n: int = MOST_WINDOWS,
    batch_size: int | None = None,
    progress: Show = nothing,
    overwrite: bool = False,
    **settings: Unpack[ScoreSettings],
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
    scorer = Scorer(loaded.run, Scoring(**settings), batch_size)
    total = n_to_score(parts, n)
    shown = lambda done: progress("calibrating scores", done, total, "")  # noqa: E731
    Calibration.fit(scorer, parts, n, shown).save(path)
    upload_changes(path.parent)
    return path


@dataclass(frozen=True)
class _Cut:
    """Windows to score, with the name of each one's recording and its onset there."""

    windows: Windows
    names: list[str]
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
    if isinstance(given, Path | str):
        if Path(given).suffix == ".safetensors":
            return _of_windows(Windows.load(given), Path(given).name)
        from gazediffusion.data.reading import read

        given = read(given)
    if isinstance(given, Windows):
        return _of_windows(given, "windows")
    return _of_recordings(given, model, stride_s, cleaning)


def _of_windows(windows: Windows, name: str) -> _Cut:
    n_trials = len(set(zip(*_identities(windows), strict=True)))
    scored_s = _covered_s(windows)
    coverage = Coverage(n_trials, 0, scored_s, scored_s, scored_s, 0)
    return _Cut(windows, [name] * len(windows), coverage)


@dataclass
class _Seen:
    """What is noted of recordings while they are read."""

    paths: dict[tuple[str, str, str], str] = field(default_factory=dict)
    recorded_s: float = 0.0

    def __call__(self, one: Recording) -> None:
        self.paths[one.participant, one.task, one.trial] = one.path.name
        if len(one.time_ms) > 1:
            step_ms = float(np.median(np.diff(one.time_ms)))
            self.recorded_s += (one.time_ms[-1] - one.time_ms[0] + step_ms) / 1000.0


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
    seen = _Seen()
    cut_as = PrepareConfig(
        rate_hz=config.rate_hz,
        seconds=seconds,
        stride_s=seconds if stride_s is None else stride_s,
        validation_fraction=0,
        cleaning=cleaning,
    )
    try:
        windows = prepare(recordings, cut_as, seen)
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
    windows, n_dropped = _with_ends(windows)
    counts = windows.provenance["cleaning"]["all"]
    whose = list(zip(*_identities(windows), strict=True))
    coverage = Coverage(
        n_recordings=len(seen.paths),
        n_without_window=len(seen.paths) - len(set(whose)),
        recorded_s=float(seen.recorded_s),
        valid_s=float(seen.recorded_s) * counts["valid"] / max(counts["total"], 1),
        scored_s=_covered_s(windows),
        n_off_screen=windows.provenance["windows_dropped_off_screen"] + n_dropped,
    )
    notes = []
    if coverage.n_off_screen:
        notes.append(f"{coverage.n_off_screen} windows lie off the screen and have no score")
    return _Cut(windows, [seen.paths[key] for key in whose], coverage, tuple(notes))


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


def _identities(windows: Windows) -> list[list[str]]:
    return [
        [str(one) for one in windows.identity[name]] for name in ("participant", "task", "trial")
    ]


def _covered_s(windows: Windows) -> float:
    """Time that lies in one window or more."""
    edges = np.zeros(windows.gaze.shape[1] + 1, dtype=np.int64)
    np.add.at(edges, windows.starts, 1)
    np.add.at(edges, windows.starts + windows.length, -1)
    return float((np.cumsum(edges) > 0).sum() / windows.rate_hz)
