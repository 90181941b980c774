"""Subsampling: some windows out of many, always the same ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def evenly_spaced(n: int, at_most: int) -> NDArray[np.int64]:
    """At most so many indices out of n, evenly spaced from the first to the last.

    >>> evenly_spaced(10, 4).tolist(), evenly_spaced(3, 100).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    return np.unique(np.linspace(0, n - 1, min(n, at_most)).round().astype(np.int64))
