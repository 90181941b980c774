"""No command replaces what exists without --overwrite, and none replaces a folder of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.test_cli import error_of
from tests.conftest import RunCommand
from tests.runs import trained_run


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with recordings, a run and the windows it was trained on."""
    from gazediffusion.data.simulation import write_simulation
    from gazediffusion.settings import SimulationConfig

    folder = tmp_path_factory.mktemp("place")
    config = SimulationConfig(n_participants=3, minutes=0.5, rate_hz=250)
    write_simulation(config, folder / "study", "parquet")
    trained_run(folder / "run")
    return folder


MODEL = "--model PLACE/run -n 2 --steps 2 --device cpu"
SIZE = "--screen 800x600 --screen-cm 40x30 --distance-cm 60"
# A command, and the files of an earlier call that it must not replace.
COMMANDS = {
    "simulate": (
        "simulate -o OUT/sim --participants 1 --minutes 0.1 --rate 250",
        ["sim/truth/config.json", "sim/recordings.parquet"],
    ),
    "inspect": ("inspect PLACE/study --plot OUT/look.png", ["look.png"]),
    "prepare": ("prepare PLACE/study -o OUT/w.safetensors --seconds 2", ["w.safetensors"]),
    "generate a file": (f"generate -o OUT/g.parquet {MODEL}", ["g.parquet", "g.json", "g.md"]),
    "generate windows": (f"generate -o OUT/g.safetensors {MODEL}", ["g.safetensors"]),
    "generate beside a card": (f"generate -o OUT/g.csv {MODEL}", ["g.json"]),
    "generate a folder": (
        f"generate -o OUT/g --format bids {MODEL} {SIZE}", ["g/card.json", "g/sub-old/old.tsv"]
    ),
    "baseline": (
        "generate --model uniform --fit PLACE/run.safetensors -n 2 -o OUT/b.npz", ["b.npz"]
    ),
    "baseline windows": (
        "generate --model uniform --fit PLACE/run.safetensors -n 2 -o OUT/b.safetensors",
        ["b.safetensors"],
    ),
}  # fmt: skip
EVALUATE = "evaluate --synthetic PLACE/run.safetensors -o OUT/report", ["report/results.json"]


def content(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize(("command", "names"), COMMANDS.values(), ids=COMMANDS.keys())
def test_what_exists_is_replaced_only_on_request(
    run: RunCommand, place: Path, tmp_path: Path, command: str, names: list[str]
) -> None:
    words = command.replace("OUT", str(tmp_path)).replace("PLACE", str(place)).split()
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('{"seed": "old"}' if name.endswith(".json") else "old")
    before = content(tmp_path)
    said = error_of(run(*words))
    assert str(tmp_path / names[0].split("/")[0]) in said
    assert "--overwrite" in said
    assert content(tmp_path) == before
    code, _, error = run(*words, "--overwrite")
    assert code == 0, error
    after = content(tmp_path)
    assert not set(before.values()) & set(after.values())
    assert not [name for name in after if name.startswith(".")]
    code, said, error = run(*words)  # a finished output is complete, or refused
    assert "(it was complete already)" in said if code == 0 else "--overwrite" in error
    assert content(tmp_path) == after


@pytest.mark.parametrize(
    ("command", "names"),
    [COMMANDS["simulate"], COMMANDS["generate a folder"], EVALUATE],
    ids=["simulate", "generate", "evaluate"],
)
def test_a_folder_of_others_is_never_replaced(
    run: RunCommand, place: Path, tmp_path: Path, command: str, names: list[str]
) -> None:
    words = command.replace("OUT", str(tmp_path)).replace("PLACE", str(place)).split()
    folder = tmp_path / names[0].split("/")[0]
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    said = error_of(run(*words, "--overwrite"))
    assert "not empty; name a new one" in said
    assert content(tmp_path) == {f"{folder.name}/thesis.txt": b"mine"}
