"""Sets of whole recordings, filled, labelled or synthetic, as files that state it.

A job keeps what a model computes, recording by recording or piece by piece, so that an interrupted
call resumes. Recordings are read again for each pass; memory holds one of them. An augmented set
holds synthetic recordings alone; the study is not copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gazediffusion import __version__
from gazediffusion.data.events import detect_events, labelled_events
from gazediffusion.data.recordings import EVENT_CLASSES, Recording
from gazediffusion.data.windows import Windows
from gazediffusion.data.writers import Labelled, write_into
from gazediffusion.data.writers.card import CARD_KEY, screen_fields
from gazediffusion.data.writers.recordings import checked, plain
from gazediffusion.data.writers.sets import describe_bids, written_set
from gazediffusion.data.writers.tables import write_parquet
from gazediffusion.errors import GazeError
from gazediffusion.generation.augmentation import (
    Augmenter,
    Batch,
    Original,
    Study,
    synthetic_name,
)
from gazediffusion.generation.filling import (
    OTHER_ANGLE,
    Filler,
    GapCounts,
    Marks,
    filled,
    require_screen,
)
from gazediffusion.generation.labelling import Labeller, Labels, RecordingLabeller, with_labels
from gazediffusion.generation.scheduling import Progress, after
from gazediffusion.generation.sets import Pieces
from gazediffusion.jobs import Job, Show, nothing
from gazediffusion.screen import Screen
from gazediffusion.settings import CleaningConfig
from gazediffusion.storage import ending_of, read_json, unpacked, write_json

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings

_N_CLASSES = 1 + len(EVENT_CLASSES)
_SAME = {"bids": "bids", "eyelink-asc": "asc"}  # formats of recordings that we write as well
_ARROW = ("parquet", "feather", "arrow", "ipc")


def format_of_recordings(output: Path, recordings: Recordings) -> str:
    """That of the ending; for a folder that of the recordings where it is written, else parquet."""
    ending = ending_of(output)
    if ending not in ("", "csv", "parquet"):
        raise GazeError(
            f"recordings are not written as .{ending}",
            path=output,
            remedy="end the name in .parquet or .csv, or leave the ending out for a folder in the "
            "recordings' own format",
        )
    found = set()
    for source in recordings.sources:
        is_arrow = ending_of(unpacked(source.path)) in _ARROW
        table = "csv" if source.reader.NAME == "table" and not is_arrow else "parquet"
        found.add(_SAME.get(source.reader.NAME, table))
    return ending or (found.pop() if len(found) == 1 else "parquet")


def describe_sources(recordings: Recordings) -> list[dict[str, str]]:
    """Name, format and hash of the files of recordings, as a card states them."""
    described = [one.described() for one in recordings.sources]
    return [{word: one[word] for word in one if word != "bytes"} for one in described]


def card_at(paths: Sequence[Path]) -> dict[str, Any]:
    """The card of a set that was written."""
    fields: dict[str, Any] = read_json(paths[1])
    card: dict[str, Any] = fields.get(CARD_KEY, fields)
    return card


def require_size(screen: Screen, format: str, path: Path) -> None:
    """Refuse BIDS without the size of the screen."""
    if format == "bids" and not screen.has_degrees:
        raise GazeError(
            "BIDS needs the screen's pixels, size and distance",
            path=path,
            remedy="give `screen` with its size (`width_cm`) and `distance_cm`",
        )


def with_events(recording: Recording, has_labels: bool) -> Labelled:
    """A recording with the events of its labels.

    has_labels: any recording of the set has labels, so that all are written with them.
    """
    if not has_labels:
        return recording, ()
    if recording.labels is None:
        recording = replace(recording, labels=np.zeros(len(recording), dtype=np.uint8))
    assert recording.labels is not None
    gaze_px = recording.gaze_px.get("right", next(iter(recording.gaze_px.values())))
    where = (gaze_px, recording.time_ms, recording.screen)
    return recording, labelled_events(recording.labels, *where)


def write_recordings(
    folder: Path,
    labelled: Iterator[Labelled],
    format: str,
    card: dict[str, Any],
    readme: Callable[[dict[str, Any]], str] | None = None,
) -> None:
    """Write recordings into a folder, their card and README; Parquet contains the card.

    readme: None writes neither card nor README.
    """
    folder.mkdir(exist_ok=True)
    if format == "parquet":
        write_parquet(checked(labelled), folder, card=card)
    else:
        write_into(folder, labelled, format)
    if readme is not None:
        write_card(folder, format, card, readme)


def write_card(
    folder: Path, format: str, card: dict[str, Any], readme: Callable[[dict[str, Any]], str]
) -> None:
    """Write the card of recordings, and the README that says it in words."""
    (folder / "README.md").write_text(readme(card), encoding="utf-8")
    write_json(folder / "card.json", card)
    if format == "bids":
        (folder / ".bidsignore").write_text("card.json\n", encoding="utf-8")


@dataclass
class _Counted:
    """What one pass over recordings finds before they are filled or labelled."""

    counts: GapCounts
    n_windows: list[int]  # of each recording
    screens: dict[str, Screen]  # by task
    has_labels: bool
    warnings: set[str]

    @classmethod
    def of(
        cls, worker: Filler | RecordingLabeller, recordings: Recordings, format: str, done: str
    ) -> _Counted:
        """Count the work; bad input is refused. done: in one word what is done with gaze."""
        found = cls(GapCounts(), [], {}, False, set())
        for recording in recordings:
            gaps = worker.gaps(recording)
            found.counts += gaps.counts
            found.has_labels |= recording.labels is not None
            found.n_windows.append(worker.n_windows(gaps))
            screen = require_screen(recording)
            found.screens.setdefault(recording.task, screen)
            require_size(screen, format, recording.path)
            if found.n_windows[-1] and not worker.is_in_degrees(recording):
                found.warnings.add(OTHER_ANGLE.format(done=done))
        if not found.counts.valid:
            raise GazeError(
                f"nothing can be {done}: no sample is valid",
                path=recordings.sources[0].path,
                remedy="see why with gazediffusion inspect",
            )
        return found

    def keep(
        self,
        job: Job,
        phase: str,
        recordings: Recordings,
        compute: Callable[[Recording, Progress], dict[str, Any]],
    ) -> list[Path]:
        """Where the job keeps the arrays that are computed of each recording."""
        done, total, kept = 0, sum(self.n_windows), list[Path]()
        job.step(phase, 0, total)
        for number, (recording, n) in enumerate(zip(recordings, self.n_windows, strict=True)):

            def make(path: Path, recording: Recording = recording, before: int = done) -> None:
                progress = after(before, lambda so_far: job.step(phase, so_far, total))
                arrays = compute(recording, progress)
                with open(path, "wb") as stream:
                    np.savez(stream, **arrays)

            kept.append(job.once(f"{number:09d}.npz", make))
            done += n
            job.step(phase, done, total)
        return kept


@dataclass(frozen=True)
class FilledSet:
    """What was written: the set, its card (JSON) and its README; counts; and notes."""

    paths: list[Path]
    counts: GapCounts
    warnings: list[str]


def write_filled(
    filler: Filler,
    recordings: Recordings,
    output: Path | str,
    progress: Show = nothing,
    overwrite: bool = False,
) -> FilledSet:
    """Fill recordings into a folder, or a table where `output` ends in .parquet or .csv.

    Several draws are sets of their own, in OUTPUT/draw-1 and so on. A complete set of the same
    recordings and settings is left as it is.
    """
    output, draws = Path(output), filler.config.draws
    format = _format_of(output, recordings, draws)
    card = _card(filler, recordings)
    found = _Counted.of(filler, recordings, format, "filled")

    def compute(recording: Recording, progress: Progress) -> dict[str, Any]:
        gaps = filler.gaps(recording)
        courses = np.stack(filler.courses(gaps, progress))
        return {"courses": courses, **gaps.marks._asdict()}

    def write(job: Job, folder: Path) -> None:
        full = {**card, "format_written": format, "counts": asdict(found.counts)}
        full |= screen_fields(found.screens)
        kept = found.keep(job, "filling", recordings, compute)
        for draw in range(draws):
            of_draw = folder if draws == 1 else folder / f"draw-{draw + 1}"
            labelled = _filled(recordings, kept, draw, found.has_labels)
            write_recordings(of_draw, labelled, format, full)
        write_card(folder, format if draws == 1 else "", full, readme_of_filled)

    paths = written_set(output, format, card, write, overwrite, progress)
    return FilledSet(paths, found.counts, sorted(found.warnings))


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
    described = filler.sampler.describe()
    return {
        "format": "gazediffusion-filled",
        "synthetic": False,
        "gazediffusion_version": __version__,
        "fill": asdict(filler.config),
        "sources": describe_sources(recordings),
        "sampling": {k: v for k, v in described["sampling"].items() if k != "task"},
        "model": described["model"],
    }


def _filled(
    recordings: Recordings, stored: list[Path], draw: int, has_labels: bool
) -> Iterator[Labelled]:
    """The recordings of a draw, one at a time."""
    for recording, path in zip(recordings, stored, strict=True):
        with np.load(path) as found:
            marks = Marks(found["eye"].item(), found["is_filled"], float(found["rate_hz"]))
            course = found["courses"][draw]
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


@dataclass(frozen=True)
class LabelledSet:
    """What was written: the set, its card (JSON) and its README; samples by class; notes."""

    paths: list[Path]
    n_samples: dict[str, int]
    warnings: list[str]


def write_labelled(
    labeller: RecordingLabeller,
    recordings: Recordings,
    output: Path | str,
    progress: Show = nothing,
    overwrite: bool = False,
) -> LabelledSet:
    """Label recordings into a folder, or a table where `output` ends in .parquet or .csv.

    A complete set of the same recordings and settings is left as it is.
    """
    output = Path(output)
    format = format_of_recordings(output, recordings)
    card: dict[str, Any] = {
        "format": "gazediffusion-labelled",
        "synthetic": False,
        "gazediffusion_version": __version__,
        "labels": labeller.labeller.describe(),
        "cleaning": asdict(labeller.cleaning or CleaningConfig()),
        "sources": describe_sources(recordings),
    }
    found = _Counted.of(labeller, recordings, format, "labelled")

    def compute(recording: Recording, progress: Progress) -> dict[str, Any]:
        return {"labels": labeller.labels(labeller.gaps(recording), progress)}

    def write(job: Job, folder: Path) -> None:
        kept = found.keep(job, "labelling", recordings, compute)
        counts = np.sum([np.bincount(_labels_at(one), minlength=_N_CLASSES) for one in kept], 0)
        n_samples = dict(zip(EVENT_CLASSES, counts[1:].tolist(), strict=True))
        full = {**card, "format_written": format, "n_samples": n_samples}
        full |= screen_fields(found.screens)
        pairs = zip(recordings, kept, strict=True)
        labelled = (with_events(with_labels(one, _labels_at(path)), True) for one, path in pairs)
        write_recordings(folder, labelled, format, full, readme_of_labelled)

    paths = written_set(output, format, card, write, overwrite, progress)
    return LabelledSet(paths, card_at(paths)["n_samples"], sorted(found.warnings))


def _labels_at(path: Path) -> Labels:
    with np.load(path) as found:
        return np.asarray(found["labels"])


def readme_of_labelled(card: Mapping[str, Any]) -> str:
    """The card in words."""
    where = {
        "asc": "Before each event stands a message `LABEL class first last`; pursuits are also "
        "fixations of EyeLink, which has no other event for them.",
        "bids": "Events are rows of `_physioevents.tsv.gz`.",
    }.get(card["format_written"], "The column `event` has the class of each sample.")
    total = max(sum(card["n_samples"].values()), 1)
    shares = ", ".join(f"{name} {n / total:.1%}" for name, n in card["n_samples"].items())
    return f"""# Recordings with labels of events

A network labelled every sample as fixation, saccade, pursuit or noise; none by hand. Gaze is as
recorded. {where}

- samples: {shares}
- samples that are lost, or that cleaning takes out, are noise
- model: weights with sha256 `{card["labels"]["weights_sha256"]}`
- written by gazediffusion {card["gazediffusion_version"]} as {card["format_written"]}
"""


@dataclass(frozen=True)
class AugmentedSet:
    """What was written: the set, its card (JSON) and its README; the card; notes."""

    paths: list[Path]
    card: dict[str, Any]
    warnings: list[str]


def write_augmented(
    augmenter: Augmenter,
    recordings: Recordings,
    output: Path | str,
    progress: Show = nothing,
    overwrite: bool = False,
) -> AugmentedSet:
    """Generate synthetic recordings into a folder, or a table where `output` has its ending.

    A complete set of the same recordings and settings is left as it is.
    """
    output = Path(output)
    format = format_of_recordings(output, recordings)
    augmenter.loss_model  # noqa: B018  # a model without losses is refused before the long work
    study = augmenter.read(recordings, progress)
    batches = augmenter.batches(study)
    _require_writable_as(format, [one for batch in batches for one in batch.originals])
    labeller = augmenter.labeller(study)
    card = _augmented_card(augmenter, study, batches, recordings, labeller)

    def write(job: Job, folder: Path) -> None:
        full = {**card, "format_written": format}
        pieces = _generated(batches, job, labeller)
        write_recordings(
            folder, _synthetic(augmenter, study, batches, pieces), format, full, readme_of_augmented
        )
        if format == "bids":
            describe_bids(folder, full)

    paths = written_set(output, format, card, write, overwrite, progress)
    return AugmentedSet(paths, {**card, "format_written": format}, _warnings(card, batches))


def _require_writable_as(format: str, originals: list[Original]) -> None:
    """Refuse before the long work what the format cannot hold."""
    first: dict[Any, Any] = {}
    for one in originals:
        require_size(one.screen, format, one.path)
        if format in ("csv", "parquet"):
            alike = {"rate": one.rate_hz, ("screen", one.task): one.screen.in_words()}
            remedy = "augment recordings of one rate and screen at a time"
        else:
            label = plain(one.participant)
            alike = {("name", label): one.participant}
            if format == "asc":
                alike[("screen", label, one.task)] = one.screen.in_words()
            remedy = "give participants names that differ in letters and digits, and one screen"
        for what, value in alike.items():
            if first.setdefault(what, value) != value:
                word = what if isinstance(what, str) else what[0]
                raise GazeError(
                    f"a recording has the {word} {value}, an earlier one {first[what]}; {format} "
                    "cannot hold both",
                    path=one.path,
                    remedy=remedy,
                )


def _augmented_card(
    augmenter: Augmenter,
    study: Study,
    batches: list[Batch],
    recordings: Recordings,
    labeller: Labeller | None,
) -> dict[str, Any]:
    """What decides the synthetic recordings, and whose style they have; no gaze."""
    config, described = augmenter.config, augmenter.sampler.describe()
    originals = [one for batch in batches for one in batch.originals]
    rates = {one.rate_hz for one in originals}
    split: dict[str, Any] = {"held_out": study.held_out}
    if config.held_out is None:
        split |= {
            "validation_fraction": config.validation_fraction,
            "split_seed": config.split_seed,
        }
    elif isinstance(config.held_out, Windows):
        split["windows_sha256"] = config.held_out.provenance.get("data_sha256")
    losses = augmenter.loss_model
    sampling = {
        key: value
        for key, value in described["sampling"].items()
        if key not in ("task", "like", "constraints")
    }
    return {
        "format": "gazediffusion-augmented",
        "synthetic": True,
        "gazediffusion_version": __version__,
        "seed": config.seed,
        "times": config.times,
        "tasks": augmenter.tasks_of(study),
        "split": split,
        "cleaning": asdict(config.cleaning or CleaningConfig()),
        "participants": _participants(study, batches, config.times),
        "without_style": [list(pair) for pair in augmenter.without_style(study)],
        **({"rate_hz": rates.pop()} if len(rates) == 1 else {}),
        "grid_px": study.windows.grid_px,
        **screen_fields({one.task: one.screen for one in originals}),
        **({} if losses is None else {"losses": losses.describe()}),
        **({} if labeller is None else {"labels": labeller.describe()}),
        "sources": describe_sources(recordings),
        "sampling": sampling,
        "model": described["model"],
    }


def _participants(study: Study, batches: list[Batch], times: int) -> list[dict[str, Any]]:
    """A row for each participant and task: recordings, seconds, those of the style."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for batch in batches:
        for one in batch.originals:
            style = batch.sampler.style
            assert style is not None
            row = rows.setdefault(
                (one.participant, one.task),
                {
                    "participant": one.participant,
                    "task": one.task,
                    "recordings": 0,
                    "seconds": 0.0,
                    "style_seconds": style.origin["seconds"],
                    "synthetic": [synthetic_name(one.participant, k) for k in range(times)],
                    "synthetic_seconds": 0.0,
                },
            )
            row["recordings"] += 1
            row["seconds"] = round(row["seconds"] + one.seconds, 3)
            row["synthetic_seconds"] = round(times * row["seconds"], 3)
    return list(rows.values())


def _warnings(card: Mapping[str, Any], batches: list[Batch]) -> list[str]:
    """What a user should know of the set, a line each."""
    lines = []
    if pairs := card["without_style"]:
        listed = ", ".join(f"{name} ({task})" for name, task in pairs[:5])
        more = f" and {len(pairs) - 5} more" if len(pairs) > 5 else ""
        lines.append(f"not augmented, no valid segment is as long as a window: {listed}{more}")
    for batch in batches:
        own = batch.sampler.screens[batch.sampler.task or ""]
        if not all(one.screen.is_comparable_with(own) for one in batch.originals):
            lines.append(OTHER_ANGLE.format(done="generated"))
            break
    return lines


def _generated(batches: list[Batch], job: Job, labeller: Labeller | None) -> list[Pieces]:
    """The windows of every batch, and their labels, as the job keeps them."""
    total = sum(one.n * one.windows_each for one in batches)
    done, found = 0, []
    job.step("generating", 0, total)
    for number, batch in enumerate(batches):

        def progress(n: float, before: int = done, each: int = batch.windows_each) -> None:
            job.step("generating", before + n * each, total)

        pieces = Pieces(job, batch.sampler, batch.n, labeller, f"{number:06d}")
        pieces.store(progress)
        found.append(pieces)
        done += batch.n * batch.windows_each
    return found


def _synthetic(
    augmenter: Augmenter, study: Study, batches: list[Batch], pieces: list[Pieces]
) -> Iterator[Labelled]:
    """Synthetic recordings with their events, by participant, copy and task."""
    place = {
        one: (b, k) for b, batch in enumerate(batches) for k, one in enumerate(batch.originals)
    }
    by_participant: dict[str, dict[str, list[Original]]] = {}
    for one in study.originals:
        if one in place:
            by_participant.setdefault(one.participant, {}).setdefault(one.task, []).append(one)
    for tasks in by_participant.values():
        for copy in range(augmenter.config.times):
            for one in (one for originals in tasks.values() for one in originals):
                b, k = place[one]
                number = copy * len(batches[b].originals) + k
                gaze, labels = pieces[b].window(number)
                made = augmenter.recording(batches[b], number, gaze, study.windows.grid_px, labels)
                if labels is not None:
                    yield with_events(made, True)
                else:
                    gaze_px = made.gaze_px["cyclopean"]
                    yield made, detect_events(gaze_px, made.time_ms, one.screen)


def readme_of_augmented(card: Mapping[str, Any]) -> str:
    """The card in words."""
    rows, model, times = card["participants"], card["model"], card["times"]
    names = list(dict.fromkeys(row["participant"] for row in rows))
    seconds = sum(row["synthetic_seconds"] for row in rows)
    other = [f"{own} as {taken}" for own, taken in card["tasks"].items() if own != taken]
    taken = f"- tasks taken for another of the model: {', '.join(other)}\n" if other else ""
    held_out = ", ".join(card["split"]["held_out"]) or "nobody"
    lost = "blinks and losses, drawn too" if "losses" in card else "none"
    labels = f"of every sample; {card['labels']['by']}" if "labels" in card else "none"
    cells = ("participant", "task", "recordings", "seconds", "style_seconds")
    table = "\n".join(
        f"| {' | '.join(str(row[cell]) for cell in cells)} | {row['synthetic'][0]} to "
        f"{row['synthetic'][-1]} | {row['synthetic_seconds']:g} |"
        for row in rows
    )
    return f"""# Synthetic gaze in the style of {len(names)} participants

Synthetic recordings for each recording of {len(names)} participants: **{times}**, in all
{seconds:g} s. No participant was recorded: a diffusion model generated them, with the
summary statistics of each participant. Do not analyse or publish them as recordings. Gaze in the
style of a participant is personal data if the recordings are.

Add them to the recordings of these participants to train something, and test it on recordings of
held-out participants alone.

| participant | task | recordings | seconds | of them for the style | synthetic | seconds |
|---|---|---:|---:|---:|---|---:|
{table}

- held out, not augmented: {held_out}
{taken}- losses: {lost}
- event labels: {labels}
- model: recipe `{model["recipe"]}`, {model["weights"]} weights, sha256 `{model["weights_sha256"]}`
- seed {card["seed"]}
- written by gazediffusion {card["gazediffusion_version"]} as {card["format_written"]}
"""
