from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gazediffusion.data.splits import split_participants, synthetic_groups
from gazediffusion.errors import GazeError

TASKS_OF = {f"p{k:02}": ["movies"] for k in range(20)} | {f"r{k}": ["reading"] for k in range(9)}


def test_a_fifth_of_every_stratum_is_kept_apart() -> None:
    kept = split_participants(TASKS_OF, 0.2, seed=42)
    assert sum(name.startswith("p") for name in kept) == 4
    assert sum(name.startswith("r") for name in kept) == 2


def test_the_split_does_not_depend_on_the_order_of_the_files() -> None:
    backwards = dict(reversed(TASKS_OF.items()))
    assert split_participants(TASKS_OF, 0.2, 42) == split_participants(backwards, 0.2, 42)


def test_another_seed_gives_another_split() -> None:
    assert split_participants(TASKS_OF, 0.2, 42) != split_participants(TASKS_OF, 0.2, 43)


@pytest.mark.parametrize("seed", range(20))
def test_two_names_of_one_participant_stay_together(seed: int) -> None:
    kept = split_participants(TASKS_OF, 0.3, seed, same_participant=[("p00", "r0"), ("r0", "r1")])
    assert len({"p00", "r0", "r1"} & kept) in (0, 3)


def test_a_small_stratum_is_represented_but_never_emptied() -> None:
    tasks_of = {f"p{k:02}": ["movies"] for k in range(30)}
    tasks_of |= {"a": ["dots"], "b": ["dots"], "c": ["dots"], "d": ["alone"]}
    kept = split_participants(tasks_of, 0.2, 0)
    assert len(kept & {"a", "b", "c"}) == 1
    assert "d" not in kept


def test_one_participant_cannot_be_split() -> None:
    with pytest.raises(
        GazeError, match=r"only one participant \(anna\).*`validation_fraction` of 0"
    ):
        split_participants({"anna": ["movies"]}, 0.2, 0)
    assert split_participants({"anna": ["movies"]}, 0, 0) == set()


def test_two_names_of_the_only_participant_cannot_be_split() -> None:
    with pytest.raises(GazeError, match="only one participant"):
        split_participants({"a": ["x"], "b": ["x"]}, 0.5, 0, same_participant=[("a", "b")])


def test_a_fraction_outside_zero_to_one_is_refused() -> None:
    with pytest.raises(GazeError, match="fraction"):
        split_participants(TASKS_OF, 1.0, 0)


tasks = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3)


@given(
    tasks_of=st.dictionaries(st.text("pqr123", min_size=1, max_size=4), tasks, min_size=2),
    fraction=st.floats(0.01, 0.9),
    seed=st.integers(0, 1000),
)
def test_both_sides_always_have_somebody(
    tasks_of: dict[str, list[str]], fraction: float, seed: int
) -> None:
    kept = split_participants(tasks_of, fraction, seed)
    assert 0 < len(kept) < len(tasks_of)
    assert kept <= set(tasks_of)


def test_synthetic_participants_stay_on_the_side_of_whom_they_are_like() -> None:
    names = [f"P{k:02d}" for k in range(12)]
    tasks = {name: ["dots"] if k % 2 else ["dots", "reading"] for k, name in enumerate(names)}
    for seed in range(5):
        held_out = split_participants(tasks, 0.25, seed)
        both = dict(tasks)
        for number, name in enumerate(sorted(set(names) - held_out)):
            dash = "-" if number % 2 else ""
            both |= {f"{name}{dash}synthetic{dash}{k}": tasks[name] for k in (1, 2, 10)}
        assert split_participants(both, 0.25, seed, synthetic_groups(both)) == held_out
    # Without the groups, synthetic participants are held out.
    assert split_participants(both, 0.25, seed) - set(names)
    assert synthetic_groups(["asynthetic", "a", "synthetic-1"]) == []
