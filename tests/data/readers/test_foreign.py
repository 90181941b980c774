from __future__ import annotations

from pathlib import Path

import pytest

from gazediffusion.data.readers import find_sources
from gazediffusion.errors import GazeError


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("P01.edf", r"P01\.edf: this is an EyeLink file.*\(edf2asc P01\.edf\) and read P01\.asc"),
        ("P01.EDF", r"edf2asc P01\.EDF"),
        ("P01.idf", r"an SMI file.*IDF Converter.*'P01 Samples\.txt'"),
        ("P01.ttgp", r"a Tobii recording.*Tobii Pro Lab"),
        ("P01.mat", r"a MATLAB file.*export the samples as text"),
        ("P01.xlsx", r"an Excel file.*export"),
        ("P01.hdf5", r"an HDF5 file.*export"),
    ],
)
def test_a_file_of_another_program_names_the_way_to_text(
    tmp_path: Path, name: str, said: str
) -> None:
    (tmp_path / name).write_bytes(b"SR_RESEARCH\x00\x01")
    for given in (tmp_path / name, tmp_path):
        with pytest.raises(GazeError, match=said):
            find_sources([given])


def test_beside_its_conversion_the_original_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "P01.edf").write_bytes(b"SR_RESEARCH\x00\x01")
    (tmp_path / "P01.asc").write_text("START 1 RIGHT SAMPLES\n")
    assert [source.path.name for source in find_sources([tmp_path])] == ["P01.asc"]
