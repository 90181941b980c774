"""Requests and responses: the types behind the OpenAPI description.

Only types are checked here. The library checks values, so that the API reports the same errors as
the command line.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

MEDIA_TYPES = {
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "csv": "application/zip",
    "npz": "application/x-npz",
    "bids": "application/zip",
    "asc": "application/zip",
}
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
# A field left empty in a form or in an address is a field not given.
EMPTY_IS_NONE = BeforeValidator(lambda value: None if value == "" else value)
Model = Annotated[
    str | None,
    EMPTY_IS_NONE,
    Field(None, description="A name of /api/models; omitted: its default.", examples=["joint"]),
]
Task = Annotated[
    str | None,
    EMPTY_IS_NONE,
    Field(None, description="A task of the model; omitted: the mixture of the training windows."),
]
# JSON has one kind of number: 3.0 is 3.
_WHOLE = BeforeValidator(
    lambda value: int(value) if isinstance(value, float) and value.is_integer() else value
)
N = Annotated[
    int,
    _WHOLE,
    Field(6, description="Number of windows.", examples=[3], json_schema_extra={"minimum": 1}),
]
Seed = Annotated[
    int,
    _WHOLE,
    Field(
        0,
        description="Window k of a seed is always the same window.",
        json_schema_extra={"minimum": 0},
    ),
]
Quality = Annotated[
    str,
    Field(
        "default",
        description="default or best, with more sampling steps.",
        json_schema_extra={"enum": ["default", "best"]},
    ),
]
Seconds = Annotated[
    float | None,
    EMPTY_IS_NONE,
    Field(
        None,
        description="Length of every window, also in files: 1 to the length of the model's "
        "windows, or any up to an hour of a steerable model.",
        examples=[2.0],
    ),
]
Rate = Annotated[
    float | None,
    EMPTY_IS_NONE,
    Field(
        description="Low-pass the windows and bring them to this rate in Hz, also in files; "
        "at most that of the model, which is the default.",
        examples=[60.0],
    ),
]

Losses = Annotated[
    bool,
    Field(
        description="Add blinks and losses of the eye, also in files; lost samples are null.",
    ),
]
Labels = Annotated[
    bool,
    Field(
        description="Add the event class of every sample, also in files: fixation, saccade, "
        "pursuit or noise, of a model with labels. The gaze is the same without.",
    ),
]
At = Annotated[
    list[str],
    BeforeValidator(
        lambda value: [one for one in value if one != ""] if isinstance(value, list) else value
    ),
    Field(
        description="Waypoints SECONDS:X,Y in pixels of the task's screen, of a steerable model.",
        examples=[["2.0:900,200"]],
    ),
]
Start = Annotated[
    str | None,
    EMPTY_IS_NONE,
    Field(
        description="Where gaze begins, X,Y in pixels of the task's screen, of a steerable model.",
        examples=["640,360"],
    ),
]
Table = Annotated[str | None, EMPTY_IS_NONE]


def failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The failures of a route, for its OpenAPI description."""
    return {one: {"model": Failure, "description": _FAILURES[one]} for one in statuses}


class GenerationFields(BaseModel):
    """Which windows to generate."""

    model: Model
    task: Task
    n: N
    seed: Seed
    quality: Quality
    seconds: Seconds
    rate_hz: Rate = None
    losses: Losses = False
    labels: Labels = False
    at: At = []
    start: Start = None


class UploadFields(GenerationFields):
    """The same beside the files of /api/generate/upload.

    candidates: windows generated for each window of `like`.
    """

    candidates: int | None = None


class GenerateRequest(GenerationFields):
    """The body of /api/generate. /api/generate/stream takes the same names in its address."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        json_schema_extra={"examples": [{"n": 3, "seed": 7, "quality": "best", "format": "csv"}]},
    )

    format: Annotated[
        str,
        Field(
            "json",
            description="json: numbers; parquet, npz: the file, which contains its card; csv: a "
            "zip of the file with card and README; bids, asc: a zip of the folder with both.",
            json_schema_extra={"enum": ["json", "parquet", "csv", "npz", "bids", "asc"]},
        ),
    ]
    scanpath: Annotated[
        Table,
        Field(
            description="A table of fixations that windows make, as the text of a CSV file: x, y, "
            "and onset or duration where they are known; of a steerable model.",
            examples=["x_px,y_px,duration_ms\n640,360,250\n900,200,"],
        ),
    ] = None
    targets: Annotated[
        Table,
        Field(
            description="A table of when a target jumps where, as the text of a CSV file: time, x, "
            "y; of a steerable model.",
            examples=["t_ms,x_px,y_px\n0,640,360\n1000,900,200"],
        ),
    ] = None


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
    has_losses: bool = Field(description="Whether `losses` can be added to its windows.")
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
