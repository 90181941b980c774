"""The evaluation behind a comparison: a floor that is named, and an interval.

The floor needs two groups of real windows. A windows file has training and held-out participants;
other recordings are divided here by participants or, of few participants, by gap-free segments.
Distances to synthetic windows and the floor are then taken at the same number of windows, and the
interval is over the same groups. With few windows both distances are mostly chance, and their ratio
is close to 1 whatever the windows are: then no ratio is stated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

import gazediffusion as gd
from gazediffusion.errors import GazeError

MIN_WINDOWS = 25  # of the recording, of the synthetic set, and of each compared set for a ratio
_MIN_GROUPS = 6  # two and four: an interval over fewer says nothing
_N_BOOTSTRAP = 100


def require_synthetic(n: int) -> None:
    """Refuse a comparison with few synthetic windows."""
    if n < MIN_WINDOWS:
        raise GazeError(f"`n` must be {MIN_WINDOWS} or more for a comparison, not {n}")


def require_recorded(n: int) -> None:
    """Refuse a comparison of few recorded windows, before any is generated."""
    if n < MIN_WINDOWS:
        raise GazeError(
            f"the recording has {n} windows, and a comparison needs {MIN_WINDOWS}",
            remedy="add recordings, or a longer one",
        )


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
