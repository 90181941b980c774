"""Who may send what: host names, token, origin, and the size, number and speed of bodies.

Every request passes here before the application receives it. Bodies are counted and timed during
the upload, so that neither an endless nor an idle one holds a place. A page of another site that
the user has open cannot call the API: only names of this server are accepted, and requests that a
browser marks as coming from another site are refused. Wrong tokens are refused after a delay.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Mapping
from urllib.parse import urlsplit

from fastapi import HTTPException
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gazediffusion.web.settings import Limits, Settings, host_name

_LOOPBACK = {"localhost", "127.0.0.1", "[::1]"}
UPLOADS = (
    "/api/generate/upload",
    "/api/fill",
    "/api/label",
    "/api/augment",
    "/api/score",
    "/api/real",
    "/api/evaluate",
    "/api/evaluate/stream",
    "/api/report",
    "/api/report/stream",
)
DESCRIPTIONS = ("/docs", "/openapi.json")
# A HEAD request is answered as GET is, where that costs no work.
HEAD = ("/api/models",)
MAX_BODY = 1 << 16  # of a request that carries no files
_MULTIPART = 1 << 16  # what a form adds to its files
RETRY_AFTER_S = 2
# A body arrives in pieces no further apart, at this speed after a while, and as a whole in time.
IDLE_S = 15.0
SLOW_BYTES_S = 10_000
SLOW_AFTER_S = 30.0
WHOLE_S = 600.0
# A client that takes nothing of its response for so long is gone.
STALLED_S = 60.0


class _StalledError(Exception):
    """The client takes nothing of its response."""


class SecurityMiddleware:
    """Refuses requests before the application receives them, and adds headers to responses."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings
        self.uploads: Counter[str] = Counter()  # by the address of the client
        self.wrong_tokens = WrongTokens()
        self.headers = {
            "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with one line."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = self._with_headers(scope, send)
        address = scope["client"][0] if scope.get("client") else ""
        refusal = await self._refusal(scope, Headers(scope=scope), address)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        if scope["method"] == "HEAD" and (not _is_api(scope) or scope["path"] in HEAD):
            scope, send = {**scope, "method": "GET"}, _without_body(send)
        is_upload = scope["path"] in UPLOADS and scope["method"] == "POST"
        self.uploads[address] += is_upload
        try:
            await self.app(scope, self._bounded(scope, receive), send)
        except _StalledError:
            pass  # The connection is closed, as the response is not complete.
        finally:
            self.uploads[address] -= is_upload
            self.uploads += Counter()  # forgets those at zero

    async def _refusal(self, scope: Scope, headers: Headers, address: str) -> JSONResponse | None:
        if not is_known_host(headers, self.settings):
            given = ", ".join(headers.getlist("host"))
            return _refused(421, f"this server is not named {given!r}")
        is_description = scope["path"] in DESCRIPTIONS
        if not _is_api(scope) and not is_description:
            return None
        if _is_api(scope) and is_foreign(headers):
            return _refused(403, "requests from pages of other sites are refused")
        if self.settings.token is not None:
            refusal = await self._token_refusal(headers, address, is_description)
            if refusal is not None:
                return refusal
        if scope["path"] in UPLOADS:
            most = self.settings.limits.max_jobs
            # One client leaves half of the places to others.
            if self.uploads.total() >= most or self.uploads[address] >= max(1, most // 2):
                return queue_full(self.settings.limits)
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > self._max_bytes(scope):
            return _refused(413, self._too_large(scope))
        return None

    async def _token_refusal(
        self, headers: Headers, address: str, is_basic: bool
    ) -> JSONResponse | None:
        if self.wrong_tokens.is_crowded(address):
            line = "too many wrong tokens; try again later"
            return _refused(429, line, {"Retry-After": str(RETRY_AFTER_S)})
        given = given_token(headers, is_basic)
        if given is not None:
            if is_token(given, self.settings):
                return None
            await self.wrong_tokens.delay(address)
        line = "the token is missing or wrong; send it as 'Authorization: Bearer TOKEN'"
        asked = 'Basic realm="the password is the token", Bearer' if is_basic else "Bearer"
        return _refused(401, line, {"WWW-Authenticate": asked})

    def _max_bytes(self, scope: Scope) -> int:
        if scope["path"] in UPLOADS:
            return self.settings.limits.max_upload_bytes + _MULTIPART
        return MAX_BODY

    def _too_large(self, scope: Scope) -> str:
        if scope["path"] in UPLOADS:
            return f"an upload may have {self.settings.limits.max_upload_mb} MB in total"
        return f"the body of this request may have {MAX_BODY // 1024} kB"

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """Count and time the body during the upload, and stop at the limits."""
        n_bytes = 0
        is_whole = False
        begin = time.monotonic()

        async def bounded() -> Message:
            nonlocal n_bytes, is_whole
            if is_whole:
                return await receive()
            try:
                async with asyncio.timeout(IDLE_S):
                    message = await receive()
            except TimeoutError:
                raise _late() from None
            n_bytes += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            if n_bytes > self._max_bytes(scope):
                raise HTTPException(413, self._too_large(scope))
            taken_s = time.monotonic() - begin
            is_slow = taken_s > SLOW_AFTER_S and n_bytes < taken_s * SLOW_BYTES_S
            if not is_whole and (is_slow or taken_s > WHOLE_S):
                raise _late()
            return message

        return bounded

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        """Add the headers that every response has."""

        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store" if _is_api(scope) else "no-cache")
            try:
                async with asyncio.timeout(STALLED_S):
                    await send(message)
            except TimeoutError:
                raise _StalledError from None

        return add


def _is_api(scope: Scope) -> bool:
    return str(scope["path"]).startswith("/api")


def _without_body(send: Send) -> Send:
    async def without(message: Message) -> None:
        await send({**message, "body": b""} if "body" in message else message)

    return without


def _late() -> HTTPException:
    return HTTPException(408, "the body of this request did not arrive in time")


def queue_full(limits: Limits) -> JSONResponse:
    """The response where no more jobs are accepted."""
    line = f"the queue is full ({limits.max_jobs} jobs are running or waiting); try again later"
    return _refused(429, line, {"Retry-After": str(RETRY_AFTER_S)})


def _refused(status: int, line: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": line}, status, dict(headers or {}))


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
        """Whether too many refusals of an address wait for its tokens to be checked."""
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
