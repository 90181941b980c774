"""Requests and responses: the types behind the OpenAPI description.

Only types are checked here. The library checks values, so that the API reports the same errors as
the command line.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import UploadFile
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

import gazediffusion as gd
from gazediffusion import settings
from gazediffusion.options import request_field
from gazediffusion.settings import (
    Augmenting,
    Filling,
    Finishing,
    Generating,
    Numbered,
    Sampled,
    Scoring,
    Steering,
)

MEDIA_TYPES = {
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "csv": "application/zip",
    "npz": "application/x-npz",
    "bids": "application/zip",
    "asc": "application/zip",
}
FILE = {"schema": {"type": "string", "format": "binary"}}
_FAILURES = {
    400: "The body cannot be read",
    401: "The token is missing or wrong",
    403: "Sent by a page of another site",
    404: "Not found",
    408: "The body did not arrive in time",
    413: "Too large",
    422: "Invalid; the text names the field in backticks",
    429: "The queue is full; see Retry-After",
}


def failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The failures of a route, for its OpenAPI description."""
    return {one: {"model": Failure, "description": _FAILURES[one]} for one in statuses}


def _given(value: Any) -> Any:
    """A field left empty in a form or in an address is a field not given."""
    if isinstance(value, list):
        return [one for one in value if one != ""]
    return None if value == "" else value


def _whole(value: Any) -> Any:
    """JSON has one kind of number: 3.0 is 3."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _choice(default: str | None, description: str | None, *values: str | None) -> Any:
    """A field of one of these values, which the library checks."""
    return Field(default, description=description, json_schema_extra={"enum": list(values)})


EMPTY_IS_NONE = BeforeValidator(_given)
Text = Annotated[str | None, EMPTY_IS_NONE]
Number = Annotated[float | None, EMPTY_IS_NONE]
Flag = Annotated[bool | None, EMPTY_IS_NONE]
Texts = Annotated[list[str], EMPTY_IS_NONE]
Integer = Annotated[int, BeforeValidator(_whole)]
File = Annotated[UploadFile | None, EMPTY_IS_NONE]
Quality = Annotated[str, Field(json_schema_extra={"enum": ["default", "best"]})]
Seed = Annotated[Integer, Field(json_schema_extra={"minimum": 0})]
FORMATS = ("json", "parquet", "csv", "npz", "bids", "asc")


class GenerationFields(BaseModel):
    """Which windows to generate."""

    model: Text = Field(
        None, description="A name of /api/models; omitted: its default.", examples=["joint"]
    )
    task: Text = request_field(Generating, "task")
    n: Integer = Field(
        6, description="Number of windows.", examples=[3], json_schema_extra={"minimum": 1}
    )
    seed: Seed = request_field(Numbered, "seed")
    quality: Quality = request_field(Generating, "quality")
    seconds: Number = request_field(Generating, "seconds")
    rate_hz: Number = request_field(Finishing, "rate_hz")
    track_loss: bool = request_field(Finishing, "track_loss")
    labels: bool = request_field(Finishing, "labels")
    at: Texts = request_field(Steering, "at", default=[], examples=[["2.0:900,200"]])
    start: Text = Field(
        None,
        description="Where gaze begins, X,Y in pixels of the task's screen, of a steerable model.",
        examples=["640,360"],
    )


class GenerateRequest(GenerationFields):
    """The body of /api/generate. /api/generate/stream takes the same names in its address."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        json_schema_extra={"examples": [{"n": 3, "seed": 7, "quality": "best", "format": "csv"}]},
    )

    format: str = _choice(
        "json",
        "json: numbers; parquet, npz: the file, which contains its card; csv: a zip of the file "
        "with card and README; bids, asc: a zip of the folder with both.",
        *FORMATS,
    )
    scanpath: Text = Field(
        None,
        description="A table of fixations that windows make, as the text of a CSV file: x, y, "
        "and onset or duration where they are known; of a steerable model.",
        examples=["x_px,y_px,duration_ms\n640,360,250\n900,200,"],
    )
    targets: Text = Field(
        None,
        description="A table of when a target jumps where, as the text of a CSV file: time, x, "
        "y; of a steerable model.",
        examples=["t_ms,x_px,y_px\n0,640,360\n1000,900,200"],
    )


class Reading(BaseModel):
    """What recordings do not state themselves, in every form with recordings."""

    screen: Text = request_field(settings.Reading, "screen")
    screen_cm: Text = request_field(settings.Reading, "screen_cm")
    distance_cm: Number = request_field(settings.Reading, "distance_cm")
    override_screen: Flag = request_field(settings.Reading, "override_screen", default=None)
    unit: Text = request_field(settings.Reading, "unit")
    origin: Text = request_field(settings.Reading, "origin")
    columns: Text = request_field(settings.Reading, "columns")
    source_rate: Number = request_field(settings.Reading, "source_rate_hz")

    @property
    def reading(self) -> dict[str, Any]:
        """The same for `gd.read`."""
        return {
            "screen": gd.Screen.parse(self.screen, self.screen_cm, self.distance_cm),
            "override_screen": bool(self.override_screen),
            "columns": self.columns,
            "unit": self.unit,
            "origin": self.origin,
            "source_rate_hz": self.source_rate,
        }


class UploadForm(Reading, GenerationFields):
    """The form of /api/generate/upload."""

    scanpath: File = Field(
        None,
        description="A table of fixations that windows make: x, y, and onset or duration where "
        "they are known. Window k takes scanpath k.",
    )
    targets: File = Field(None, description="A table of when a target jumps where: time, x, y.")
    like: list[UploadFile] = Field(
        [],
        description="A recording of one participant, or a windows file: its style is taken.",
    )
    task: Text = Field(None, description="Task of all windows, and of the recording `like`.")
    n: Integer = Field(6, description="Windows; default: one for each scanpath or target, or 6.")
    candidates: Annotated[int | None, EMPTY_IS_NONE] = request_field(Generating, "candidates")
    format: str = _choice("json", None, *FORMATS)


Files = Annotated[
    list[UploadFile],
    Field(
        description="Recordings in any format that `gazediffusion inspect` reads; a name may "
        "contain folders."
    ),
]


class RealForm(Reading):
    """The form of /api/real."""

    files: Files
    model: Text = None
    seconds: Number = None


class ComparisonForm(Reading):
    """The form of /api/evaluate; without files, the recording of --real is compared."""

    files: Files = []
    model: Text = None
    task: Text = Field(
        None,
        description="Of recorded windows whose own task the model does not have; the others "
        "are compared with synthetic windows of their own, in the same shares.",
    )
    n: Annotated[int | None, EMPTY_IS_NONE] = Field(
        None, description="Synthetic windows; default 32.", json_schema_extra={"minimum": 25}
    )
    seed: Seed = 0
    quality: Quality = "default"


class ReportForm(ComparisonForm):
    """The form of /api/report."""

    comparison: Text = Field(
        None, description="The id of a comparison made before; no other field is then needed."
    )


class RecordingForm(Reading):
    """What the forms of fill, label, augment and score share: recordings, and how to clean them."""

    files: Files
    model: Text = None
    format: Text = _choice(
        None,
        "Of the response; default: the recordings' own where it is written (bids, asc, csv, "
        "parquet), else parquet.",
        *("csv", "parquet", None),
    )
    eye: str = request_field(settings.Reading, "eye")
    blink_before_ms: float = request_field(settings.Reading, "blink_before_ms")
    blink_after_ms: float = request_field(settings.Reading, "blink_after_ms")
    max_speed_deg_s: float = request_field(settings.Reading, "max_speed_deg_s")

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the function of the library, by its names."""
        cleaning = gd.CleaningConfig(
            eye=self.eye,  # type: ignore[arg-type]  # checked by the config itself
            blink_before_ms=self.blink_before_ms,
            blink_after_ms=self.blink_after_ms,
            max_speed_deg_s=self.max_speed_deg_s,
        )
        own = self.model_dump(exclude=set(RecordingForm.model_fields))
        return {"cleaning": cleaning, **own}


class FillForm(RecordingForm):
    """The form of /api/fill."""

    task: Text = request_field(Filling, "task")
    seed: Seed = request_field(Filling, "seed")
    quality: Quality = request_field(Sampled, "quality")
    draws: int = request_field(Filling, "draws")
    max_gap_s: float = request_field(Filling, "max_gap_s")


class AugmentForm(RecordingForm):
    """The form of /api/augment."""

    times: int = request_field(Augmenting, "times")
    task: Text = request_field(Augmenting, "task")
    track_loss: bool = request_field(Augmenting, "track_loss")
    labels: Flag = request_field(Augmenting, "labels")
    held_out: Texts = request_field(Augmenting, "held_out", default=[])
    val_fraction: float = request_field(Augmenting, "validation_fraction")
    split_seed: Seed = request_field(Augmenting, "split_seed")
    seed: Seed = request_field(Augmenting, "seed")
    quality: Quality = request_field(Sampled, "quality")

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of `gd.augment`."""
        found = super().settings
        found["validation_fraction"] = found.pop("val_fraction")
        return {**found, "held_out": self.held_out or None}


class ScoreForm(RecordingForm):
    """The form of /api/score."""

    task: Text = request_field(Scoring, "task")
    likelihood: bool = request_field(Scoring, "has_likelihood", default=False)
    stride_s: Number = Field(None, description="Between windows; default: their length.")
    seed: Seed = request_field(Scoring, "seed")

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of `gd.score`."""
        found = super().settings
        found["has_likelihood"] = found.pop("likelihood")
        return found


class Failure(BaseModel):
    """Every response that is not a success."""

    error: str = Field(
        description="One line.", examples=["`n` must be 500 or fewer here, not 1000"]
    )


class HealthResponse(BaseModel):
    """A server that responds."""

    status: str = Field(examples=["ok"])
    version: str


class ScreenResponse(BaseModel):
    """A screen; its size in centimetres and the viewing distance may be unknown."""

    width_px: int
    height_px: int
    width_cm: float | None
    height_cm: float | None
    distance_cm: float | None


class ModelResponse(BaseModel):
    """A model that is served."""

    name: str
    recipe: str
    tasks: list[str]
    seconds: float
    rate_hz: float
    screen: ScreenResponse = Field(description="Of the first training windows.")
    task_screens: dict[str, ScreenResponse]
    qualities: list[str]
    has_losses: bool = Field(description="Whether `track_loss` can be added to its windows.")
    has_labels: bool = Field(
        description="Whether it gives `labels` to its windows, and to recordings (/api/label)."
    )
    is_steerable: bool = Field(
        description="Whether windows may be of any length and keep to a scanpath, targets, "
        "waypoints and a start, and gaps of recordings be filled."
    )
    trained_on: dict[str, Any]


class LimitsResponse(BaseModel):
    """The limits of one request; max_jobs counts running and waiting jobs."""

    max_windows: int = Field(
        description="Of the length of the model's windows; a longer one counts as several."
    )
    max_seconds: float
    max_upload_mb: int
    max_jobs: int
    max_memory_mb: int = Field(description="Of the process that reads and compares an upload.")
    max_work_s: int = Field(description="Of reading, comparing and writing a report, each.")


class ModelsResponse(BaseModel):
    """What the server offers."""

    models: list[ModelResponse]
    default: str
    limits: LimitsResponse
    has_real: bool
    version: str


class Window(BaseModel):
    """Gaze in normalized units: [-1, 1], origin at the centre, y down; five decimals."""

    index: int
    task: str
    screen: ScreenResponse = Field(description="Of this window.")
    x: list[float | None] = Field(description="null where the eye is lost.")
    y: list[float | None]
    labels: list[tuple[str, int, int]] | None = Field(
        None,
        description="The events as [class, first, stop]: samples first to stop - 1 are of the "
        "class. Only where the windows have labels; samples in no event have none.",
        examples=[[["fixation", 0, 62], ["saccade", 62, 71]]],
    )


class GenerateResponse(BaseModel):
    """Generated windows and their card."""

    card: dict[str, Any]
    windows: list[Window]


class RealResponse(BaseModel):
    """A recording, cleaned, resampled and cut into windows of the model's length."""

    n_windows: int
    n_recordings: int
    participants: list[str]
    tasks: list[str]
    model_tasks: dict[str, str | None] = Field(
        description="The model's task for each recorded one; null where it has none of that name."
    )
    rate_hz: float
    screens: list[ScreenResponse]
    windows: list[Window] = Field(description="At most 40, evenly spaced.")


class QuantityResponse(BaseModel):
    """One quantity of real and synthetic windows: means, densities, distances with their floor."""

    name: str
    title: str
    family: str
    unit: str
    level: Literal["window", "pooled"]
    mean: dict[str, float | None]
    histogram: dict[str, list[float]]
    distances: dict[str, Any]


class EvaluationResponse(BaseModel):
    """The result of `gazediffusion evaluate --quick`; see docs/metrics.md."""

    n_real: int
    n_synthetic: int
    quantities: list[QuantityResponse]
    scalars: list[dict[str, Any]]
    headline: dict[str, Any]
    n_common: int = Field(description="Windows of each set at which distances are taken.")
    compared: str
    floor: str = Field(description="The two groups of real windows that the floor is between.")
    no_ratio: str | None = Field(description="Why no ratio to the floor should be stated.")
    warnings: list[str]
    ratios: dict[str, Any]
    main_sequence: dict[str, Any]
    notes: list[str]
    comparison: str | None = Field(description="Its id, for /api/report; kept for 15 minutes.")
