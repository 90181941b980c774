"""Who may use the server: names it answers to, the token, and delays for those that guess it."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import secrets
import time
from collections import Counter
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from gazediffusion.web.settings import Settings, host_name

_LOOPBACK = {"localhost", "127.0.0.1", "[::1]"}


def is_known_host(headers: Headers, settings: Settings) -> bool:
    """Whether a request names this server, once and well-formed.

    On loopback, and wherever names are allowed, no other name is accepted.
    """
    given = headers.getlist("host")
    name = host_name(given[0]) if len(given) == 1 else None
    if name is None:
        return False
    if not settings.is_loopback and not settings.allowed_hosts:
        return True
    own = host_name(settings.host) or f"[{settings.host}]"
    return name in {*_LOOPBACK, own, *(one.lower() for one in settings.allowed_hosts)}


def is_foreign(headers: Headers) -> bool:
    """Whether a browser states that a page of another site sent this."""
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return True
    origin = headers.get("origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
    except ValueError:
        return True


def given_token(headers: Headers, is_basic: bool) -> bytes | None:
    """The token of a request; None where it carries none.

    is_basic: whether it may also be the password of HTTP Basic, which a browser asks for.
    """
    scheme, _, sent = headers.get("authorization", "").partition(" ")
    # Headers come decoded as Latin-1, whatever they were written in.
    content = sent.strip().encode("latin-1")
    if scheme.lower() == "bearer":
        return content
    if scheme.lower() == "basic" and is_basic:
        with contextlib.suppress(binascii.Error):
            return base64.b64decode(content, validate=True).partition(b":")[2]
    return None


def is_token(given: bytes, settings: Settings) -> bool:
    """Whether this is the server's token, found out in a time that does not depend on it."""
    return secrets.compare_digest(given, str(settings.token).encode())


class WrongTokens:
    """Delays of refusals: the more wrong tokens an address has sent, the longer; few at a time."""

    first_s, most_s = 0.1, 3.0
    forgotten_s = 300.0
    max_waiting = 8
    max_addresses = 1000

    def __init__(self) -> None:
        self._wrong: dict[str, tuple[int, float]] = {}
        self._waiting: Counter[str] = Counter()

    def is_crowded(self, address: str) -> bool:
        """Whether so many refusals of an address wait that its tokens are not looked at."""
        return self._waiting[address] >= self.max_waiting

    async def delay(self, address: str) -> None:
        """Wait before a wrong token of an address is refused; other requests go on."""
        now = time.monotonic()
        n_wrong, last = self._wrong.pop(address, (0, now))
        n_wrong = 0 if now - last > self.forgotten_s else n_wrong
        while len(self._wrong) >= self.max_addresses:
            del self._wrong[next(iter(self._wrong))]
        self._wrong[address] = (n_wrong + 1, now)
        self._waiting[address] += 1
        try:
            await asyncio.sleep(min(self.first_s * 2 ** min(n_wrong, 10), self.most_s))
        finally:
            self._waiting[address] -= 1
            self._waiting += Counter()  # forgets those at zero
