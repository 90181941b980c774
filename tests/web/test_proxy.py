"""Behind a reverse proxy: the lines of docs/playground.md in a real nginx."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from gazediffusion.web.settings import Settings
from tests.web.conftest import PATIENCE_S, live_server

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
DOCUMENT = Path(__file__).parents[2] / "docs" / "playground.md"
TOKEN = "a-secret"


@contextmanager
def nginx(folder: Path, server: str) -> Iterator[str]:
    """An nginx that passes requests on to a server as the document says; yields its address."""
    (location,) = re.findall(r"```nginx\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    assert "http://127.0.0.1:8000" in location
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    stored = "\n".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user} pid {folder}/pid; error_log stderr error; worker_processes 1;\n"
        f"events {{}}\nhttp {{ access_log off; {stored}\n"
        f"server {{ listen 127.0.0.1:{port};\n"
        f"{location.replace('http://127.0.0.1:8000', server)} }} }}\n"
    )
    command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", "daemon off;"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for _ in range(10 * PATIENCE_S):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate()


@pytest.mark.skipif(not Path(NGINX).exists(), reason="nginx is not installed")
def test_the_server_works_behind_nginx_under_its_public_name(
    run_folder: Path, tmp_path: Path
) -> None:
    settings = Settings(model=str(run_folder), token=TOKEN, allowed_hosts=("lab.example",))
    with live_server(settings) as server, nginx(tmp_path, server) as proxy:
        public = {"Host": "lab.example", "Origin": "https://lab.example"}
        with httpx2.Client(base_url=proxy, headers=public, timeout=PATIENCE_S) as client:
            assert client.get("/health").json()["status"] == "ok"
            assert "gazediffusion" in client.get("/").text
            assert client.head("/").status_code == 200
            assert client.get("/api/models").status_code == 401
            client.headers["Authorization"] = f"Bearer {TOKEN}"
            assert client.get("/api/models").status_code == 200
            with client.stream("GET", "/api/generate/stream?n=500&quality=best") as stream:
                lines = stream.iter_lines()
                assert any(line == "event: window" for line in lines), "events come one by one"
            large = b"t,x,y\n" + b"0,1,2\n" * 500_000
            answer = client.post("/api/real", files={"files": ("a.csv", large)})
            assert answer.json()["error"].startswith("a.csv"), "megabytes pass"
            other = client.get("/", headers={"Host": "evil.example"})
            assert other.status_code == 421
            foreign = client.get("/api/models", headers={"Origin": "https://evil.example"})
            assert foreign.status_code == 403
