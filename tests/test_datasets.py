"""Large sets in parts, as the library and the command line write them."""

from __future__ import annotations

from pathlib import Path

import pytest

import gazediffusion as gd
from gazediffusion.errors import GazeError
from gazediffusion.generation.journal import Part
from gazediffusion.generation.partitions import Plan, Progress
from tests.conftest import RunCommand

N = 6


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def words(model: Path, output: Path, *more: object) -> list[object]:
    given = ["generate", "--model", model, "-n", N, "--batch-size", 2, "--device", "cpu"]
    return [*given, "-o", output, *more]


def test_command_and_library_write_the_same_parts(
    tmp_path: Path, run: RunCommand, steerable_folder: Path
) -> None:
    code, said, errors = run(
        *words(steerable_folder, tmp_path / "a", "--engine", "local", "--part-size", 4)
    )
    assert code == 0, errors
    assert f"wrote {tmp_path / 'a'}: {N} synthetic windows" in said
    model = gd.load(steerable_folder, device="cpu")
    written = gd.generate_dataset(model, tmp_path / "b", N, part_size=4, batch_size=2)
    names = ["card.json", "README.md", "manifest.json"]
    assert written == [tmp_path / "b", *(tmp_path / "b" / name for name in names)]
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_the_default_of_the_command_is_one_file_as_before(
    tmp_path: Path, run: RunCommand, steerable_folder: Path
) -> None:
    assert run(*words(steerable_folder, tmp_path / "set"))[0] == 0
    assert "recordings.parquet" in files(tmp_path / "set")
    assert "manifest.json" not in files(tmp_path / "set")


def test_progress_counts_windows_and_a_complete_set_is_left_alone(
    tmp_path: Path, steerable_folder: Path
) -> None:
    model = gd.load(steerable_folder, device="cpu")
    done: list[float] = []
    gd.generate_dataset(model, tmp_path / "p", N, part_size=4, batch_size=2, progress=done.append)
    assert done == sorted(done)
    assert {0, 2, 4, 6} <= set(done)
    before, lines = files(tmp_path / "p"), list[str]()
    gd.generate_dataset(model, tmp_path / "p", N, part_size=4, batch_size=2, say=lines.append)
    assert lines == [f"resuming {tmp_path / 'p'}: {N} of {N} windows are there"]
    assert files(tmp_path / "p") == before


def test_ctrl_c_keeps_whole_parts_and_the_same_command_resumes(
    tmp_path: Path, run: RunCommand, steerable_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Plan.write
    given = words(steerable_folder, tmp_path / "p", "--engine", "local", "--part-size", 2)

    def stopped(self: Plan, folder: Path, number: int, progress: Progress) -> Part:
        if number == 2:
            progress(1.5)  # of this part, which is lost
            raise KeyboardInterrupt
        return write(self, folder, number, progress)

    with monkeypatch.context() as patch:
        patch.setattr(Plan, "write", stopped)
        code, said, _ = run(*given)
    assert code == 130
    kept = f"stopped; 4 of {N} windows are generated and kept in {tmp_path / 'p'}"
    assert f"{kept}; the same command resumes" in said
    code, said, _ = run(*given)
    assert code == 0
    assert f"resuming {tmp_path / 'p'}: 4 of {N} windows are there" in said


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (["--address", "auto"], "--address needs --engine"),
        (["--part-size", 4], "--part-size needs --engine"),
        (["--engine", "local", "--workers", 2], "--workers needs --engine ray"),
        (["--engine", "spark"], "--engine must be local or ray, not 'spark'"),
        (["--engine", "local", "--format", "bids"], "--engine writes parquet, not bids"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tmp_path: Path, run: RunCommand, steerable_folder: Path, more: list[object], problem: str
) -> None:
    code, _, errors = run(*words(steerable_folder, tmp_path / "p", *more))
    assert code == 2
    assert problem in errors
    assert not (tmp_path / "p").exists()


def test_evaluate_reads_the_folder(tmp_path: Path, steerable_folder: Path) -> None:
    from gazediffusion.evaluation.set_loading import load_set

    model = gd.load(steerable_folder, device="cpu")
    how = {"batch_size": 2, "seed": 3}
    gd.generate_dataset(model, tmp_path / "parts", N, part_size=4, **how)  # type: ignore[arg-type]
    model.sample_to(tmp_path / "one.parquet", N, **how)  # type: ignore[arg-type]
    real = model.sample(N)
    of_parts, of_one = (
        load_set(tmp_path / name, "synthetic", real) for name in ("parts", "one.parquet")
    )
    assert len(of_parts) == len(of_one) > 0
    assert (of_parts.identity["trial"] == of_one.identity["trial"]).all()
    assert of_parts.to_numpy("px") == pytest.approx(of_one.to_numpy("px"), abs=2e-2)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(GazeError, match="`engine` must be local or ray"):
        gd.generate_dataset("default", "nowhere", 1, engine="dask")
