"""Augmented sets: synthetic recordings of a study, written in its format with a card that says so.

What is generated is stored piece by piece in a hidden work folder beside the output, so that an
interrupted call resumes. The set holds synthetic recordings alone; the study is not copied.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gazediffusion.data.events import detect_events
from gazediffusion.data.export import Labelled
from gazediffusion.data.export.card import screen_fields
from gazediffusion.data.export.labelled import plain
from gazediffusion.data.export.windows import describe_bids, put_set_in_place, require_free_set
from gazediffusion.data.windows import Windows
from gazediffusion.errors import GazeError
from gazediffusion.generation.augmentation import Augmenter, Batch, synthetic_name
from gazediffusion.generation.labelling import Labeller
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
from gazediffusion.generation.sets import store_pieces, stored_labels, stored_window
from gazediffusion.generation.study import OnRecording, Original, Study
from gazediffusion.settings import CleaningConfig
from gazediffusion.storage import require_writable, write_json, written_whole
from gazediffusion.version import __version__

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings


@dataclass(frozen=True)
class AugmentedSet:
    """What was written: the set, its card (JSON) and its README; the card; what to know of it."""

    paths: list[Path]
    card: dict[str, Any]
    warnings: list[str]


def write_augmented(
    augmenter: Augmenter,
    recordings: Recordings,
    output: Path | str,
    begin: Total = lambda n_windows: lambda done: None,
    on_recording: OnRecording = lambda recording: None,
    overwrite: bool = False,
) -> AugmentedSet:
    """Generate synthetic recordings into a folder, or a table where `output` has its ending.

    begin: called with the number of windows to generate, before the first; what it returns is
    called with the number done. on_recording: called with each recording that is read.
    """
    output = Path(output)
    format = format_of_recordings(output, recordings)
    require_free_set(output, format, overwrite)
    require_writable(output)
    augmenter.loss_model  # noqa: B018  # a model without losses is refused before the long work
    study = augmenter.read(recordings, on_recording)
    batches = augmenter.batches(study)
    _require_writable_as(format, [one for batch in batches for one in batch.originals])
    labeller = augmenter.labeller(study)
    card = _card(augmenter, study, batches, recordings, labeller)
    work = work_folder(output, card)
    card["format_written"] = format
    progress = begin(sum(one.n * one.windows_each for one in batches))
    _generate(batches, work, labeller, progress)
    shutil.rmtree(work / "set", ignore_errors=True)
    with written_whole(work / "set") as folder:
        folder.mkdir(parents=True)
        synthetic = _synthetic(augmenter, study, batches, work, labeller is not None)
        write_recordings(folder, synthetic, format, card)
        (folder / "README.md").write_text(readme_of_augmented(card), encoding="utf-8")
        write_json(folder / "card.json", card)
        if format == "bids":
            describe_bids(folder, card)
    written = put_set_in_place(work / "set", output, format, overwrite)
    shutil.rmtree(work, ignore_errors=True)
    return AugmentedSet(written, card, _warnings(card, batches))


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


def _card(
    augmenter: Augmenter,
    study: Study,
    batches: list[Batch],
    recordings: Recordings,
    labeller: Labeller | None,
) -> dict[str, Any]:
    """What decides the synthetic recordings, and whose style they have; no gaze."""
    config, described = augmenter.config, augmenter.generator.describe()
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
            style = batch.generator.style
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
        own = batch.generator.screens[batch.generator.task or ""]
        if not all(one.screen.is_comparable_with(own) for one in batch.originals):
            lines.append(OTHER_ANGLE.format(done="generated"))
            break
    return lines


def _generate(
    batches: list[Batch], work: Path, labeller: Labeller | None, progress: Progress
) -> None:
    """Store the windows of every batch, and their labels; those there stay."""
    done = 0
    for number, batch in enumerate(batches):
        each, so_far = batch.windows_each, after(done, progress)

        def counted(windows: float, each: int = each, so_far: Progress = so_far) -> None:
            so_far(windows * each)

        folder = _folder(work, number)
        store_pieces(folder, batch.generator, batch.n, batch.seed, counted, labeller)
        done += batch.n * each


def _folder(work: Path, number: int) -> Path:
    return work / f"{number:06d}"


def _synthetic(
    augmenter: Augmenter, study: Study, batches: list[Batch], work: Path, has_labels: bool
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
                batch, number = batches[b], copy * len(batches[b].originals) + k
                where = (_folder(work, b), batch.generator.batch_size, batch.n, number)
                gaze, grid_px = stored_window(*where), study.windows.grid_px
                if has_labels:
                    labels = stored_labels(*where)
                    made = augmenter.recording(batch, number, gaze, grid_px, labels)
                    yield with_events(made, has_labels)
                else:
                    made = augmenter.recording(batch, number, gaze, grid_px)
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
