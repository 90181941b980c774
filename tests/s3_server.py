"""A server of the S3 protocol on this machine, and a proxy before it that cuts connections."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Iterator

import pytest

KEYS = {"AWS_ACCESS_KEY_ID": "test-key", "AWS_SECRET_ACCESS_KEY": "test-secret"}


class Proxy:
    """Passes bytes on; `cut` ends connections in the middle of requests or answers."""

    def __init__(self, port: int) -> None:
        self.server, self.n_cut = port, 0
        self.rule: tuple[bytes, bytes, int, int] | None = None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, method: str, name: str, after: int, times: int = 1) -> None:
        """Cut the next requests of a method whose line contains a name, after so many bytes."""
        self.rule, self.n_cut = (f"{method} ".encode(), name.encode(), after, times), 0

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed at the end
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.server))
                request = _Request()
                for ends in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass, args=(*ends, request), daemon=True).start()

    def _pass(
        self, source: socket.socket, target: socket.socket, is_request: bool, request: _Request
    ) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1024):
                if is_request and data.split(b" ")[0] in (b"PUT", b"GET", b"HEAD", b"POST"):
                    request.line, request.n_bytes = data.split(b"\r\n")[0], {True: 0, False: 0}
                request.n_bytes[is_request] += len(data)
                if self._cuts(is_request, request):
                    break
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()  # the other thread closes its own

    def _cuts(self, is_request: bool, request: _Request) -> bool:
        if self.rule is None:
            return False
        method, name, after, times = self.rule
        is_meant = request.line.startswith(method) and name in request.line
        is_side = is_request == (method == b"PUT ")
        if not (is_meant and is_side and request.n_bytes[is_request] > after):
            return False
        self.n_cut += 1
        if self.n_cut >= times:
            self.rule = None
        return True


class _Request:
    """The request that a connection is at, and the bytes of it and of its answer."""

    line = b""

    def __init__(self) -> None:
        self.n_bytes = {True: 0, False: 0}


@contextlib.contextmanager
def s3_server(bucket: str) -> Iterator[Proxy]:
    """A server with an empty bucket; s3fs finds it, through the proxy, by the environment."""
    import fsspec
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    proxy = Proxy(server.get_host_and_port()[1])
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}")
        patch.setenv("AWS_MAX_ATTEMPTS", "2")
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        fsspec.filesystem("s3").call_s3("create_bucket", Bucket=bucket)
        yield proxy
        fsspec.get_filesystem_class("s3").clear_instance_cache()
    proxy.listener.close()
    server.stop()
