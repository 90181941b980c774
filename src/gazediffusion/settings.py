"""Everything that can be set, stated once: the options of reading, preparing, training and so on.

Each group is a dataclass whose fields are keywords in Python, flags of the command line and fields
of web requests (`options`). It imports nothing heavy, so that `--help` is fast.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gazediffusion.errors import GazeError
from gazediffusion.options import Options, option

if TYPE_CHECKING:
    from gazediffusion.data.reading import Recordings
    from gazediffusion.data.scanpaths import Scanpath, Targets
    from gazediffusion.data.windows import Windows
    from gazediffusion.evaluation.deep_test import DeepConfig
    from gazediffusion.generation.steering import Waypoint
    from gazediffusion.screen import Screen

Protocol = Literal["position", "velocity"]
EyeChoice = Literal["right", "left", "best"]
Unit = Literal["px", "deg", "norm"]
Origin = Literal["top-left", "center", "center-up", "bottom-left"]
Precision = Literal["auto", "fp32", "bf16"]
MOST_SECONDS = 3600.0  # of one generated window
OFF_SCREEN_SHARE = 0.30  # paper: "less than 30% of samples"
POSITION_STRIDE_S = 1.0  # paper: "a 1 s sliding stride", 250 samples at its 250 Hz
# Noise levels of scores: sigma, even in ln sigma, from saccades to single samples.
SCORE_LEVELS = (0.05, 0.13, 0.34, 0.9, 2.3, 6.0)


def names_of(text: Mapping[str, str] | str) -> dict[str, str]:
    """`x=GazeX,y=GazeY` as a mapping."""
    if not isinstance(text, str):
        return dict(text)
    pairs = [[word.strip() for word in pair.partition("=")] for pair in text.split(",")]
    if not all(word and equals and column for word, equals, column in pairs):
        raise GazeError(f"`columns` must look like x=GazeX,y=GazeY,t=Time, not {text!r}")
    return {word: column for word, _, column in pairs}


def renamed(given: Sequence[str | tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Pairs of names of tasks, each given as `OLD=NEW` or as a pair."""
    pairs = [one.partition("=")[::2] if isinstance(one, str) else tuple(one) for one in given]
    for pair, words in zip(pairs, given, strict=True):
        if not all(word.strip() for word in pair):
            raise GazeError(f"`task_names` must look like OLD=NEW, not {words!r}")
    return tuple((old.strip(), new.strip()) for old, new in pairs)


def same_names(given: Sequence[str | Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Groups of names of one participant, each given as `A=B` or as names."""
    groups = [re.split("[=,]", one) if isinstance(one, str) else one for one in given]
    found = tuple(tuple(name.strip() for name in group if name.strip()) for group in groups)
    for group, words in zip(found, given, strict=True):
        if len(group) < 2:
            raise GazeError(f"`same_participant` needs two names, as A=B, not {words!r}")
    return found


def task_of(given: Sequence[str] | Mapping[str, str] | str) -> str | dict[str, str] | None:
    """`movies`, or `search=stills` and others by their own names."""
    if isinstance(given, str | Mapping):
        given = [given] if isinstance(given, str) else [f"{k}={v}" for k, v in given.items()]
    pairs = [tuple(word.strip() for word in one.partition("=")) for one in given]
    if all(equals and own and taken for own, equals, taken in pairs):
        return {own: taken for own, _, taken in pairs} or None
    if len(given) == 1 and not pairs[0][1]:
        return given[0]
    raise GazeError(f"`task` must be one task of the model or OWN=MODEL, not {' '.join(given)!r}")


def protocols_of(given: Sequence[Protocol] | str) -> tuple[Protocol, ...]:
    """One protocol or both, the names of both being `both`."""
    known: tuple[Protocol, ...] = ("position", "velocity")
    named = known if given == "both" else [given] if isinstance(given, str) else given
    if not named or set(named) - set(known):
        raise GazeError(f"`protocols` must be position, velocity or both, not {given!r}")
    return tuple(one for one in named if one in known)


# Recordings


@dataclass(frozen=True)
class OnScreen(Options):
    """A screen, as text (1280x720 and 40x22.5) or as a `Screen`."""

    PANEL = "Screen"

    screen: Screen | str | None = option(None, "Screen in pixels, such as 1280x720.", kind=str)
    screen_cm: str | None = option(None, "Screen in centimetres, such as 40x22.5.")
    distance_cm: float | None = option(None, "Distance between eye and screen (cm).", gt=0)

    def given_screen(self) -> Screen | None:
        """The screen that is stated; None where none is."""
        from gazediffusion.screen import Screen

        if isinstance(self.screen, Screen):
            return self.screen
        return Screen.parse(self.screen, self.screen_cm, self.distance_cm)


@dataclass(frozen=True)
class CleaningConfig(Options):
    """Which samples are invalid.

    eye: a recording of one eye gives the eye it has. blink_before_ms, blink_after_ms: lid movement
    shows before and after the eye is lost. frozen_ms: a coordinate pair that does not change for so
    long is a stuck tracker, not an eye. max_speed_deg_s: saccades stay below it (Nyström &
    Holmqvist 2010, Behav Res Methods 42:188).

    >>> import gazediffusion as gd
    >>> gd.PrepareConfig(cleaning=gd.CleaningConfig(eye="best", blink_after_ms=150)).cleaning.eye
    'best'
    """

    RARE = "{} in study.yaml"

    eye: EyeChoice = option(
        "right",
        "right (the paper's), left, or best: the eye seen more often in each recording.",
        rare=True,
    )
    blink_before_ms: float = option(
        60.0, "Milliseconds dropped before each blink or loss.", rare=True, ge=0
    )
    blink_after_ms: float = option(
        100.0, "Milliseconds dropped after each blink or loss.", rare=True, ge=0
    )
    frozen_ms: float = option(
        200.0, "Gaze that stays the same for so long is invalid.", rare=True, gt=0, le=math.inf
    )
    max_speed_deg_s: float = option(
        1000.0, "Faster samples are invalid.", rare=True, gt=0, le=math.inf
    )


@dataclass(frozen=True)
class Reading(CleaningConfig, OnScreen):
    """How recordings are read, and which of their samples are valid.

    A `study.yaml` beside the recordings states them once for all commands. screen: of files that do
    not state theirs; override_screen: also of those that state another. participant_pattern: a
    regular expression with a group for the participant, or groups named participant, task, trial.
    data_dir: where public datasets are kept.
    """

    PANEL = "Input"

    input_format: str = option(
        "auto",
        "Format of the recordings: auto, bids, eyelink-asc, tobii, smi, gazepoint, pupil-labs, "
        "gazebase, columns (the paper's txt), table or a plug-in's.",
    )
    columns: Mapping[str, str] | str | None = option(
        None,
        "Names of a table's columns that are not recognised, such as "
        "[bold]x=GazeX,y=GazeY,t=Time[/bold]; also participant, task, trial, blink, label, x_left, "
        "y_left, x_right, y_right.",
        kind=str,
        parse=names_of,
    )
    unit: Unit | None = option(
        None,
        "Unit of gaze: px, deg (degrees of visual angle) or norm (0 to 1 over the screen); "
        "default: the unit in the column names, otherwise px.",
    )
    origin: Origin | None = option(
        None,
        "Origin of the gaze: top-left or center (y down), bottom-left or center-up (y up); "
        "default: top-left for px and norm, center for deg.",
    )
    source_rate_hz: float | None = option(
        None, "Rate of recordings without a time column (Hz).", flag="--source-rate", gt=0
    )
    participant_pattern: str | None = option(
        None, "Regular expression that finds the participant (and task) in a path.", rare=True
    )
    override_screen: bool = option(
        False, "Use `screen` even if a file states another screen.", rare=True
    )
    data_dir: Path | str | None = option(
        None, "Folder of pymovements:NAME datasets.", rare=True, kind=str
    )

    @property
    def cleaning(self) -> CleaningConfig:
        """Which samples are valid."""
        return CleaningConfig(
            **{one.name: getattr(self, one.name) for one in fields(CleaningConfig)}
        )


@dataclass(frozen=True)
class Splitting(Options):
    """Which participants are held out."""

    PANEL = "Split"

    validation_fraction: float = option(
        0.2, "Fraction of participants held out; 0 for none.", flag="--val-fraction", ge=0, lt=1
    )
    split_seed: int = option(42, "Seed of the split of participants.", ge=0)
    same_participant: tuple[tuple[str, ...], ...] = option(
        (),
        "Names of one participant, as A=B; they stay on one side of the split.",
        kind=tuple[str, ...],
        parse=same_names,
    )


@dataclass(frozen=True)
class PrepareConfig(Splitting):
    """How windows are cut and participants are split; the defaults are the paper's.

    stride_s: None is one second for position windows and the window's own length for velocity
    windows. tasks: empty keeps all. task_names: pairs of a task's name in the recordings and the
    name it gets here; several may share one. off_screen_share: a window with this share of its
    samples off the screen, or more, is dropped.

    >>> PrepareConfig(rate_hz=120, seconds=4).length  # samples of a window
    480
    """

    protocol: Protocol = option(
        "position", "position (windows slide) or velocity (windows do not overlap)."
    )
    rate_hz: float = option(250.0, "Samples per second of the windows.", flag="--rate", gt=0)
    seconds: float = option(8.0, "Length of a window (s).", gt=0)
    stride_s: float | None = option(
        None,
        "Seconds between window starts; default: 1 for position, a window for velocity.",
        flag="--stride",
        gt=0,
    )
    tasks: tuple[str, ...] = option((), "Keep this task only; repeatable.", flag="--only")
    task_names: tuple[tuple[str, str], ...] = option(
        (),
        "Rename a task, OLD=NEW; several tasks may get the same name.",
        flag="--rename",
        kind=tuple[str, ...],
        parse=renamed,
    )
    cleaning: CleaningConfig | None = None
    off_screen_share: float = option(
        OFF_SCREEN_SHARE,
        "Drop windows with this share off the screen.",
        rare=True,
        gt=0,
        le=math.inf,
    )
    min_valid: float = option(
        0.0, "Exclude participants with a smaller share of valid samples.", rare=True, ge=0, le=1
    )
    max_calibration_error_deg: float | None = option(
        None,
        "Exclude participants with a larger calibration error (degrees), where files state it.",
        rare=True,
        gt=0,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length < 2:
            raise GazeError(f"`seconds` must give at least two samples, not {self.seconds}")
        if self.step < 1:
            raise GazeError(f"`stride_s` must be at least one sample, not {self.stride_s}")

    @property
    def length(self) -> int:
        """Samples per window."""
        return round(self.seconds * self.rate_hz)

    @property
    def step(self) -> int:
        """Samples between the starts of neighbouring windows."""
        if self.stride_s is not None:
            return round(self.stride_s * self.rate_hz)
        is_sliding = self.protocol == "position"
        return max(1, round(POSITION_STRIDE_S * self.rate_hz)) if is_sliding else self.length


@dataclass(frozen=True)
class Working(Options):
    """Who works: this process, several, or a Ray cluster; the output is the same."""

    PANEL = "Hardware"

    engine: Literal["local", "ray"] = option(
        "local", "local (this machine) or ray (a cluster; pip install 'gazediffusion\\[cluster]')."
    )
    n_workers: int | None = option(
        None, "Processes that work; default: one, of a cluster all.", flag="--workers", ge=1
    )
    address: str | None = option(
        None, "Address of the Ray cluster, HOST:PORT or auto for that of this machine.", rare=True
    )


@dataclass(frozen=True)
class Partitioning(Options):
    """Whether a set is written in parts, and by whom."""

    PANEL = "Hardware"

    engine: Literal["local", "ray"] | None = option(
        None,
        "Write a folder of Parquet parts: local (this process) or ray (a cluster; pip install "
        "'gazediffusion\\[cluster]'). Both write the same parts.",
    )
    part_size: int | None = option(
        None, "Windows per part; default: 256, or the batch size if it is larger.", rare=True, ge=1
    )
    n_workers: int | None = option(
        None, "Maximum number of workers of a cluster; default: one per GPU.", rare=True, ge=1
    )
    address: str | None = option(
        None, "Address of the Ray cluster, HOST:PORT or auto for that of this machine.", rare=True
    )


# Models


@dataclass(frozen=True)
class Loading(Options):
    """Which model, and where it computes.

    weights: best and last are averaged (EMA), raw is not.
    """

    model: str = option("default", "A run folder or a packaged model.")
    device: str = option("auto", "auto, cpu, cuda, cuda:1 ...", panel="Hardware")
    weights: Literal["best", "last", "raw"] = option("best", "best, last or raw.", rare=True)


@dataclass(frozen=True)
class Numbered(Options):
    """Which windows: the first n of a seed."""

    n: int | None = option(
        None, "Number of windows; default: 100, or one per scanpath or target.", flag="-n", ge=1
    )
    seed: int = option(0, "Same seed, same windows.", ge=0)


@dataclass(frozen=True)
class Computing(Options):
    """How windows are computed; nothing here changes them but precision."""

    PANEL = "Hardware"

    batch_size: int | None = option(None, "Windows computed at once; affects speed only.", ge=1)
    precision: Precision = option("auto", "fp32, bf16, or auto (bf16 if it is faster).", rare=True)


@dataclass(frozen=True)
class Sampled(Computing):
    """How closely windows are sampled."""

    PANEL = "Sampling"

    quality: Literal["default", "best"] = option("default", "default or best.")


@dataclass(frozen=True)
class Generating(Sampled):
    """Which windows are generated, and how.

    like: recordings of one participant, 8 s or more in a row, in whose style windows are generated;
    of one task, for which they are taken where `task` is given. candidates: 8 by default, 1 beside
    scanpaths, targets and waypoints. sampler, steps: override the quality's. eta: of DDIM.
    """

    task: str | None = option(
        None, "Task of all windows; default: the mixture of tasks in training."
    )
    seconds: float | None = option(
        None, "Length of every window: any for a steerable model, else up to the model's 8 s."
    )
    like: Recordings | Windows | None = option(
        None,
        "Generate in the style of this recording of one participant (8 s or more without a gap), "
        "or of a windows file written by prepare. --task states its task.",
        kind=Path,
    )
    candidates: int | None = option(
        None,
        "Number of candidates per window of --like; the ones closest to the recording are kept.",
        rare=True,
        ge=1,
    )
    sampler: Literal["auto", "ddim", "ancestral", "unipc", "distilled"] = option(
        "auto", "Sampler instead of the quality's.", rare=True
    )
    steps: int | None = option(
        None, "Sampling steps instead of the quality's.", panel="Sampling", ge=1
    )
    eta: float | None = option(
        None,
        "0 is deterministic, 1 as random as DDPM; of the paper's recipes.",
        rare=True,
        ge=0,
        le=1,
    )


@dataclass(frozen=True)
class Steering(Options):
    """What windows of a steerable model keep to.

    scanpath, targets: a table, or what `read_scanpaths` and `read_targets` give, one for all
    windows or several in turn. at: waypoints (seconds, x, y) in normalized units, or as text in
    pixels. start: (x, y) at the beginning.
    """

    PANEL = "Steering"

    scanpath: Sequence[Scanpath] = option(
        (), "Table of fixations to make: x, y, and optionally onset or duration.", kind=Path
    )
    targets: Sequence[Targets] = option(
        (), "Table of the jumps of a target that gaze follows: time, x, y.", kind=Path
    )
    at: Sequence[Waypoint] = option(
        (), "Waypoint SECONDS:X,Y in pixels, such as 2.0:640,360; repeatable.", kind=tuple[str, ...]
    )
    start: tuple[float, float] | None = None


@dataclass(frozen=True)
class Finishing(OnScreen):
    """What is added to generated windows, and how they are written."""

    PANEL = "Output"

    rate_hz: float | None = option(
        None,
        "Rate of the windows (Hz), such as 60; default and maximum: the model's.",
        flag="--rate",
        gt=0,
    )
    track_loss: bool = option(
        False,
        "Add blinks and track loss as in the training participants' recordings: missing samples, "
        "and the artefacts of the lid around them.",
    )
    labels: bool = option(
        False,
        "Add the event class of each sample: fixation, saccade, pursuit or noise. Gaze is the same "
        "without it.",
    )
    grid_px: float | None = option(
        None, "Round to the grid of a tracker, such as 0.1 (pixels).", rare=True, gt=0
    )


@dataclass(frozen=True)
class Filling(Options):
    """Which gaps are filled, and how often.

    max_gap_s: padding counts. task: None is each recording's own where the model has it, and no
    task elsewhere. cleaning: what is lost.
    """

    draws: int = option(
        1, "Draws per gap; several are written to folders draw-1, draw-2 ...", ge=1, le=1000
    )
    seed: int = option(0, "Same seed, same bytes.", ge=0)
    max_gap_s: float = option(
        1.0, "Longest gap that is filled (s, padding included).", flag="--max-gap", gt=0
    )
    task: str | None = option(
        None, "Task that the model is given; default: the recording's own if the model has it."
    )
    cleaning: CleaningConfig | None = None


@dataclass(frozen=True)
class Labelling(Options):
    """What is lost in recordings that are labelled, and thus noise."""

    cleaning: CleaningConfig | None = None


@dataclass(frozen=True)
class Augmenting(Splitting):
    """How often and of whom synthetic recordings are generated.

    task: of the model, for tasks that it does not have; or by the recordings' own. held_out: names
    of participants who are not augmented, or windows of the study, whose training participants
    alone are; None splits participants as `prepare` does. cleaning: which gaze the style is taken
    from. labels: None adds the event class where a recording of the study has labels and the model
    does.
    """

    times: int = option(5, "Synthetic recordings per recording.", ge=1, le=1000)
    seed: int = option(0, "Same seed, same bytes.", ge=0)
    task: str | Mapping[str, str] | None = option(
        None,
        "The model's task for tasks that it does not have, or OWN=MODEL (repeatable). Default: "
        "each recording's own task.",
        kind=tuple[str, ...],
        parse=task_of,
    )
    held_out: Sequence[str] | Windows | None = option(
        None,
        "Participant who is not augmented; repeatable. Default: the split of prepare.",
        panel="Split",
        kind=tuple[str, ...],
    )
    cleaning: CleaningConfig | None = None
    track_loss: bool = option(False, "Add blinks and track loss.")
    labels: bool | None = option(
        None, "Add the event class of each sample; default: if the study has labels."
    )

    @property
    def preparing(self) -> PrepareConfig:
        """How windows are cut and participants are split."""
        return PrepareConfig(
            validation_fraction=self.validation_fraction if self.held_out is None else 0.0,
            split_seed=self.split_seed,
            same_participant=self.same_participant,
            cleaning=self.cleaning,
        )


@dataclass(frozen=True)
class Scoring(Options):
    """How windows are scored.

    levels, n_noise: noise levels of the denoising errors, and draws of noise at each. span_s: the
    parts of a window that have errors of their own. has_statistics: give the network the window's
    own summary statistics. task: None is each window's own where the model has it, and no task
    elsewhere.
    """

    levels: tuple[float, ...] = option(
        SCORE_LEVELS, "Noise levels of the denoising errors.", rare=True, kind=tuple[float, ...]
    )
    n_noise: int = option(1, "Draws of noise at each level.", rare=True, ge=1)
    span_s: float = option(0.5, "Parts of a window with errors of their own (s).", rare=True, gt=0)
    has_likelihood: bool = option(
        True, "Compute the log-likelihood, which takes most of the time.", flag="--likelihood"
    )
    n_steps: int = option(16, "Steps of the likelihood's solver.", rare=True, ge=1)
    n_draws: int = option(2, "Draws of noise and trace probes per likelihood.", rare=True, ge=1)
    has_statistics: bool = option(
        False, "Give the network the window's own summary statistics.", rare=True
    )
    task: str | None = option(
        None,
        "Task that the model is given for all windows; default: the recording's own if the model "
        "has it.",
    )
    seed: int = option(0, "Same seed, same scores.", ge=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.levels or min(self.levels) <= 0:
            raise GazeError("`levels` must be positive noise levels, one or more")

    @property
    def decisive(self) -> dict[str, Any]:
        """The settings that scores must share to be compared."""
        names = ("levels", "n_noise", "span_s", "n_steps", "has_statistics")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Training(Options):
    """How a model is trained; None is the recipe's."""

    seed: int = option(42, "Same seed, same device: same weights.", ge=0)
    epochs: int | None = option(None, "Default: the recipe's.", ge=1)
    batch_size: int | None = option(None, "Default: the recipe's.", ge=1)
    learning_rate: float | None = option(
        None, "Default: the recipe's, with --from half of it.", gt=0
    )
    resume: bool = option(True, "Resume the run in the folder.")
    save_every_s: float = option(
        60.0, "Seconds between saved states; a kill loses no more.", flag="--save-every", ge=0
    )
    device: str = option("auto", "auto, cpu, cuda, cuda:1 ...", panel="Hardware")
    precision: Precision = option(
        "auto", "auto (the recipe's on a GPU, fp32 elsewhere), fp32 or bf16.", panel="Hardware"
    )
    compiled: bool | None = option(
        None,
        "Compile the network first; by default on a GPU. On a CPU it needs a C++ compiler and "
        "makes long trainings a third faster.",
        flag="--compile",
        panel="Hardware",
    )


@dataclass(frozen=True)
class Comparing(Options):
    """Which gaze is compared, and how much of it."""

    reference: str | None = option(
        None,
        "The training participants, for the floor; by default those of the real windows file.",
    )
    summary: str | None = option(
        None, "Packaged summary used without --real: gazecom, bioeye, or NAME/task."
    )
    n: int | None = option(
        None,
        "Windows to generate from a model; default: 2500, at most half as many as the training "
        "participants have.",
        flag="-n",
        ge=1,
    )
    by_task: bool = option(
        False, "Also evaluate each task with three or more held-out participants."
    )
    split_seed: int | None = option(None, "Seed of another split than that of the file.", ge=0)
    feature_model: str | None = option(
        None,
        "A position model, for the Frechet Gaze Distance (on a CPU the paper's network takes about "
        "a minute per 500 windows).",
    )
    with_membership: bool = option(
        False, "Also attack the models (membership inference).", flag="--membership"
    )


@dataclass(frozen=True)
class Benchmarking(Options):
    """A row of the benchmark."""

    name: str | None = option(None, "Name of the row; default: that of the file.")
    trained_on: str = option("", "Data that the generator was trained on, as shown in the table.")
    link: str = option("", "Address of the generator's page.")
    version: int | None = option(None, "Version of the definition; default: the newest.")
    real: Path | None = option(
        None,
        "A windows file of recordings: networks are trained to tell FILE from its training "
        "participants and tested on the held-out ones (deep two-sample test). Minutes on a GPU, "
        "tens of minutes on two cores.",
    )


@dataclass(frozen=True)
class Reproducing(Options):
    """Which of the paper's experiments are run."""

    tasks: tuple[str, ...] = option((), "Keep this task only; repeatable.", flag="--only")
    only: tuple[str, ...] = option((), "Build this table only; repeatable.", flag="--table")
    runs: tuple[str, ...] = option(
        (),
        "Train this run and generate its sets, nothing else; repeatable. Sets and histories "
        "that several machines made are copied into one folder.",
        flag="--run",
    )
    tiny: bool = option(False, "Tiny networks: the whole pipeline in minutes.")
    until: Literal["windows", "samples", "results"] = option(
        "results", "Stop after windows (recordings read), samples (all GPU work) or results."
    )
    so_far: bool = option(False, "Train nothing; write the tables that the runs allow.")
    device: str = option("auto", "auto, cpu, cuda ...", panel="Hardware")


@dataclass(frozen=True)
class EvaluationConfig(Options):
    """What is computed. `quick` leaves out the bootstrap and the slow tests.

    with_tests: False leaves out the slow tests alone. keep_draws: results hold the bootstrap
    replicates of every distance, floor and mean, (replicate,), so that differences can be tested.
    deep: how the deep two-sample test is done; None leaves it out. `quick` does not.

    >>> EvaluationConfig(protocols=("position",), n_bootstrap=50).n_replicates
    50
    """

    protocols: tuple[Protocol, ...] = option(
        "both", "position, velocity or both.", flag="--protocol", kind=str, parse=protocols_of
    )
    n_bootstrap: int = option(200, "Number of bootstrap replicates.", flag="--bootstrap", ge=0)
    quick: bool = option(False, "A first look: no intervals, no slow tests.")
    seed: int = option(0, "Seed of subsets and bootstrap replicates.", ge=0)
    with_tests: bool = True
    keep_draws: bool = False
    deep: DeepConfig | None = None

    @property
    def n_replicates(self) -> int:
        """Bootstrap replicates in force."""
        return 0 if self.quick else self.n_bootstrap


def _simulated_screen() -> Screen:
    from gazediffusion.screen import Screen

    return Screen(1920, 1080, 53.1, 29.9, 70.0)


@dataclass(frozen=True)
class SimulationConfig(Options):
    """How much to simulate, on which screen, as which tracker. One seed decides everything.

    minutes are per participant and are cut into trials of about `trial_seconds`. With `binocular`
    both eyes are recorded, otherwise the right one. grid_px is the tracker's resolution (EyeLink
    files hold tenths of a pixel).

    >>> config = SimulationConfig(n_participants=2, minutes=1, trial_seconds=20, rate_hz=500)
    >>> config.n_trials, config.n_samples
    (3, 10000)
    """

    n_participants: int = option(10, "Number of participants.", flag="--participants", ge=1)
    minutes: float = option(2.0, "Minutes of gaze per participant.", gt=0)
    seed: int = option(0, "Same seed, same bytes.", ge=0)
    rate_hz: float = option(1000.0, "Samples per second.", flag="--rate", ge=30, le=2000)
    screen: Screen = field(default_factory=_simulated_screen)
    trial_seconds: float = option(30.0, "Seconds of a trial, about.", rare=True, ge=1)
    task: str = option("free_viewing", "Name of the task.", rare=True)
    binocular: bool = option(True, "Record both eyes, not the right one alone.", rare=True)
    grid_px: float = option(0.1, "The tracker's resolution (pixels).", rare=True, gt=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.minutes * 60.0 < 1.0:
            raise GazeError("simulated trials last a second or more")
        if not self.screen.has_degrees:
            raise GazeError("the simulator needs the screen's size and distance")

    @property
    def n_trials(self) -> int:
        """Trials per participant."""
        return max(1, round(self.minutes * 60.0 / self.trial_seconds))

    @property
    def n_samples(self) -> int:
        """Samples per trial."""
        return round(self.minutes * 60.0 * self.rate_hz / self.n_trials)
