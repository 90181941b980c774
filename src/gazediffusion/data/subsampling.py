"""One subsampler: at most so many indices, evenly spaced over all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def evenly_spaced(n: int, at_most: int) -> NDArray[np.int64]:
    """At most `at_most` of the indices 0..n-1, evenly spaced, in order."""
    return np.unique(np.linspace(0, n - 1, min(n, at_most)).round().astype(np.int64))
