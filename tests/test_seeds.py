"""Random streams do not collide, are the same everywhere, and are made in one module."""

from __future__ import annotations

import re
from itertools import islice, product
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import qmc

import gazediffusion
from gazediffusion.seeds import DeviceDraws, Stream, rng, sobol_points, stream_key

PACKAGE = Path(gazediffusion.__file__).parent
KEY = 166720410707433961501087253593704093742  # of window 7 of seed 0
NOISE = [0.79981142, 0.31962478, -1.35564601]
MAKERS = re.compile(
    r"default_rng|(?<!Set)(?<!Fitted)(?<!Diffusion)Generator\(|Philox|SeedSequence|manual_seed|np\.random\.(?!Generator\b)"
    r"|torch\.(rand|randn|randint|randperm|normal|bernoulli|multinomial)\b|(?<!\.)\brandom\.seed"
)


def test_a_million_windows_and_keys_of_all_purposes_and_nearby_seeds_differ() -> None:
    seeds = [0, 1, 2, 7, 2**31, 2**32, 2**32 + 1, 7 + 5 * 2**32]
    numbers = [0, 1, 2, 3, 5, 2**32, *range(100, 112)]
    places = [
        (),
        *((k,) for k in numbers),
        *product(numbers, numbers),
        *product(numbers[:11], repeat=3),
    ]
    keys = [
        stream_key(seed, stream, *place)
        for seed, stream, place in islice(product(seeds, Stream, places), 250_000)
    ]
    # Windows of one seed: equal noise would need equal keys, which have 128 bits.
    keys += [stream_key(0, Stream.NOISE, window, 0) for window in range(1_000, 1_001_000)]
    assert len(keys) == 1_250_000
    assert len(set(keys)) == len(keys)


def test_the_planted_collisions_of_padded_and_cut_words_are_none() -> None:
    def first(*key: int) -> float:
        return float(rng(key[0], Stream.NOISE, *key[1:]).random())

    assert len({first(7, 5), first(7, 5, 0), first(7, 5, 0, 0)}) == 3
    assert first(7 + 5 * 2**32, 3) != first(7, 5, 3)
    assert stream_key(0, Stream.NOISE, "1", 2) != stream_key(0, Stream.NOISE, "1,2")


def test_a_key_stays_what_it_is_in_every_version_of_the_streams() -> None:
    assert stream_key(0, Stream.NOISE, 7, 0) == KEY
    np.testing.assert_allclose(
        rng(0, Stream.NOISE, 7, 0).standard_normal(3, np.float32), NOISE, rtol=1e-6
    )


def test_a_generator_is_made_in_one_module() -> None:
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name == "seeds.py" and path.parent == PACKAGE:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            code = line.partition("  #")[0]
            if ">>>" not in line and "..." not in line[:8]:
                assert not MAKERS.search(code), f"{path.relative_to(PACKAGE)}:{number}: {code}"


@pytest.mark.parametrize("line", ["rng = np.random.default_rng(0)", "x = torch.randn(3)"])
def test_a_planted_generator_is_found(line: str) -> None:
    assert MAKERS.search(line)


def test_sobol_points_are_stratified_and_computed_one_by_one() -> None:
    points = sobol_points(0, 1024, 34, 3, Stream.CONDITION)
    cells = np.sort((points * 1024).astype(int), axis=0)
    np.testing.assert_array_equal(cells, np.arange(1024)[:, None].repeat(34, 1))
    np.testing.assert_array_equal(sobol_points(700, 710, 34, 3, Stream.CONDITION), points[700:710])
    far = sobol_points(10**8, 10**8 + 2, 34, 3, Stream.CONDITION)
    assert far.shape == (2, 34)
    independent = rng(0, Stream.EXAMPLE).random((256, 5))
    assert qmc.discrepancy(points[:256, :5]) < qmc.discrepancy(independent) / 5
    assert not (points == sobol_points(0, 1024, 34, 4, Stream.CONDITION)).all(axis=1).any()


def test_unscrambled_directions_are_those_of_torch() -> None:
    engine = torch.quasirandom.SobolEngine(5)  # type: ignore[no-untyped-call]
    theirs = engine.draw(256).double().numpy()
    state = engine.sobolstate.numpy().astype(np.int64).T
    number = np.arange(256)
    gray, ours = number ^ (number >> 1), np.zeros((256, 5), dtype=np.int64)
    for bit in range(9):
        ours ^= ((gray >> bit) & 1)[:, None] * state[bit]
    np.testing.assert_allclose(ours * 2.0**-30, theirs, atol=1e-9)


def test_draws_on_a_cpu_are_those_of_the_stream() -> None:
    draws = DeviceDraws(torch.device("cpu"), 5, Stream.MASKS, 1)
    expected = rng(5, Stream.MASKS, 1)
    np.testing.assert_array_equal(draws.uniform(2, 3), expected.random((2, 3), np.float32))
    np.testing.assert_array_equal(draws.normal(4), expected.standard_normal(4, np.float32))
    np.testing.assert_array_equal(draws.integers(0, 9, 5), expected.integers(0, 9, 5))
    np.testing.assert_array_equal(draws.permutation(6), expected.permutation(6))
