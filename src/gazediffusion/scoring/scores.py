"""Scores of windows: one row per window, with percentiles and provenance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion import __version__
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.network.checkpoint import Run
from gazediffusion.scoring.calibration import Calibration
from gazediffusion.scoring.scorer import CONTRASTS, Floats, RawScores
from gazediffusion.settings import Scoring
from gazediffusion.storage import ending_of, require_free, write_json, written_whole

if TYPE_CHECKING:
    import polars as pl

FORMATS = ("parquet", "csv")
PICTURES = "*.png"  # by which a folder of pictures is known


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


def tabulated(
    windows: Windows,
    raw: RawScores,
    recordings: NDArray[Any],
    onset_ms: Floats,
    run: Run,
    config: Scoring,
    calibration: Calibration | None,
    span_samples: int,
    coverage: Coverage,
    notes: tuple[str, ...] = (),
) -> Scores:
    """Rows of raw scores, compared with a calibration where there is one.

    recordings: (window,) names. onset_ms: (window,) in the recording's time.
    """
    problem = "it has no calibration of scores"
    if calibration is not None:
        problem = calibration.mismatch(run, config) or ""
    used = calibration if not problem else None
    if used is None:
        notes += (f"scores of this model have no percentiles: {problem}",)
    percentiles, span_percentile = _percentiles(raw, used)
    identity = windows.identity
    span_ms = 1000.0 * span_samples / windows.rate_hz
    oddest_span = raw.by_span.argmax(axis=1)
    every = np.arange(len(windows))
    levels = np.array(config.levels)
    by_level = percentiles.pop("levels")
    # Without a calibration levels cannot be compared.
    oddest = np.abs(np.nan_to_num(by_level, nan=50.0) - 50.0).argmax(axis=1)
    level_percentile = by_level[every, oddest]
    columns: dict[str, NDArray[Any]] = {
        "recording": recordings,
        **{name: identity[name] for name in ("participant", "task", "trial")},
        "onset_ms": onset_ms,
        "n_samples": np.full(len(windows), windows.length),
        "given_task": np.array(raw.tasks, dtype=object),
        "log_likelihood": raw.log_likelihood,
        "log_likelihood_se": raw.standard_error,
        "denoising_error": raw.denoising_error,
        "profile_distance": percentiles.pop("distance"),
        **{f"{name}_percentile": values for name, values in percentiles.items()},
        "compared_with": np.array(
            [used.group_of(task) if used else "" for task in raw.tasks], dtype=object
        ),
        "oddest_level": np.where(np.isnan(level_percentile), np.nan, levels[oddest]),
        "oddest_level_percentile": level_percentile,
        "oddest_span_ms": onset_ms + oddest_span * span_ms,
        "oddest_span_percentile": span_percentile[every, oddest_span],
        **{name: raw.contrasts[:, k] for k, name in enumerate(CONTRASTS)},
        **{f"error_{level:g}": raw.by_level[:, k] for k, level in enumerate(config.levels)},
    }
    card = {
        "format": "gazediffusion-window-scores",
        "gazediffusion_version": __version__,
        "scores": {**asdict(config), "solver": "unipc, order 4, even in ln sigma"},
        "units": {
            "log_likelihood": "nats per dimension of the noised gaze channels, " + _levels_of(run),
            "onset_ms": "ms in the recording",
            "percentile": "percentage of held-out windows below",
        },
        "model": {
            "recipe": run.config.recipe.name,
            "weights": run.weights,
            "weights_sha256": run.weights_sha256,
            "trained_on": dict(run.config.data),
        },
        "calibration": None if used is None else dict(used.settings),
        "coverage": asdict(coverage),
        "notes": list(notes),
    }
    return Scores(
        windows, columns, raw.by_span, span_percentile, span_samples, coverage, card, notes
    )


def _percentiles(raw: RawScores, used: Calibration | None) -> tuple[dict[str, Floats], Floats]:
    """Distance and percentiles by score, (window,), those of levels (window, level), of spans."""
    n, n_levels = raw.by_level.shape
    names = ("log_likelihood", "denoising_error", "profile", *CONTRASTS)
    found = {name: np.full(n, np.nan) for name in ("distance", *names)}
    found["levels"] = np.full((n, n_levels), np.nan)
    spans = np.full(raw.by_span.shape, np.nan)
    if used is None:
        return found, spans
    found["distance"] = used.distances(raw)
    of = [used.group_of(task) for task in raw.tasks]
    for name in set(of):
        group, chosen = used.groups[name], np.array([one == name for one in of])
        found["log_likelihood"][chosen] = group.percentile(
            "log_likelihood", raw.log_likelihood[chosen]
        )
        found["denoising_error"][chosen] = group.percentile(
            "denoising_error", raw.denoising_error[chosen]
        )
        found["profile"][chosen] = group.percentile("profile_distance", found["distance"][chosen])
        for k, contrast in enumerate(CONTRASTS):
            found[contrast][chosen] = group.percentile(contrast, raw.contrasts[chosen, k])
        spans[chosen] = group.percentile("span_error", raw.by_span[chosen])
        for k in range(n_levels):
            found["levels"][chosen, k] = group.percentile(f"level_{k}", raw.by_level[chosen, k])
    return found, spans


def _levels_of(run: Run) -> str:
    edm = run.config.recipe.edm
    return f"from sigma {edm.sigma_min:g} to {edm.sigma_max:g}"


def _ranks_within(errors: Floats) -> Floats:
    """Percentiles of spans among themselves."""
    flat = errors.ravel()
    return 100.0 * np.searchsorted(np.sort(flat), flat).reshape(errors.shape) / len(flat)


def _safe(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
