"""The split into training and validation: participants are split, never windows.

The split is stratified by recorded tasks: participants with the same set of tasks form a
stratum, and each stratum gives its share. With few participants per task an unstratified split
moves the real-vs-real floor by a factor of two.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from gazediffusion.errors import GazeError
from gazediffusion.seeds import split_generator

_SYNTHETIC = re.compile(r"(.+?)-?synthetic-?\d+")


def split_participants(
    tasks_of: Mapping[str, Iterable[str]],
    fraction: float,
    seed: int,
    same_participant: Sequence[Sequence[str]] = (),
) -> set[str]:
    """Names kept for validation: about `fraction` of the participants of every stratum.

    tasks_of: participant -> tasks recorded.
    same_participant: groups of names that may be one participant; a group stays on one side, and
        names without recordings are passed over.
    Every stratum of three or more participants gives at least one. The draw depends on the names,
    the fraction and the seed only, not on the order of the files.
    """
    require_fraction(fraction)
    if fraction == 0:
        return set()
    groups = _joined(tasks_of, same_participant)
    if len(groups) < 2:
        raise GazeError(
            f"only one participant ({next(iter(tasks_of), 'none')}), and a split needs two",
            remedy="add recordings of other participants, or give a `validation_fraction` of 0",
        )
    strata: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for group in groups:
        tasks = tuple(sorted({task for name in group for task in tasks_of[name]}))
        strata.setdefault(tasks, []).append(group)

    rng = split_generator(seed)
    validation: set[str] = set()
    quotas = _quotas([len(strata[tasks]) for tasks in sorted(strata)], fraction)
    for tasks, quota in zip(sorted(strata), quotas, strict=True):
        members = sorted(strata[tasks])
        for index in rng.permutation(len(members))[:quota]:
            validation.update(members[index])
    return validation


def synthetic_groups(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Each participant with the synthetic ones in their style, as `augment` names them.

    ASC and BIDS keep letters and digits of a name alone.

    >>> synthetic_groups(["P7", "P7-synthetic-1", "P7synthetic2", "P8"])
    [('P7', 'P7-synthetic-1', 'P7synthetic2')]
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        found = _SYNTHETIC.fullmatch(name)
        groups.setdefault(name if found is None else found[1], []).append(name)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def require_fraction(fraction: float) -> None:
    """Refuse a share of participants that leaves none for training."""
    if not 0 <= fraction < 1:
        raise GazeError(f"`validation_fraction` must lie in [0, 1), not {fraction:g}")


def _joined(
    tasks_of: Mapping[str, Iterable[str]], same_participant: Sequence[Sequence[str]]
) -> list[tuple[str, ...]]:
    """Names grouped by participant, each group a sorted tuple."""
    group_of = {name: {name} for name in tasks_of}
    for group in same_participant:
        joined = set().union(*(group_of[name] for name in group if name in group_of))
        for name in joined:
            group_of[name] = joined
    return sorted({tuple(sorted(group)) for group in group_of.values()})


def _quotas(sizes: Sequence[int], fraction: float) -> list[int]:
    """How many participants each stratum gives: by largest remainder, at least one of three."""
    shares = [size * fraction for size in sizes]
    quotas = [
        max(math.floor(share), 1 if size >= 3 else 0)
        for share, size in zip(shares, sizes, strict=True)
    ]
    n_total = min(max(1, round(sum(sizes) * fraction)), sum(sizes) - 1)
    by_remainder = sorted(
        range(len(sizes)), key=lambda k: (shares[k] - quotas[k], sizes[k]), reverse=True
    )
    for index in by_remainder:
        if sum(quotas) >= n_total:
            break
        # A stratum is never emptied, unless it is all there is to take from.
        if quotas[index] + 1 < sizes[index] or (sizes[index] == 1 and max(sizes) == 1):
            quotas[index] += 1
    return quotas
