"""Settings of sampling, filling, augmenting and labelling, as a model's functions take them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from gazediffusion.data.scanpaths import Scanpath
from gazediffusion.data.targets import Targets
from gazediffusion.data.windows import Windows
from gazediffusion.generation.rendering import Waypoint
from gazediffusion.settings import CleaningConfig

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings


class SteeringSettings(TypedDict, total=False):
    """What windows of a steerable model keep to, in normalized units.

    scanpath, targets: of `read_scanpaths` and `read_targets`, one for all windows or several in
    turn. at: waypoints (seconds, x, y). start: (x, y) at the beginning.
    """

    scanpath: Sequence[Scanpath]
    targets: Sequence[Targets]
    at: Sequence[Waypoint]
    start: tuple[float, float] | None


class SamplingSettings(SteeringSettings, total=False):
    """How windows are sampled.

    task: of all windows; None draws the training mixture. like: recordings of one participant, 8 s
    or more in a row, in whose style windows are generated; of one task, for which they are taken
    where `task` is given. candidates: number of candidates per window of `like`, of which the
    closest are kept; 8 by default, 1 with scanpaths, targets and waypoints.
    quality: default or best. sampler, steps: override the quality's. eta: of DDIM.
    precision: auto, fp32 or bf16.
    batch_size: changes speed, never the windows.
    """

    task: str | None
    like: Recordings | Windows | None
    candidates: int | None
    quality: str
    sampler: str
    steps: int | None
    eta: float | None
    precision: str
    batch_size: int | None


class FillingSettings(TypedDict, total=False):
    """How gaps are filled; see `Filling`.

    draws: courses of each gap. max_gap_s: longer gaps stay lost. task: of the model; None is the
    recording's own where the model has it, otherwise none. cleaning: what is lost. quality,
    precision, batch_size: as in `SamplingSettings`.
    """

    draws: int
    seed: int
    max_gap_s: float
    task: str | None
    cleaning: CleaningConfig
    quality: str
    precision: str
    batch_size: int | None


class AugmentingSettings(TypedDict, total=False):
    """Of whom synthetic recordings are generated, and how; see `Augmenting`.

    times: synthetic recordings of each recording. task: of the model, for tasks that it does not
    have, or by the recordings' own. held_out: names, or windows of the study; None is the split of
    `prepare` by validation_fraction, split_seed and same_participant. cleaning: which gaze the
    style is taken from. losses: add blinks and losses. labels: add the event class of every sample;
    None adds it where the study and the model have labels. quality, precision,
    batch_size: as in `SamplingSettings`.
    """

    times: int
    seed: int
    task: str | Mapping[str, str] | None
    held_out: Sequence[str] | Windows | None
    validation_fraction: float
    split_seed: int
    same_participant: tuple[tuple[str, ...], ...]
    cleaning: CleaningConfig
    losses: bool
    labels: bool | None
    quality: str
    precision: str
    batch_size: int | None


class LabellingSettings(TypedDict, total=False):
    """How recordings are labelled.

    cleaning: what is lost, and thus noise. precision, batch_size: as in `SamplingSettings`.
    """

    cleaning: CleaningConfig
    precision: str
    batch_size: int | None
