"""What requests and answers look like: the types behind the OpenAPI description.

Only types are checked here; what a number may be is checked by the library itself, so that the
API refuses with the words of the command line.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

MEDIA_TYPES = {
    "json": "application/json",
    "parquet": "application/vnd.apache.parquet",
    "csv": "text/csv",
    "npz": "application/x-npz",
    "bids": "application/zip",
    "asc": "application/zip",
}
# A field left empty in a form or in an address is a field not given.
EMPTY_IS_NONE = BeforeValidator(lambda value: None if value == "" else value)
Model = Annotated[
    str | None,
    EMPTY_IS_NONE,
    Field(None, description="One of /api/models; left out, its default.", examples=["joint"]),
]
Task = Annotated[
    str | None,
    EMPTY_IS_NONE,
    Field(None, description="One of the model's tasks; left out, a mixture as it was trained on."),
]
# JSON has one kind of number: 3.0 is 3.
_WHOLE = BeforeValidator(
    lambda value: int(value) if isinstance(value, float) and value.is_integer() else value
)
N = Annotated[
    int,
    _WHOLE,
    Field(6, description="How many windows.", examples=[3], json_schema_extra={"minimum": 1}),
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
        description="fast, default or best: more steps, more fidelity.",
        json_schema_extra={"enum": ["fast", "default", "best"]},
    ),
]
Seconds = Annotated[
    float | None,
    EMPTY_IS_NONE,
    Field(
        None,
        description="Keep so much of every window from its start: 1 to the model's own length. "
        "Files are cut likewise.",
        examples=[2.0],
    ),
]


class Asked(BaseModel):
    """Windows that somebody wants."""

    model: Model
    task: Task
    n: N
    seed: Seed
    quality: Quality
    seconds: Seconds


class AskedFile(Asked):
    """The body of /api/generate. The address of /api/generate/stream takes the same names."""

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        json_schema_extra={"examples": [{"n": 3, "seed": 7, "quality": "fast", "format": "csv"}]},
    )

    format: Annotated[
        str,
        Field(
            "json",
            description="json: numbers; parquet, csv, npz: the file; bids, asc: a zip of a folder "
            "with its card and README.",
            json_schema_extra={"enum": ["json", "parquet", "csv", "npz", "bids", "asc"]},
        ),
    ]


class Failure(BaseModel):
    """Every answer that is no success."""

    error: str = Field(
        description="One clear line.", examples=["-n must be 500 or fewer here, not 1000"]
    )


class ScreenAnswer(BaseModel):
    """A screen; the size in centimetres may be unknown."""

    width_px: int
    height_px: int
    width_cm: float | None
    height_cm: float | None
    distance_cm: float | None


class ModelAnswer(BaseModel):
    """A model on offer."""

    name: str
    recipe: str
    tasks: list[str]
    seconds: float
    rate_hz: float
    screen: ScreenAnswer
    task_screens: dict[str, ScreenAnswer]
    qualities: list[str]
    trained_on: dict[str, Any]


class LimitsAnswer(BaseModel):
    """How much one request may ask."""

    max_windows: int
    max_seconds: float
    max_upload_mb: int
    max_jobs: int


class ModelsAnswer(BaseModel):
    """What the server offers."""

    models: list[ModelAnswer]
    default: str
    limits: LimitsAnswer
    has_real: bool
    version: str


class Window(BaseModel):
    """Gaze in normalized screen units: [-1, 1], origin at the centre, y down; five decimals."""

    index: int | None = None
    task: str | None
    x: list[float]
    y: list[float]


class GazeAnswer(BaseModel):
    """Generated windows and their card."""

    card: dict[str, Any]
    windows: list[Window]


class FeatureAnswer(BaseModel):
    """A feature of windows, over all of them."""

    title: str
    unit: str
    mean: float
    std: float


class RealAnswer(BaseModel):
    """A recording as the model would see it: cleaned, resampled, cut into windows."""

    n_windows: int
    n_recordings: int
    participants: list[str]
    tasks: list[str]
    rate_hz: float
    screen: ScreenAnswer
    windows: list[Window] = Field(description="At most 40, evenly spread.")
    features: dict[str, FeatureAnswer]


class QuantityAnswer(BaseModel):
    """One quantity of real and synthetic windows: means, densities, distances with their floor."""

    name: str
    title: str
    family: str
    unit: str
    level: Literal["window", "pooled"]
    mean: dict[str, float | None]
    histogram: dict[str, list[float]]
    distances: dict[str, Any]


class EvaluationAnswer(BaseModel):
    """What `gazediffusion evaluate --quick` finds; see docs/metrics.md."""

    n_real: int
    n_synthetic: int
    quantities: list[QuantityAnswer]
    scalars: list[dict[str, Any]]
    headline: dict[str, Any]
    compared: str
    warnings: list[str]
    ratios: dict[str, Any]
    main_sequence: dict[str, Any]
    notes: list[str]
