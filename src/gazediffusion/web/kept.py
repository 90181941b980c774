"""Comparisons kept for a while, so that the report of one need not repeat it.

Bounded in time, number and bytes. They are kept in memory and leave with the server.
"""

from __future__ import annotations

import secrets
import time

MAX_AGE_S = 900.0
MAX_NUMBER = 16
MAX_BYTES = 64 * 2**20


class KeptComparisons:
    """Evaluations as bytes, by id; the oldest leave first."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, bytes]] = {}

    def add(self, evaluation: bytes) -> str | None:
        """The id of an evaluation; None where it is too large to be kept."""
        if len(evaluation) > MAX_BYTES:
            return None
        self._drop_old()
        room = MAX_BYTES - len(evaluation)
        while len(self._kept) >= MAX_NUMBER or self._size > room:
            del self._kept[next(iter(self._kept))]
        name = secrets.token_hex(16)
        self._kept[name] = (time.monotonic(), evaluation)
        return name

    def find(self, name: str) -> bytes | None:
        """The evaluation of an id, if it is still kept."""
        self._drop_old()
        return self._kept[name][1] if name in self._kept else None

    @property
    def _size(self) -> int:
        return sum(len(evaluation) for _, evaluation in self._kept.values())

    def _drop_old(self) -> None:
        oldest = time.monotonic() - MAX_AGE_S
        self._kept = {name: one for name, one in self._kept.items() if one[0] >= oldest}
