"""Filled sets: recordings whose gaps are filled, written as files that state it.

What is sampled is stored recording by recording in a hidden work folder beside the output, so that
an interrupted call resumes. Recordings are read again for each pass; memory holds one of them. Gaps
are looked for to count them and to sample them; which samples are filled is stored with them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gazediffusion.data.export import Labelled
from gazediffusion.data.export.card import screen_fields
from gazediffusion.data.export.windows import put_set_in_place, require_free_set
from gazediffusion.errors import GazeError
from gazediffusion.generation.filling import Filler, filled
from gazediffusion.generation.gaps import GapCounts, Marks
from gazediffusion.generation.model_grid import OTHER_ANGLE
from gazediffusion.generation.recording_sets import (
    Total,
    describe_sources,
    format_of_recordings,
    require_size,
    with_events,
    work_folder,
    write_recordings,
)
from gazediffusion.generation.scheduling import Progress, after
from gazediffusion.geometry import Screen
from gazediffusion.storage import ending_of, require_writable, write_json, written_whole
from gazediffusion.version import __version__

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings


@dataclass(frozen=True)
class FilledSet:
    """What was written: the set, its card (JSON) and its README; counts; and what to know of it."""

    paths: list[Path]
    counts: GapCounts
    warnings: list[str]


def write_filled(
    filler: Filler,
    recordings: Recordings,
    output: Path | str,
    begin: Total = lambda n_windows: lambda done: None,
    overwrite: bool = False,
) -> FilledSet:
    """Fill recordings into a folder, or a table where `output` ends in .parquet or .csv.

    begin: called with the number of windows to generate, before the first; what it returns is
    called with the number done. Several draws are sets of their own, in OUTPUT/draw-1 and so on.
    """
    output = Path(output)
    format = _format_of(output, recordings, filler.config.draws)
    require_free_set(output, format, overwrite)
    require_writable(output)
    card = _card(filler, recordings)
    counts, n_windows, screens, has_labels, warnings = _counted(filler, recordings, format)
    work = work_folder(output, card)
    card |= {"format_written": format, "counts": asdict(counts), **screen_fields(screens)}
    _sample(filler, recordings, work, n_windows, begin(sum(n_windows)))
    with written_whole(work / "set") as folder:
        folder.mkdir(parents=True)
        for draw in range(filler.config.draws):
            of_draw = folder if filler.config.draws == 1 else folder / f"draw-{draw + 1}"
            labelled = _filled(recordings, work, draw, has_labels)
            write_recordings(of_draw, labelled, format, card)
        (folder / "README.md").write_text(readme_of_filled(card), encoding="utf-8")
        write_json(folder / "card.json", card)
        if format == "bids" and filler.config.draws == 1:
            (folder / ".bidsignore").write_text("card.json\n", encoding="utf-8")
    written = put_set_in_place(work / "set", output, format, overwrite)
    shutil.rmtree(work, ignore_errors=True)
    return FilledSet(written, counts, warnings)


def _format_of(output: Path, recordings: Recordings, draws: int) -> str:
    """The format of the set; a table of several draws is refused."""
    if ending_of(output) and draws > 1:
        raise GazeError(
            "several draws are written as a folder",
            path=output,
            remedy=f"name it without an ending, as {output.stem}",
        )
    return format_of_recordings(output, recordings)


def _card(filler: Filler, recordings: Recordings) -> dict[str, Any]:
    """What decides the filled gaze, and where it comes from."""
    described = filler.generator.describe()
    return {
        "format": "gazediffusion-filled",
        "synthetic": False,
        "gazediffusion_version": __version__,
        "fill": asdict(filler.config),
        "sources": describe_sources(recordings),
        "sampling": {k: v for k, v in described["sampling"].items() if k != "task"},
        "model": described["model"],
    }


def _counted(
    filler: Filler, recordings: Recordings, format: str
) -> tuple[GapCounts, list[int], dict[str, Screen], bool, list[str]]:
    """Counts of gaps, windows by recording, screens by task, whether any is labelled, warnings.

    Bad input is refused.
    """
    counts, screens, warnings = GapCounts(), dict[str, Screen](), set[str]()
    n_windows, has_labels = [], False
    for recording in recordings:
        gaps = filler.gaps(recording)
        counts += gaps.counts
        has_labels |= recording.labels is not None
        n_windows.append(filler.n_windows(gaps))
        assert recording.screen is not None
        screens.setdefault(recording.task, recording.screen)
        require_size(recording.screen, format, recording.path)
        if gaps.gaps and not filler.is_in_degrees(recording):
            warnings.add(OTHER_ANGLE.format(done="filled"))
    if not counts.valid:
        raise GazeError(
            "nothing to condition on: no sample is valid",
            path=recordings.sources[0].path,
            remedy="see why with gazediffusion inspect",
        )
    return counts, n_windows, screens, has_labels, sorted(warnings)


def _sample(
    filler: Filler, recordings: Recordings, work: Path, n_windows: list[int], progress: Progress
) -> None:
    """Store the marks and courses (draw, 2, filled) of each recording; those there stay."""
    done = 0
    work.mkdir(parents=True, exist_ok=True)
    for number, (recording, n) in enumerate(zip(recordings, n_windows, strict=True)):
        path = _stored(work, number)
        if not path.is_file():
            gaps = filler.gaps(recording)
            courses = filler.courses(gaps, after(done, progress))
            np.savez(path.with_suffix(".npz"), **gaps.marks._asdict())
            with written_whole(path) as temporary, open(temporary, "wb") as stream:
                np.save(stream, np.stack(courses))
        done += n
        progress(done)


def _stored(work: Path, number: int) -> Path:
    """The courses of a recording; its marks are beside them, in .npz, and written first."""
    return work / f"{number:09d}.npy"


def _filled(recordings: Recordings, work: Path, draw: int, has_labels: bool) -> Iterator[Labelled]:
    """The recordings of a draw, one at a time."""
    for number, recording in enumerate(recordings):
        path = _stored(work, number)
        with np.load(path.with_suffix(".npz")) as found:
            marks = Marks(found["eye"].item(), found["is_filled"], float(found["rate_hz"]))
        course = np.load(path, mmap_mode="r")[draw]
        yield with_events(filled(recording, marks, course), has_labels)


def readme_of_filled(card: dict[str, Any]) -> str:
    """The card in words."""
    counts, settings, model = card["counts"], card["fill"], card["model"]
    draws = settings["draws"]
    where = {
        "asc": "A message `FILLED eye first last` stands before each filled gap.",
        "bids": "Filled gaps are rows of `_physioevents.tsv.gz` with the trial_type `filled`.",
    }.get(card["format_written"], "The column `is_filled` marks them.")
    sets = "" if draws == 1 else f"`draw-1` to `draw-{draws}` are sets with different courses.\n"
    share = counts["filled_samples"] / max(counts["samples"], 1)
    before_ms, after_ms = (settings["cleaning"][f"blink_{one}_ms"] for one in ("before", "after"))
    return f"""# Recordings with filled gaps

A diffusion model generated {counts["filled_samples"]} of {counts["samples"]} samples ({share:.2%})
of each draw, given the gaze on both sides. All other samples are as recorded. {where}
Do not analyse or publish filled samples as recorded ones.
{sets}
- filled gaps: {counts["filled"]} of {counts["gaps"]}
- still lost: {counts["too_long"]} longer than {settings["max_gap_s"]:g} s, {counts["at_ends"]} at
  the beginning or end of a recording
- a gap begins {before_ms:g} ms before a loss and ends {after_ms:g} ms after it
- model: recipe `{model["recipe"]}`, {model["weights"]} weights, sha256 `{model["weights_sha256"]}`
- seed {settings["seed"]}, draws: {draws}
- written by gazediffusion {card["gazediffusion_version"]} as {card["format_written"]}
"""
