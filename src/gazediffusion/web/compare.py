"""Recordings beside synthetic windows: read, described, compared and reported.

Windows and evaluations stay in files and bytes: the functions that take a `Report` run in the
worker, and the server passes on what they return and does not open it.

Reading beside films gives itself away, so synthetic windows are of the recorded tasks, in the same
shares. Names are matched without case, spaces, dashes and underscores, and by known synonyms. A
task that the model does not have must be chosen; it is never replaced by the mixture of all.

The floor needs two groups of real windows. A windows file has training and held-out participants;
other recordings are divided here by participants or, of few participants, by gap-free segments.
Distances to synthetic windows and the floor are then taken at the same number of windows, and the
interval is over the same groups. With few windows both distances are mostly chance, and their ratio
is close to 1 whatever the windows are: then no ratio is stated.

Each of comparing and reporting exists twice: with one response at the end, and as a stream with
progress. Both do the same work.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import pickle
import re
import secrets
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Form, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response, StreamingResponse

import gazediffusion as gd
from gazediffusion.errors import GazeError, suggestion
from gazediffusion.web.generate import GenerationRequest, generated, windows_json
from gazediffusion.web.queue import (
    CANCELLED,
    INTERNAL,
    DisconnectedError,
    Messages,
    QueueFullError,
    event_schema,
    event_stream,
    log,
    received,
)
from gazediffusion.web.schemas import (
    ComparisonForm,
    EvaluationResponse,
    GenerationFields,
    Number,
    RealForm,
    RealResponse,
    ReportForm,
    Text,
    failures,
)
from gazediffusion.web.state import Play, Playground, ServedModel, nothing
from gazediffusion.web.uploads import Upload, require_all_bounds
from gazediffusion.web.worker import Report

routes = APIRouter()
MAX_SHOWN = 40
# More windows change little in the figures, and would delay other requests.
MAX_REAL = 1000
_KEPT = ("name", "title", "family", "unit", "level", "mean", "histogram", "distances")
N_COMPARED = 32  # synthetic windows, where no number is given
MIN_WINDOWS = 25  # of the recording, of the synthetic set, and of each compared set for a ratio
_MIN_GROUPS = 6  # two and four: an interval over fewer says nothing
_N_BOOTSTRAP = 100
# A model's task -> names of it in recordings: those of the packaged models' training data, the
# English singular, and what public datasets call the same.
_SYNONYMS = {
    "movies": ("movie", "film", "films", "video", "videos", "natural movies", "natural movie",
               "natural movies repeated", "movie viewing", "video viewing", "film viewing"),
    "trailers": ("trailer", "hollywood trailers", "movie trailers"),
    "stop-motion": ("stop motion movies", "stop motion movie"),
    "stills": ("still", "static images", "static image", "additional shuffled stills", "images",
               "pictures", "photos", "scenes", "scene viewing", "image viewing", "picture viewing"),
    "reading": ("reading text", "read", "text", "text reading"),
    "dots": ("dot", "random dot saccades", "random saccades", "jumping dots", "saccades"),
}  # fmt: skip


@dataclass(frozen=True)
class RealWindows:
    """Windows of recordings; reference: those of the training participants, of a windows file."""

    windows: gd.Windows
    reference: gd.Windows | None
    n_recordings: int


def read(
    source: Path,
    settings: dict[str, Any],
    rate_hz: float,
    seconds: float,
    kept: Path,
    max_bytes: int | None,
    report: Report,
) -> bytes:
    """Recordings cleaned and cut, or a windows file as it is; written to `kept`.

    rate_hz: of the windows, where the recordings are not slower. seconds: their length.
    max_bytes: to which a file may expand; None sets no bounds.
    """
    report({"stage": "reading", "done": 0, "n": None})
    if max_bytes is not None:
        require_all_bounds(source, max_bytes)
    kept.write_bytes(pickle.dumps(_read(source, settings, rate_hz, seconds, report)))
    return b""


def _read(
    source: Path, settings: dict[str, Any], rate_hz: float, seconds: float, report: Report
) -> RealWindows:
    if source.suffix == ".safetensors":
        windows = gd.Windows.load(source)
        trials = zip(windows.segment_participant, windows.segment_trial, strict=True)
        n_recordings = len(set(trials))
        if not windows.validation:
            return RealWindows(windows, None, n_recordings)
        return RealWindows(windows.held_out, windows.train, n_recordings)
    found: set[tuple[Any, ...]] = set()

    def count(recording: gd.Recording) -> None:
        found.add((recording.path, recording.participant, recording.task, recording.trial))
        report({"stage": "reading", "done": len(found), "n": None})

    windows = gd.real_windows(gd.read(source, **settings), rate_hz, seconds, count)
    return RealWindows(windows, None, len(found))


def count_tasks(kept: Path, report: Report) -> bytes:
    """How many windows each recorded task has, as JSON."""
    return _json(recorded_counts(_kept(kept).windows))


def describe(kept: Path, seconds: float | None, tasks: tuple[str, ...], report: Report) -> bytes:
    """Counts and some windows of recordings, the first seconds of each, as JSON.

    tasks: those of the model.
    """
    real = _kept(kept)
    windows = real.windows
    rate_hz = windows.rate_hz
    if seconds is not None and not 1 <= seconds <= windows.length / rate_hz:
        most = f"{windows.length / rate_hz:g}"
        raise GazeError(f"`seconds` must lie between 1 and {most} here, not {seconds:g}")
    n_samples = windows.length if seconds is None else round(seconds * rate_hz)
    names = [windows.participants[k] for k in np.unique(windows.participant)]
    found = {
        "n_windows": len(windows),
        "n_recordings": real.n_recordings,
        "participants": names,
        "tasks": list(recorded_counts(windows)),
        "model_tasks": model_tasks(recorded_counts(windows), tasks),
        "rate_hz": rate_hz,
        "screens": [asdict(windows.screens[k]) for k in np.unique(windows.screen_index)],
        "windows": [
            {**window, "x": window["x"][:n_samples], "y": window["y"][:n_samples]}
            for window in windows_json(windows.subsample(MAX_SHOWN))
        ],
    }
    return _json(found)


def compare(
    kept: Path,
    synthetic: gd.Windows,
    tasks: tuple[str, ...],
    task: str | None,
    evaluation: Path,
    report: Report,
) -> bytes:
    """Evaluate synthetic windows against recordings, without the slow tests.

    Of at most MAX_REAL real windows. tasks: those of the model; task: of recorded windows of none
    of these. The whole is written to `evaluation`; what the page draws is returned as JSON.
    """
    report({"stage": "comparing", "done": 0, "n": None})
    real = _kept(kept)
    taken, reference = (
        None if one is None else with_model_tasks(one.subsample(MAX_REAL), tasks, task)
        for one in (real.windows, real.reference)
    )
    assert taken is not None
    found = evaluated(taken, reference, synthetic)
    if len(taken) < len(real.windows):
        found.results["about"]["notes"].append(
            f"{len(taken)} of the {len(real.windows)} real windows are compared, evenly spaced"
        )
    shown = {name: _alone(windows) for name, windows in found.shown.items()}
    evaluation.write_bytes(pickle.dumps(replace(found, shown=shown)))
    return _json(_drawn(found))


def _drawn(evaluation: gd.Evaluation) -> dict[str, Any]:
    results = evaluation.results
    about, sets = results["about"], results["sets"]
    return {
        "n_real": sets["real"]["n_windows"],
        "n_synthetic": sets["synthetic"]["synthetic"]["n_windows"],
        "quantities": [{key: row[key] for key in _KEPT} for row in results["quantities"]],
        "warnings": evaluation.warnings,
        **{key: results[key] for key in ("scalars", "headline", "ratios", "main_sequence")},
        **{key: about[key] for key in ("n_common", "compared", "floor", "no_ratio", "notes")},
    }


def write_report(evaluation: bytes, report: Report) -> bytes:
    """The full report of an evaluation as one page."""
    import matplotlib

    matplotlib.use("Agg")  # No window may open.
    report({"stage": "writing", "done": 0, "n": None})
    found: gd.Evaluation = pickle.loads(evaluation)
    return found.to_html().encode()


def _kept(path: Path) -> RealWindows:
    found: RealWindows = pickle.loads(path.read_bytes())
    return found


def _alone(windows: gd.Windows) -> gd.Windows:
    """The same windows without the rest of their segments."""
    return gd.Windows.from_array(
        windows.cut(),
        windows.rate_hz,
        [windows.screens[k] for k in windows.screen_index],
        [windows.participants[k] for k in windows.participant],
        [windows.tasks[k] for k in windows.task],
    )


def _json(values: dict[str, Any]) -> bytes:
    return json.dumps(values, allow_nan=False).encode()


@dataclass(frozen=True, eq=False)
class _Groups:
    """Two groups of real windows, or one and no reference; floor: what they are, in words."""

    real: gd.Windows
    reference: gd.Windows | None
    floor: str


def evaluated(
    real: gd.Windows, reference: gd.Windows | None, synthetic: gd.Windows
) -> gd.Evaluation:
    """Evaluate synthetic windows; reference: of the training participants, where they are known.

    `about` of the results has two more entries: `floor`, the two groups in words, and `no_ratio`,
    why no ratio to the floor can be stated, or None.
    """
    groups = _groups(real, reference)
    n_bootstrap = 0 if groups.reference is None else _N_BOOTSTRAP
    config = gd.EvaluationConfig(n_bootstrap=n_bootstrap, with_tests=False)
    found = gd.evaluate(groups.real, {"synthetic": synthetic}, groups.reference, config)
    about, sets = found.results["about"], found.results["sets"]
    n_participants = len(np.unique(real.participant))
    if reference is None:
        for one in filter(None, (sets["real"], sets["train"])):
            one["n_participants"] = min(one["n_participants"], n_participants)
    n_reference = 0 if groups.reference is None else len(groups.reference)
    about["compared"] = (
        f"{len(groups.real) + n_reference:,} recorded windows of {_counted(n_participants)} and "
        f"{len(synthetic):,} synthetic windows are compared at {about['n_common']:,} windows a "
        f"set; the floor is the distance between {groups.floor}."
    )
    about["floor"] = groups.floor
    about["no_ratio"] = _no_ratio(groups, about["n_common"])
    return found


def _groups(real: gd.Windows, reference: gd.Windows | None) -> _Groups:
    """A third of the groups stands for the held-out participants, the rest for the reference."""
    if reference is not None:
        return _Groups(real, reference, "training and held-out participants of the windows file")
    floor = "two groups of participants of the recording"
    if len(np.unique(real.participant)) < _MIN_GROUPS:
        floor = f"two groups of gap-free segments of {_counted(len(np.unique(real.participant)))}"
        segments = np.arange(len(real.segment_starts), dtype=np.int32)
        names = tuple(f"segment {k}" for k in segments)
        real = replace(real, participants=names, segment_participant=segments)
    # In the order of their tasks, so that both groups have all tasks.
    pairs = sorted(set(zip(real.task.tolist(), real.participant.tolist(), strict=True)))
    numbers = list(dict.fromkeys(participant for _, participant in pairs))
    divided = replace(real, validation=frozenset(real.participants[k] for k in numbers[::3]))
    held_out, others = divided.held_out, divided.train
    if len(numbers) < _MIN_GROUPS or min(len(held_out), len(others)) < MIN_WINDOWS:
        return _Groups(real, None, "two halves of the recording")
    return _Groups(held_out, others, floor)


def _no_ratio(groups: _Groups, n_common: int) -> str | None:
    if groups.reference is None:
        return (
            f"the recording cannot be divided into {_MIN_GROUPS} gap-free segments or participants "
            f"with {MIN_WINDOWS} windows on either side, which the floor needs"
        )
    if n_common < MIN_WINDOWS:
        return (
            f"the sets are compared at {n_common} windows, and with fewer than {MIN_WINDOWS} both "
            "distances are mostly chance"
        )
    return None


def _counted(n_participants: int) -> str:
    return f"{n_participants} participant{'' if n_participants == 1 else 's'}"


def model_tasks(recorded: Iterable[str], known: Sequence[str]) -> dict[str, str | None]:
    """The model's task for each recorded one; None where the model has none of that name.

    >>> model_tasks(["natural_movies", "Free Viewing"], ["movies", "reading"])
    {'natural_movies': 'movies', 'Free Viewing': None}
    """
    by_word = {_word(name): task for task in known for name in _SYNONYMS.get(task, ())}
    # The model's own names come first.
    by_word |= {_word(task): task for task in known}
    # The paper's models call films natural_movies: a synonym may itself be the model's task.
    for names in ((task, *others) for task, others in _SYNONYMS.items()):
        found = next((by_word[_word(name)] for name in names if _word(name) in by_word), None)
        for name in names if found else ():
            by_word.setdefault(_word(name), str(found))
    return {name: by_word.get(_word(name)) for name in recorded}


def _word(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).lower()


def task_counts(
    recorded: Mapping[str, int], known: Sequence[str], task: str | None, n: int
) -> dict[str | None, int]:
    """How many of n synthetic windows are of each of the model's tasks.

    recorded: windows of each recorded task. task: of recorded windows whose own task the model does
    not have. A model without tasks generates windows of none.

    >>> task_counts({"natural_movies": 30, "reading_text": 10}, ["movies", "reading"], None, 8)
    {'movies': 6, 'reading': 2}
    """
    if not known:
        return {None: n}
    if task is not None and task not in known:
        raise GazeError(f"the model has no `task` {task!r}", remedy=suggestion(task, list(known)))
    found = model_tasks(recorded, known)
    missing = [name for name, match in found.items() if match is None]
    if missing and task is None:
        raise GazeError(
            f"the model has no task {_listed(missing)} of the recording",
            remedy=f"choose `task`: {', '.join(known)}",
        )
    if task is not None and not missing and task not in found.values():
        own = _listed(dict.fromkeys(str(match) for match in found.values()))
        raise GazeError(f"the recording's task is {own}, not {task}", remedy="leave out `task`")
    windows: dict[str | None, int] = {}
    for name, count in recorded.items():
        match = found[name] or task
        windows[match] = windows.get(match, 0) + count
    return _apportioned(windows, n)


def _listed(names: Iterable[str], at_most: int = 3) -> str:
    """Some names, and how many more there are."""
    named = list(names)
    more = f" and {len(named) - at_most} more" if len(named) > at_most else ""
    return ", ".join(repr(one) for one in named[:at_most]) + more


def _apportioned(weights: Mapping[str | None, int], n: int) -> dict[str | None, int]:
    """n divided by weights, rounded by largest remainders; those of none are left out."""
    exact = {key: n * weight / sum(weights.values()) for key, weight in weights.items()}
    whole = {key: math.floor(share) for key, share in exact.items()}
    by_remainder = sorted(exact, key=lambda key: whole[key] - exact[key])
    for key in by_remainder[: n - sum(whole.values())]:
        whole[key] += 1
    return {key: count for key, count in whole.items() if count}


def recorded_counts(windows: gd.Windows) -> dict[str, int]:
    """Windows of each recorded task."""
    numbers, counts = np.unique(windows.task, return_counts=True)
    return {windows.tasks[k]: int(n) for k, n in zip(numbers, counts, strict=True)}


def with_model_tasks(windows: gd.Windows, known: Sequence[str], task: str | None) -> gd.Windows:
    """Recorded windows whose tasks have the model's names, so that both sets agree in them."""
    found = model_tasks(windows.tasks, known)
    names = [found[name] or task or name for name in windows.tasks]
    unique = tuple(dict.fromkeys(names))
    number = np.array([unique.index(name) for name in names], dtype=np.int32)
    return replace(windows, tasks=unique, segment_task=number[windows.segment_task])


def joined(parts: Sequence[gd.Windows]) -> gd.Windows:
    """Generated windows of several tasks as one set."""
    if len(parts) == 1:
        return parts[0]
    steps = [one.segment_step for one in parts if one.segment_step is not None]
    return gd.Windows.from_array(
        np.concatenate([one.cut() for one in parts]),
        parts[0].rate_hz,
        [one.screens[k] for one in parts for k in one.screen_index],
        tasks=[one.tasks[k] for one in parts for k in one.task],
        protocol=parts[0].protocol,
        steps=np.concatenate(steps) if len(steps) == len(parts) else None,
        provenance=parts[0].provenance,
    )


@dataclass(frozen=True)
class Comparison:
    """A valid request for a comparison, or for the report of one."""

    play: Playground
    request: Request
    form: ComparisonForm
    fields: GenerationFields
    served: ServedModel

    @classmethod
    async def of(cls, play: Playground, request: Request, form: ComparisonForm) -> Comparison:
        """Check the fields of a form before its files are looked at."""
        n = min(N_COMPARED, play.settings.limits.max_windows) if form.n is None else form.n
        given = {name: getattr(form, name) for name in ("model", "task", "seed", "quality")}
        fields = GenerationFields(n=n, **given)
        limits = play.settings.limits
        requested = await asyncio.to_thread(GenerationRequest.of, fields, play.models, limits)
        return cls(play, request, form, fields, requested.served)

    async def begun(
        self, is_report: bool
    ) -> tuple[Callable[[Report], Coroutine[Any, Any, dict[str, Any]]], Callable[[], None]]:
        """What compares and, if asked for, writes the report; and what is to be closed after it."""
        name = self.form.comparison if isinstance(self.form, ReportForm) else None
        if name is None:
            upload = await self.play.stored(self.form.files, self.form.reading)
            return partial(self._compared, upload, is_report), upload.close
        kept = self.play.comparisons.find(name)
        if kept is None:
            raise HTTPException(404, "the comparison is no longer kept; compare again")
        return partial(self._page, kept, name), lambda: None

    async def _compared(self, upload: Upload, is_report: bool, report: Report) -> dict[str, Any]:
        """The results or their report, with the id under which they are kept.

        The recording is read first: an invalid one fails early, and its tasks are generated.
        """
        play, request, served = self.play, self.request, self.served
        if self.fields.n < MIN_WINDOWS:
            raise GazeError(
                f"`n` must be {MIN_WINDOWS} or more for a comparison, not {self.fields.n}"
            )
        real = await _recorded(play, upload, served, request, report)
        is_limited = bool(upload.paths)
        counts = await play.compute(request, report, is_limited, count_tasks, real)
        synthetic = await self._synthetic(json.loads(counts), report)
        given = (real, synthetic, served.about.tasks, self.fields.task, upload.evaluation)
        results = await play.compute(request, report, is_limited, compare, *given)
        evaluation = upload.evaluation.read_bytes()
        name = play.comparisons.add(evaluation)
        if is_report:
            return await self._page(evaluation, name, report)
        return {**json.loads(results), "comparison": name}

    async def _synthetic(self, recorded: dict[str, int], report: Report) -> gd.Windows:
        """Synthetic windows of the recorded tasks, in their shares."""
        play, fields, n_recorded = self.play, self.fields, sum(recorded.values())
        if n_recorded < MIN_WINDOWS:
            raise GazeError(
                f"the recording has {n_recorded} windows, and a comparison needs {MIN_WINDOWS}",
                remedy="add recordings, or a longer one",
            )
        parts: list[gd.Windows] = []
        counts = task_counts(recorded, self.served.about.tasks, fields.task, fields.n)
        for task, n in counts.items():
            before = sum(map(len, parts))

            def generating(progress: dict[str, Any], before: int = before) -> None:
                report({**progress, "done": before + progress["done"], "n": fields.n})

            of_task = fields.model_copy(update={"task": task, "n": n})
            given = (of_task, play.models, play.settings.limits)
            requested = await asyncio.to_thread(GenerationRequest.of, *given)
            parts.append(await generated(play, requested, self.request, generating))
        return joined(parts)

    async def _page(self, evaluation: bytes, name: str | None, report: Report) -> dict[str, Any]:
        page = await self.play.compute(self.request, report, True, write_report, evaluation)
        return {"page": page.decode(), "comparison": name}

    async def answer(self, is_report: bool) -> dict[str, Any]:
        """The result, at the end of the work."""
        work, close = await self.begun(is_report)
        try:
            return await work(nothing)
        finally:
            close()

    async def stream(self, is_report: bool) -> Response:
        """The events queued and progress, then done with the result, or failed."""
        play, messages = self.play, Messages()
        work, close = await self.begun(is_report)
        job, ahead = secrets.token_hex(8), play.comparison.n_active

        def ended(task: asyncio.Task[dict[str, Any]]) -> None:
            play.streams.pop(job, None)
            close()
            messages.put_nowait(_outcome(task))

        task = asyncio.create_task(
            work(lambda progress: messages.put_nowait(("progress", progress)))
        )
        play.streams[job] = task
        task.add_done_callback(ended)
        queued = {"job": job, "ahead": ahead}
        return event_stream(queued, received(messages, self.request), task.cancel)


def _outcome(task: asyncio.Task[dict[str, Any]]) -> tuple[str, Any]:
    """The last message of a stream: done and the result, or failed and one line."""
    if task.cancelled():
        return "failed", CANCELLED
    error = task.exception()
    if error is None:
        return "done", task.result()
    if isinstance(error, (GazeError, QueueFullError, HTTPException)):
        return "failed", getattr(error, "detail", str(error))
    if not isinstance(error, DisconnectedError):
        log.error("a stream failed: %s", type(error).__name__)
    return "failed", INTERNAL


async def _recorded(
    play: Playground, upload: Upload | None, model: ServedModel, request: Request, report: Report
) -> Path:
    """The windows of an upload, of the model's length, in a file of the worker.

    Without files they are those of the recordings that the server was started with.
    """
    if upload is not None and upload.paths:
        given = (upload.source, upload.settings, *model.cut, upload.windows, play.max_bytes)
        await play.read(upload, request, report, read, *given)
        return upload.windows
    path = play.settings.real
    if path is None:
        raise GazeError(
            "no recording was given", remedy="send `files`, or start the server with `real`"
        )
    rate_hz, seconds = model.cut
    async with play.reading:
        kept = play.folder / f"{round(seconds * rate_hz)} samples at {rate_hz:g} Hz"
        if not kept.exists():
            part = kept.with_name("part")
            settings = dict(play.settings.reading)
            await play.compute(
                request, report, False, read, path, settings, rate_hz, seconds, part, None
            )
            part.rename(kept)
    return kept


async def _described(
    play: Playground,
    request: Request,
    upload: Upload | None,
    model: str | None,
    seconds: float | None,
) -> Response:
    served = play.models.find(model)
    kept = await _recorded(play, upload, served, request, nothing)
    given = (kept, seconds, served.about.tasks)
    found = await play.compute(request, nothing, upload is not None, describe, *given)
    return Response(found, media_type="application/json")


_FAILURES = failures(400, 408, 413, 422, 429)
_EVENTS = {200: event_schema("queued", "progress", "done", "failed"), **_FAILURES}
_PAGE = {"description": "The page", "content": {"text/html": {"schema": {"type": "string"}}}}
_REAL: dict[str, Any] = {"response_model": RealResponse, "response_class": JSONResponse}
_FORM = Form(media_type="multipart/form-data")


@routes.get(
    "/real", summary="Describe the recording of --real", responses=failures(404, 422, 429), **_REAL
)
async def served_real(
    play: Play,
    request: Request,
    model: Annotated[Text, Query()] = None,
    seconds: Annotated[Number, Query()] = None,
) -> Response:
    """The recording that `serve --real` was given, in windows of the model's length."""
    if play.settings.real is None:
        raise HTTPException(404, "the server was started without --real")
    return await _described(play, request, None, model, seconds)


@routes.post("/real", summary="Describe a recording", responses=_FAILURES, **_REAL)
async def real(play: Play, request: Request, form: Annotated[RealForm, _FORM]) -> Response:
    """Cleaned, resampled and cut into windows of the model's length. Read in a temporary folder
    that is deleted before the response is sent; nothing is stored."""
    with contextlib.closing(await play.stored(form.files, form.reading)) as upload:
        return await _described(play, request, upload, form.model, form.seconds)


@routes.post(
    "/evaluate",
    summary="Compare synthetic windows with a recording",
    response_model=EvaluationResponse,
    responses=_FAILURES,
)
async def evaluate(
    play: Play, request: Request, form: Annotated[ComparisonForm, _FORM]
) -> Response:
    """The result of `gazediffusion evaluate` for one synthetic set named `synthetic`, without the
    slow tests. Without files, the recording of --real is used. `comparison` is its id, for
    /api/report."""
    return JSONResponse(await (await Comparison.of(play, request, form)).answer(False))


@routes.post(
    "/evaluate/stream",
    summary="Compare, with progress",
    response_class=StreamingResponse,
    responses=_EVENTS,
)
async def evaluate_stream(
    play: Play, request: Request, form: Annotated[ComparisonForm, _FORM]
) -> Response:
    """The same as /api/evaluate as server-sent events: queued, progress (stages reading,
    generating, comparing), then done or failed. The work ends when the connection is closed."""
    return await (await Comparison.of(play, request, form)).stream(False)


@routes.post(
    "/report",
    summary="Write the full report of a comparison",
    response_class=Response,
    responses={200: _PAGE, **_FAILURES, **failures(404)},
)
async def report(play: Play, request: Request, form: Annotated[ReportForm, _FORM]) -> Response:
    """One self-contained HTML page, as `gazediffusion evaluate` writes it: of a comparison made
    before, or of a new one."""
    found = await (await Comparison.of(play, request, form)).answer(True)
    # The report's own head states what it may load; the page's policy would forbid its script.
    return HTMLResponse(
        found["page"], headers={"Content-Security-Policy": "frame-ancestors 'none'"}
    )


@routes.post(
    "/report/stream",
    summary="Write the full report, with progress",
    response_class=StreamingResponse,
    responses={**_EVENTS, **failures(404)},
)
async def report_stream(
    play: Play, request: Request, form: Annotated[ReportForm, _FORM]
) -> Response:
    """The same as /api/report as server-sent events: queued, progress (stages reading, generating,
    comparing, writing), then done, with the page, or failed."""
    return await (await Comparison.of(play, request, form)).stream(True)
