"""Access: host name, origin, token and size of a request; security headers of every response.

A page of another site can make a browser on this machine send requests here, under a host name
that resolves to 127.0.0.1 (DNS rebinding) or from its scripts. On loopback, only loopback names are
accepted, and requests that a browser marks as coming from another site are refused.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Mapping
from importlib.resources import files
from urllib.parse import parse_qs, urlsplit

from fastapi import HTTPException
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gazediffusion.web.settings import Limits, Settings

UPLOADS = ("/api/real", "/api/evaluate", "/api/report")
MAX_BODY = 1 << 16  # of a request that carries no files
_MULTIPART = 1 << 16  # what a form adds to its files
RETRY_AFTER_S = 2
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def page_policy() -> str:
    """What the page may load: its own files, and the script of the report that it opens."""
    script = files("gazediffusion").joinpath("document.js").read_text("utf-8")
    digest = hashlib.sha256(f"\n{script}".encode()).digest()
    report = base64.b64encode(digest).decode()
    return (
        f"default-src 'none'; script-src 'self' 'sha256-{report}'; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self'; "
        "connect-src 'self' blob:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    )


class SecurityMiddleware:
    """Refuses requests before the application receives them, and adds headers to responses."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings
        self.n_uploads = 0
        self.headers = {
            "Content-Security-Policy": page_policy(),
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
        refusal = self._refusal(scope, Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        is_upload = scope["path"] in UPLOADS and scope["method"] == "POST"
        self.n_uploads += is_upload
        try:
            await self.app(scope, self._bounded(scope, receive), send)
        finally:
            self.n_uploads -= is_upload

    def _refusal(self, scope: Scope, headers: Headers) -> JSONResponse | None:
        if self.settings.is_loopback and not self._is_local_name(headers.get("host", "")):
            return _refused(421, f"this server is not named {headers.get('host', '')!r}")
        if not str(scope["path"]).startswith("/api"):
            return None
        if _is_foreign(headers):
            return _refused(403, "requests from pages of other sites are refused")
        if self.settings.token is not None and not self._has_token(scope, headers):
            line = "the token is missing or wrong; send it as 'Authorization: Bearer TOKEN'"
            return _refused(401, line, {"WWW-Authenticate": "Bearer"})
        if scope["path"] in UPLOADS and self.n_uploads >= self.settings.limits.max_jobs:
            return queue_full(self.settings.limits)
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._max_bytes(scope):
            return _refused(413, self._too_large(scope))
        return None

    def _is_local_name(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        return name in _LOOPBACK or name == self.settings.host.strip("[]")

    def _has_token(self, scope: Scope, headers: Headers) -> bool:
        scheme, _, sent = headers.get("authorization", "").partition(" ")
        query = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        # Headers come decoded as Latin-1, whatever they were written in.
        from_header = [sent.strip().encode("latin-1")] if scheme.lower() == "bearer" else None
        given = from_header or [one.encode() for one in query]
        expected = str(self.settings.token).encode()
        return any(secrets.compare_digest(one, expected) for one in given)

    def _max_bytes(self, scope: Scope) -> int:
        if scope["path"] in UPLOADS:
            return self.settings.limits.max_upload_bytes + _MULTIPART
        return MAX_BODY

    def _too_large(self, scope: Scope) -> str:
        if scope["path"] in UPLOADS:
            return f"an upload may have {self.settings.limits.max_upload_mb} MB in total"
        return f"the body of this request may have {MAX_BODY // 1024} kB"

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """Count the body during the upload, and stop at the limit."""
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes(scope):
                raise HTTPException(413, self._too_large(scope))
            return message

        return counted

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        """Add the headers that every response has."""

        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
                is_api = str(scope["path"]).startswith("/api")
                headers.setdefault("Cache-Control", "no-store" if is_api else "no-cache")
            await send(message)

        return add


def _is_foreign(headers: Headers) -> bool:
    """Whether a browser states that a page of another site sent this."""
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        return True
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


def queue_full(limits: Limits) -> JSONResponse:
    """The response where no more jobs are accepted."""
    line = f"the queue is full ({limits.max_jobs} jobs are running or waiting); try again later"
    return _refused(429, line, {"Retry-After": str(RETRY_AFTER_S)})


def _refused(status: int, line: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": line}, status, dict(headers or {}))
