"""Which gaze is refused, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gazediffusion.data.inspection import inspect
from gazediffusion.data.plausibility import ImplausibleError
from gazediffusion.data.preparing import prepare
from gazediffusion.data.reading import Recordings, read
from gazediffusion.errors import GazeError
from gazediffusion.screen import Screen
from gazediffusion.settings import PrepareConfig

SCREEN = Screen(1280, 720, 40, 22.5, 45)
CONFIG = PrepareConfig(seconds=2, validation_fraction=0.0)
Gaze = NDArray[Any]


def gaze_px(n: int = 2000, seed: int = 0) -> Gaze:
    """Fixations of 260 ms all over the screen and moves of 80 ms, some noise: (2, n) at 250 Hz."""
    rng = np.random.default_rng(seed)
    places = np.repeat(rng.uniform(0.1, 0.9, (2, n // 85 + 1)) * SCREEN.size_px, 2, axis=1)
    knots = np.arange(places.shape[1] // 2)[:, None] * 85 + [[0, 65]]
    gaze = [np.interp(np.arange(n), knots.ravel(), axis) for axis in places]
    return np.asarray(np.stack(gaze) + rng.normal(0, 0.5, (2, n)))


def written(folder: Path, gaze: Gaze, name: str = "gaze", header: str = "t_ms,x,y") -> Path:
    rows = (f"{4 * k},{x:.6f},{y:.6f}" for k, (x, y) in enumerate(gaze.T))
    path = folder / f"{name}.csv"
    path.write_text("\n".join([header, *rows]))
    return path


def fractions(gaze: Gaze) -> Gaze:
    return np.asarray(gaze / SCREEN.size_px)


def up(gaze: Gaze) -> Gaze:
    return np.stack([gaze[0], -gaze[1]])


# How gaze is written -> what is said of it, and the settings with which it is read right.
MISREAD: dict[str, tuple[Callable[[Gaze], Gaze], str, dict[str, Any]]] = {
    "degrees": (SCREEN.to_degrees, r"looks like degrees: x from -1\d\.\d* to", {"unit": "deg"}),
    "degrees, y up": (
        lambda gaze: up(SCREEN.to_degrees(gaze)),
        "give the `unit` deg",
        {"unit": "deg", "origin": "center-up"},
    ),
    "fractions": (fractions, "give the `unit` norm", {"unit": "norm"}),
    "fractions, y up": (
        lambda gaze: np.stack([fractions(gaze)[0], 1 - fractions(gaze)[1]]),
        "`origin` bottom-left",
        {"unit": "norm", "origin": "bottom-left"},
    ),
    "fractions from the centre": (
        lambda gaze: fractions(gaze) - 0.5,
        "`unit` norm and the `origin` center",
        {"unit": "norm", "origin": "center"},
    ),
    "from the centre": (
        lambda gaze: gaze - (SCREEN.size_px - 1) / 2,
        "looks like pixels from the centre",
        {"origin": "center"},
    ),
    "from the centre, y up": (
        lambda gaze: up(gaze - (SCREEN.size_px - 1) / 2),
        "`origin` center",
        {"origin": "center-up"},
    ),
}


@pytest.mark.parametrize("case", MISREAD)
def test_another_unit_or_origin_is_refused_and_read_right_when_given(
    tmp_path: Path, case: str
) -> None:
    write, said, settings = MISREAD[case]
    gaze = gaze_px()
    path = written(tmp_path, write(gaze))
    with pytest.raises(ImplausibleError, match=said):
        prepare(read(path, screen=SCREEN), CONFIG)
    (recording,) = read(path, screen=SCREEN, **settings)
    np.testing.assert_allclose(recording.gaze_px["cyclopean"], gaze, atol=0.01)
    assert len(prepare(read(path, screen=SCREEN, **settings), CONFIG)) > 0


PLACES: dict[str, tuple[Callable[[Gaze], Gaze], str]] = {
    "off": (lambda gaze: gaze + 2000, "is off the screen in 100%"),
    "corner": (lambda gaze: gaze / 8, "stays in one corner"),
    "squeezed": (lambda gaze: gaze / 2000 + 400, "stays within a few pixels"),
}


@pytest.mark.parametrize("case", PLACES)
def test_gaze_that_is_not_on_its_screen_is_refused(tmp_path: Path, case: str) -> None:
    write, said = PLACES[case]
    path = written(tmp_path, write(gaze_px()))
    with pytest.raises(ImplausibleError, match=rf"gaze\.csv: .*{said}.*1280x720.*check `screen`"):
        list(read(path, screen=SCREEN))


def test_one_participant_who_looks_away_does_not_stop_a_study(tmp_path: Path) -> None:
    for number in range(3):
        written(tmp_path, gaze_px(10_000, number) + (2000 if number == 0 else 0), f"p{number}")
    windows = prepare(read(tmp_path, screen=SCREEN), CONFIG)
    assert any("of the gaze is off the screen" in line for line in windows.provenance["warnings"])
    assert windows.provenance["windows_dropped_off_screen"] > 0


def test_one_long_file_in_another_unit_is_found_among_good_ones(tmp_path: Path) -> None:
    written(tmp_path, gaze_px(10_000), "a")
    written(tmp_path, SCREEN.to_degrees(gaze_px(10_000)), "b")
    written(tmp_path, gaze_px(10_000), "c")
    with pytest.raises(ImplausibleError, match=r"b\.csv: the gaze looks like degrees"):
        prepare(read(tmp_path, screen=SCREEN), CONFIG)


# How the gaze is written, how it is read, what is warned of.
WARNED: dict[str, tuple[Callable[[Gaze], Gaze], dict[str, Any], str | None]] = {
    "ordinary": (lambda gaze: gaze, {"screen": SCREEN}, None),
    "a corner, unit given": (
        lambda gaze: gaze / 8, {"screen": SCREEN, "unit": "px"}, "one corner"
    ),
    "screen twice too large": (
        lambda gaze: gaze, {"screen": Screen(2560, 1440)}, "top left quarter"
    ),
    "far away": (
        lambda gaze: gaze, {"screen": Screen(1280, 720, 40, 22.5, 650)},
        "a viewing distance of 650 cm is implausible",
    ),
    "coarse": (
        lambda gaze: gaze, {"screen": Screen(1280, 720, 400, 225, 60)}, "3.2 pixels per cm"
    ),
    "not square": (
        lambda gaze: gaze, {"screen": Screen(1280, 720, 40, 40, 60)}, "pixels that are not square"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WARNED)
def test_what_is_odd_but_possible_is_warned_of(tmp_path: Path, case: str) -> None:
    write, given, said = WARNED[case]
    warnings = prepare(read(written(tmp_path, write(gaze_px())), **given), CONFIG).provenance[
        "warnings"
    ]
    assert any(said in line for line in warnings) if said else warnings == []


def test_files_that_became_participants_of_their_own_or_one_are_named(tmp_path: Path) -> None:
    for name in ("anna_1", "anna_2", "bert_1"):
        written(tmp_path, gaze_px(), name)
    windows = prepare(read(tmp_path, screen=SCREEN), CONFIG)
    (line,) = windows.provenance["warnings"]
    assert "each of the 3 files is a participant of its own" in line
    assert "`participant_pattern`" in line
    named = read(tmp_path, screen=SCREEN, participant_pattern=r"([a-z]+)_\d")
    assert prepare(named, CONFIG).provenance["warnings"] == []
    one = "participant,t_ms,x,y\n" + "\n".join(
        f"x1,{4 * k},{x:.3f},{y:.3f}" for k, (x, y) in enumerate(gaze_px().T)
    )
    for path in tmp_path.glob("*.csv"):
        path.write_text(one)
    (line,) = prepare(read(tmp_path, screen=SCREEN), CONFIG).provenance["warnings"]
    assert "all 3 files are of one participant, x1 (by column 'participant')" in line


def test_inspection_notes_what_prepare_would_refuse(tmp_path: Path) -> None:
    path = written(tmp_path, SCREEN.to_degrees(gaze_px()))
    (summary,) = inspect(read(path, screen=SCREEN), CONFIG)
    assert any(
        "prepare will refuse this" in note and "`unit` deg" in note for note in summary.notes
    )


def test_degrees_from_a_corner_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, SCREEN.to_degrees(gaze_px()))
    with pytest.raises(GazeError, match="measured from the centre of the screen"):
        list(read(path, screen=SCREEN, unit="deg", origin="top-left"))
    assert isinstance(read(path), Recordings)
