"""A small hub on this machine: the calls that huggingface_hub makes to upload and download."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Hub(ThreadingHTTPServer):
    """Repositories by name: files by path. `said`: the headers of commits and of new ones."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Calls)
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.said: list[dict[str, Any]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Calls(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, format: str, *args: Any) -> None: ...

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, values: Any, status: int = 200) -> None:
        content = json.dumps(values).encode()
        self._send(content, {"Content-Type": "application/json"}, status)

    def _send(self, content: bytes, headers: dict[str, str], status: int = 200) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def do_POST(self) -> None:
        body = self._body()
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            self.server.said.append(asked)
            name = f"{asked.get('organization')}/{asked['name']}"
            self.server.repositories.setdefault(name, {})
            self._answer({"url": f"{self.server.address}/{name}"})
        elif self.path == "/api/validate-yaml":
            self._answer({"errors": [], "warnings": []})
        elif "/preupload/" in self.path:
            files = [
                {"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                for one in json.loads(body)["files"]
            ]
            self._answer({"files": files})
        elif found := re.match(r"/api/models/(.+)/commit/main", self.path):
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    content = base64.b64decode(line["value"]["content"])
                    self.server.repositories[found[1]][line["value"]["path"]] = content
                else:
                    self.server.said.append(line["value"])
            url = f"{self.server.address}/{found[1]}/commit/{_sha(found[1])}"
            self._answer({"success": True, "commitUrl": url, "commitOid": _sha(found[1])})
        else:
            self._answer({"error": self.path}, 404)

    def do_GET(self) -> None:
        if found := re.match(r"/api/models/([^/]+/[^/?]+)(?:/revision/.+|/tree/.+)?$", self.path):
            files = self.server.repositories.get(found[1])
            if files is None:
                content = json.dumps({"error": "Repository not found"}).encode()
                self._send(content, {"X-Error-Code": "RepoNotFound"}, 404)
            elif "/tree/" in self.path:
                self._answer([
                    {"type": "file", "path": path, "size": len(content), "oid": _sha(path)}
                    for path, content in files.items()
                ])  # fmt: skip
            else:
                siblings = [{"rfilename": path} for path in files]
                self._answer({"id": found[1], "sha": _sha(found[1]), "siblings": siblings})
        elif found := re.match(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self.path):
            content = self.server.repositories[found[1]][found[3]]
            digest = hashlib.sha256(content).hexdigest()
            self._send(content, {"ETag": f'"{digest}"', "X-Repo-Commit": _sha(found[1])})
        else:
            self._answer({"error": self.path}, 404)

    do_HEAD = do_GET  # noqa: N815


def _sha(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()


@contextmanager
def serving() -> Iterator[Hub]:
    """A hub, for as long as the block runs."""
    hub = Hub()
    thread = threading.Thread(target=hub.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()
