"""Sets of gaze to be compared, at one rate and of one size: real, training, synthetic, two halves.

Synthetic gaze is brought to the rate of the real windows. Histogram distances shrink with the
number of windows, so every set but the real one is cut to the smallest. The tracker's grid is
smoothed away. Every window knows its screen and its group: the participant, or for synthetic
windows a block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gazediffusion import seeds
from gazediffusion.data.resampling import windows_at
from gazediffusion.data.resolution import spread_over_grid
from gazediffusion.data.windows import CLIP, Windows
from gazediffusion.errors import GazeError
from gazediffusion.evaluation.metrics import synthetic_groups
from gazediffusion.evaluation.quantities import Measured, Protocol, measure
from gazediffusion.screen import Screen
from gazediffusion.seeds import Stream

if TYPE_CHECKING:
    from gazediffusion.evaluation.real_gaze import Like

# The fewest windows of a set: with fewer, chance decides every distance.
MIN_WINDOWS = 25
# More windows than this change no number that is reported, and would not fit into memory.
MAX_WINDOWS = 10_000
# The reference without fault: a second draw of the training participants' windows.
SECOND_DRAW = "real, second draw"


@dataclass(frozen=True, eq=False)
class GazeSet:
    """One set of windows under a name: gaze (window, 2, time), group, screen and task of each."""

    name: str
    gaze: NDArray[np.float32]
    rate_hz: float
    group: NDArray[np.int64]
    screens: tuple[Screen, ...]
    tasks: tuple[str, ...]
    described: dict[str, Any]

    @classmethod
    def of(
        cls,
        name: str,
        windows: Windows,
        is_synthetic: bool = False,
        screen_otherwise: Screen | None = None,
    ) -> GazeSet:
        """Windows with their participants as groups, spread over the tracker's grid cells.

        The grid is the tracker's, not the eye's: left in, it would be the largest difference in
        directions and turning angles. screen_otherwise: stands for screens of unknown size.
        """
        gaze = windows.cut()
        is_whole = np.isfinite(gaze).all(axis=(1, 2))
        if not is_whole.all():
            raise GazeError(
                f"window {int(np.argmin(is_whole))} of {name} holds NaN or infinite positions",
                remedy="cut windows from gapless gaze only",
            )
        if windows.grid_px is not None:
            gaze = spread_over_grid(gaze, windows.grid_of_window, seed=0)
        of_window = [windows.screens[number] for number in windows.screen_index]
        described = {
            "name": name,
            "n_windows": len(gaze),
            "n_participants": len(np.unique(windows.participant)),
            "sha256": windows.provenance.get("data_sha256"),
            "rate_hz": windows.rate_hz,
            "resampled": _resampled(windows),
        }
        return cls(
            name,
            gaze,
            windows.rate_hz,
            synthetic_groups(len(gaze)) if is_synthetic else _dense(windows.participant),
            tuple(one if one.has_degrees else screen_otherwise or one for one in of_window),
            tuple(windows.tasks[number] for number in windows.task),
            described,
        )

    @property
    def notes(self) -> list[str]:
        """What a reader must know about this set."""
        return [
            f"{self.name} was {how} to {self.rate_hz:g} Hz" for how in self.described["resampled"]
        ]

    def measure(self, protocols: tuple[Protocol, ...] = ("position", "velocity")) -> Measured:
        """Everything that is compared."""
        return measure(self.gaze, self.rate_hz, self.screens, protocols, self.group)

    def cut(self, n: int, rng: np.random.Generator) -> GazeSet:
        """n of the windows, drawn without replacement, in their order; all if there are fewer."""
        if n >= len(self.gaze):
            return self
        cut = self.select(np.sort(rng.permutation(len(self.gaze))[:n]))
        return replace(cut, group=_dense(cut.group))

    def halves(self, rng: np.random.Generator) -> tuple[GazeSet, GazeSet]:
        """Two groups of as many participants, drawn at random."""
        participants = rng.permutation(np.unique(self.group))
        is_first = np.isin(self.group, participants[: len(participants) // 2])
        return self.select(is_first), self.select(~is_first)

    def select(self, chosen: NDArray[np.bool_] | NDArray[np.integer[Any]]) -> GazeSet:
        """The chosen windows with their groups."""
        rows = np.arange(len(self.gaze))[chosen]
        return replace(
            self,
            gaze=self.gaze[rows],
            group=self.group[rows],
            screens=tuple(self.screens[k] for k in rows),
            tasks=tuple(self.tasks[k] for k in rows),
        )


@dataclass
class GazeSets:
    """The sets of one evaluation, cut to a common size and measured.

    training: all the training participants' windows: a copy may be of any of them.
    uncut: the synthetic sets with all their windows, by name.
    second_draw: the reference without fault, drawn at the common size.
    """

    real: GazeSet
    train: GazeSet | None
    training: GazeSet | None
    synthetic: list[GazeSet]
    uncut: dict[str, GazeSet]
    halves: tuple[GazeSet, GazeSet]
    second_draw: GazeSet | None
    n_common: int
    measured: dict[str, Measured] = field(default_factory=dict)

    @property
    def all(self) -> list[GazeSet]:
        """Every set, the halves and the second draw last."""
        return [*self.shown, *self.halves, *filter(None, [self.second_draw])]

    @property
    def shown(self) -> list[GazeSet]:
        """The real, the training and the synthetic sets."""
        return [self.real, *filter(None, [self.train]), *self.synthetic]

    @property
    def names(self) -> list[str]:
        """The names of the synthetic sets."""
        return [one.name for one in self.synthetic]


def require_comparable(
    real: Like, synthetic: Mapping[str, Windows], train: Windows | None = None
) -> None:
    """Refuse sets of another rate or length, sets without windows, and reserved names."""
    if not synthetic:
        raise GazeError("there is no synthetic set to evaluate")
    for name in ("real", "train", "half a", "half b", SECOND_DRAW):
        if name in synthetic:
            raise GazeError(f"a synthetic set cannot be named {name!r}", remedy="choose another")
    others = dict(synthetic) | ({"the reference windows": train} if train is not None else {})
    given: dict[str, Like] = {"the real windows": real, **others}
    for name, windows in given.items():
        require_windows(name, windows)
        if (windows.length, windows.rate_hz) != (real.length, real.rate_hz):
            raise GazeError(
                f"{name} are of {windows.length} samples at {windows.rate_hz:g} Hz, the real ones "
                f"of {real.length} at {real.rate_hz:g} Hz",
                remedy="prepare them with the same `rate_hz` and `seconds`",
            )


def require_windows(name: str, windows: Like) -> None:
    """Refuse a set of fewer than MIN_WINDOWS windows."""
    if len(windows) < MIN_WINDOWS:
        raise GazeError(
            f"{name}: {len(windows)} windows, and an evaluation needs {MIN_WINDOWS} of every set",
            remedy="generate more windows, or give more recordings",
        )


def at_rate_of(real: Like, name: str, windows: Windows) -> Windows:
    """Synthetic windows at the rate of the real ones; those of a lower rate are refused.

    They are low-passed, or thinned where the real windows were thinned from a higher rate.
    """
    if windows.rate_hz < real.rate_hz:
        other = f"give recordings of {windows.rate_hz:g} Hz as `real`"
        if isinstance(real, Windows):
            other = f"prepare the recordings with `rate_hz` {windows.rate_hz:g}"
        raise GazeError(
            f"{name} is at {windows.rate_hz:g} Hz and the real gaze at {real.rate_hz:g} Hz: motion "
            "between the samples cannot be invented",
            remedy=f"generate at {real.rate_hz:g} Hz, or {other}",
        )
    return windows_at(windows, real.rate_hz, is_thinned(real))


def is_thinned(real: Like) -> bool:
    """Whether every k-th sample of recordings of a higher rate made the real windows."""
    if not isinstance(real, Windows):
        return True
    rates = real.provenance.get("rates", {})
    # Rates as `prepare` notes them: "1000 Hz", or "117.3 Hz unsteady", which was filtered.
    ratios = [float(one.split()[0]) / real.rate_hz for one in rates]
    is_steady = not any(one.endswith("unsteady") for one in rates)
    return bool(ratios) and is_steady and all(r > 1.5 and abs(r - round(r)) < 1e-3 for r in ratios)


def _resampled(windows: Windows) -> list[str]:
    """How windows came to their rate, where it is not that of their source."""
    how = windows.provenance.get("resampled")
    if how is not None:
        return [f"{how['how']} from {how['from_hz']:g} Hz"]
    rates = windows.provenance.get("rates", {})
    return [f"resampled from {one}" for one in rates if one != f"{windows.rate_hz:g} Hz"]


def arrange(
    real: Windows, synthetic: Mapping[str, Windows], train: Windows | None, seed: int
) -> GazeSets:
    """Cut every set but the real one, the two halves included, to the smallest of them.

    Each set's draw is its own, so that neither it nor the floor depends on which others there are.
    """

    def cut(one: GazeSet) -> GazeSet:
        return one.cut(n_common, stream(seed, one.name))

    full_real = GazeSet.of("real", real)
    training = None if train is None else GazeSet.of("train", train)
    known = {screen for screen in full_real.screens if screen.has_degrees}
    generated = synthetic_sets(synthetic, seed, known.pop() if len(known) == 1 else None)
    first, second = _halves(real if train is None else train, stream(seed, "halves"))
    others = [*generated, first, second, *([training] if training else [])]
    n_common = min(len(one.gaze) for one in others)
    return GazeSets(
        real=full_real,
        train=cut(training) if training else None,
        training=training,
        synthetic=[cut(one) for one in generated],
        uncut={one.name: one for one in generated},
        halves=(cut(first), cut(second)),
        second_draw=None if train is None else _second_draw(train, n_common),
        n_common=n_common,
    )


def synthetic_sets(
    synthetic: Mapping[str, Windows], seed: int, screen_otherwise: Screen | None
) -> list[GazeSet]:
    """The synthetic sets, each of at most MAX_WINDOWS windows."""
    return [
        GazeSet.of(name, windows.select(np.sort(chosen)), True, screen_otherwise)
        for name, windows in synthetic.items()
        for chosen in [stream(seed, f"{name}, all").permutation(len(windows))[:MAX_WINDOWS]]
    ]


def _second_draw(train: Windows, n: int) -> GazeSet:
    """n windows of the training participants, drawn without replacement, as a synthetic set."""
    chosen = seeds.rng(0, Stream.EVALUATION, "second draw").permutation(len(train))[:n]
    return GazeSet.of(SECOND_DRAW, train.dequantized(seed=1).select(chosen), True)


def stream(seed: int, name: str) -> np.random.Generator:
    """Random numbers that belong to one set."""
    return seeds.rng(seed, Stream.EVALUATION, "set", name)


def _halves(windows: Windows, rng: np.random.Generator) -> tuple[GazeSet, GazeSet]:
    """Two sets of the same participants; segments are divided, since their windows overlap."""
    side = rng.permutation(len(windows.segment_starts)) % 2
    is_first = side[windows.segment_of_window] == 0
    if not is_first.any() or is_first.all():
        is_first = np.arange(len(windows)) % 2 == 0
    first, second = windows.select(is_first), windows.select(~is_first)
    return GazeSet.of("half a", first), GazeSet.of("half b", second)


def _dense(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Labels renumbered 0, 1, 2 ... without gaps."""
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def participant_folds(
    groups: NDArray[np.integer[Any]], n_folds: int, known: Mapping[int, int] | None = None
) -> NDArray[np.int64]:
    """The fold of each row (n,), the same for all rows of a participant, of about equal sizes.

    Participants in `known` keep that fold; the others, largest first, go where fewest rows are.
    """
    labels, row, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    fold = np.array([(known or {}).get(int(label), -1) for label in labels], dtype=np.int64)
    load = np.bincount(fold[fold >= 0], weights=sizes[fold >= 0], minlength=n_folds)
    for k in np.argsort(-sizes, kind="stable"):
        if fold[k] < 0:
            fold[k] = int(np.argmin(load))
            load[fold[k]] += sizes[k]
    return np.asarray(fold[row])


def whole_windows(windows: Windows) -> Windows:
    """Windows without missing samples, clipped as recorded ones are."""
    is_whole = np.asarray(np.isfinite(windows.cut()).all(axis=(1, 2)))
    clipped = replace(windows, gaze=windows.gaze.clip(-CLIP, CLIP)).select(is_whole)
    n = int((~is_whole).sum())
    return with_left_out(clipped, n, len(windows), {"with missing samples": n})


def with_left_out(windows: Windows, n: int, n_expected: int, reasons: dict[str, int]) -> Windows:
    """The windows with how many of the expected ones are missing, and why, in their provenance."""
    if n <= 0:
        return windows
    words = ", ".join(f"{k} {reason}" for reason, k in reasons.items() if k > 0)
    left_out = {"n": n, "of": n_expected, "reasons": words}
    return replace(windows, provenance={**windows.provenance, "left_out": left_out})
