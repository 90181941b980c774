from __future__ import annotations

import numpy as np
import pytest

from gazediffusion.data.windows import evenly_spaced


@pytest.mark.parametrize(("n", "at_most"), [(1, 1), (1, 5), (7, 7), (8, 7), (1000, 4), (2260, 64)])
def test_indices_run_from_the_first_to_the_last_in_even_steps(n: int, at_most: int) -> None:
    found = evenly_spaced(n, at_most)
    assert len(found) == min(n, at_most)
    assert found[0] == 0
    assert found[-1] == (n - 1 if len(found) > 1 else 0)
    steps = np.diff(found)
    assert steps.max(initial=1) - steps.min(initial=10**9) <= 1 or len(steps) == 0
