"""Cells are found and written as they should be."""

from __future__ import annotations

import statistics

import pytest

from gazediffusion.reproduction.cells import (
    NOTHING,
    Cell,
    MissingError,
    as_published,
    find,
    number,
    of_paper,
    over,
    percent_above,
    sd,
    show,
    spread,
)
from gazediffusion.reproduction.paper import Published


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (0.15512, "0.155"),
        (0.0155, "0.0155"),
        (13.79, "13.8"),
        (462, "462"),
        (19350914, "19,350,914"),
        (16781.6, "16,782"),
        (0, "0"),
        (0.0, "0"),
        (-14.83, "-14.8"),
        (1.314e-4, "1.31e-04"),
        (None, NOTHING),
        ("not recorded", "not recorded"),
        ({"mean": 0.01551, "sd": 0.00382}, "0.0155 ± 0.0038"),
        ({"mean": 13.79, "sd": 2.97}, "13.8 ± 3.0"),
        ({"mean": 1.314e-4, "sd": 2e-6}, "(1.31 ± 0.02)e-04"),
        ({"mean": 1650.2, "sd": 1020.4}, "1,650 ± 1,020"),
    ],
)
def test_a_cell_is_written_with_three_digits(cell: Cell, text: str) -> None:
    assert show(cell) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Published(0.0155, 0.0038), "0.0155 ± 0.0038"),
        (Published(1.2195, 0.3671), "1.2195 ± 0.3671"),
        (Published(1.31e-4, 0.02e-4), "(1.31 ± 0.02)e-04"),
        (Published(6e-4, 2e-4), "(6 ± 2)e-04"),
        (2752.88, "2,752.88"),
        (0.2095, "0.2095"),
        (462, "462"),
        (None, NOTHING),
    ],
)
def test_a_number_of_the_paper_keeps_its_digits(value: Published | Cell, text: str) -> None:
    assert as_published(value) == text


def test_the_sd_over_seeds_divides_by_n_less_one() -> None:
    values = [1.0, 2.0, 4.0]
    cell = spread(values)
    assert number(cell) == pytest.approx(statistics.mean(values))
    assert sd(cell) == pytest.approx(statistics.stdev(values))


def test_one_seed_has_no_sd_and_a_lacking_one_no_mean() -> None:
    assert spread([1.5]) == 1.5
    assert spread([1.5, None]) is None
    assert spread([]) is None


def test_a_ratio_to_nothing_is_nothing() -> None:
    assert over(1.0, 0.0) is None
    assert over(None, 1.0) is None
    assert over(3.0, 2.0) == 1.5
    assert percent_above(11.0, 10.0) == pytest.approx(10.0)
    assert percent_above(None, 10.0) is None


def test_published_numbers_become_cells() -> None:
    assert of_paper(Published(1.0)) == 1.0
    assert of_paper(Published(1.0, 0.5)) == {"mean": 1.0, "sd": 0.5}
    assert of_paper(None) is None


def test_cells_are_found_by_names() -> None:
    tables = {"one": {"rows": [{"name": "a", "x": {"mean": 2.0, "sd": 1.0}, "y": None}]}}
    cell = find(tables, "one", "a", "x")
    assert (number(cell), sd(cell), sd(2.0)) == (2.0, 1.0, 0.0)
    for table, row, key in (("two", "a", "x"), ("one", "b", "x"), ("one", "a", "y")):
        with pytest.raises(MissingError):
            find(tables, table, row, key)
    with pytest.raises(MissingError):
        number("not recorded")
