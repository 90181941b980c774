"""Rows of the tidy table are found by key, joined with the paper's numbers and put in words."""

from __future__ import annotations

import json
import statistics

import pytest

from gazediffusion.evaluation.metrics import Estimate
from gazediffusion.reproduction.paper import Published
from gazediffusion.reproduction.rows import (
    MissingError,
    Row,
    Rows,
    as_published,
    mean_and_sd,
    over,
    percent_above,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Published(0.0155, 0.0038), "0.0155 ± 0.0038"),
        (Published(1.2195, 0.3671), "1.2195 ± 0.3671"),
        (Published(1.31e-4, 0.02e-4), "(1.31 ± 0.02)e-4"),
        (Published(6e-4, 2e-4), "(6 ± 2)e-4"),
        (Published(2752.88), "2,752.88"),
        (0.2095, "0.2095"),
        (0.0003, "0.0003"),
        (462, "462"),
    ],
)
def test_a_number_of_the_paper_keeps_its_digits(value: Published | float, text: str) -> None:
    assert as_published(value) == text


def test_the_sd_over_seeds_divides_by_n_less_one() -> None:
    values = [1.0, 2.0, 4.0]
    mean, sd = mean_and_sd(values)
    assert mean == pytest.approx(statistics.mean(values))
    assert sd == pytest.approx(statistics.stdev(values))


def test_one_seed_has_no_sd_and_a_lacking_one_no_mean() -> None:
    assert mean_and_sd([1.5]) == (1.5, None)
    assert mean_and_sd([1.5, None]) == (None, None)
    assert mean_and_sd([]) == (None, None)


def test_a_ratio_to_nothing_is_nothing() -> None:
    assert over(1.0, 0.0) is None
    assert over(None, 1.0) is None
    assert over(3.0, 2.0) == 1.5
    assert percent_above(11.0, 10.0) == pytest.approx(10.0)
    assert percent_above(None, 10.0) is None


def test_a_row_takes_the_papers_number_of_its_key() -> None:
    row = Row("x_std", "js", "x std", 0.02).beside_paper("features")
    assert (row.table, row.paper, row.paper_sd) == ("features", 0.0206, 0.0030)
    assert Row("x_std", "js", ours=0.02).beside_paper("beyond").paper is None
    own = Row("position-42", "loss", ours=0.02, paper=0.0059).beside_paper("training")
    assert own.paper == 0.0059


def test_parts_of_a_row_are_cells_and_words() -> None:
    row = Row(
        "a", "b", ours=0.01551, sd=0.00382, paper=0.016, paper_sd=0.004, floor=0.01, ratio=1.6
    )
    assert row.cell("ours") == Estimate(0.01551, sd=0.00382)
    parts = ("ours", "paper", "floor", "ratio")
    assert [row.text(part) for part in parts] == [
        "0.0155 ± 0.0038",
        "0.016 ± 0.004",
        "0.0100",
        "1.60",
    ]
    single = Row("a", "b", ours=0.5, interval=[0.4, 0.6])
    assert single.cell("ours") == Estimate(0.5, [0.4, 0.6])
    assert single.text() == "0.500"
    assert Row("a", "b", ours="NVIDIA H200").cell("ours") == "NVIDIA H200"
    assert Row("a", "b", note="not recorded").cell("ours") == "not recorded"
    assert Row("a", "b").cell("ours") is None


def test_rows_survive_json() -> None:
    row = Row("a", "b", "c", 0.5, 0.1, floor=0.2, n=3, seeds=[1, 2], table="t")
    plain = json.loads(json.dumps([row.to_json()]))
    assert "paper" not in plain[0]
    assert Rows.from_json(plain).find("t", "a", "b") == row


def test_rows_are_found_by_key_and_what_was_read_is_kept() -> None:
    of = [Row("a", "x", ours=2.0, table="one"), Row("a", "y", table="one", paper=1.0)]
    of += [Row("b", "x", ours="word", table="one")]
    rows = Rows({(row.table, row.row, row.column): row for row in of})
    assert rows.number("one", "a", "x") == 2.0
    assert list(rows.read) == [("one", "a", "x")]
    assert rows.names("one", "x") == ["a", "b"]
    assert len(rows.table("one")) == 3
    for key in (("two", "a", "x"), ("one", "c", "x"), ("one", "a", "y")):
        with pytest.raises(MissingError):
            rows.find(*key)
    with pytest.raises(MissingError):
        rows.number("one", "b", "x")
