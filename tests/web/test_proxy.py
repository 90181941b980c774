"""Behind a reverse proxy: nginx with the lines of docs/playground.md and of examples/cluster."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest

from gazediffusion.web.settings import Limits, Settings
from tests.web.conftest import PATIENCE_S, created, live_app, live_server

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
DOCUMENT = Path(__file__).parents[2] / "docs" / "playground.md"
EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster" / "nginx.conf"
TOKEN = "a-secret"


@contextmanager
def nginx(folder: Path, http: str) -> Iterator[str]:
    """An nginx with this `http` block, in which PORT is its port; yields its address."""
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
        f"events {{}}\nhttp {{ access_log off; {stored}\n{http.replace('PORT', str(port))} }}\n"
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


def passing_to(server: str) -> str:
    """The `server` block with the lines of the document, for one server."""
    (location,) = re.findall(r"```nginx\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    assert "http://127.0.0.1:8000" in location
    lines = location.replace("http://127.0.0.1:8000", server)
    return f"server {{ listen 127.0.0.1:PORT;\n{lines} }}"


def sharing(*servers: str) -> str:
    """The `http` block of examples/cluster/nginx.conf for servers of this machine."""
    (http,) = re.findall(r"http \{\n *access_log off;\n(.*)\n\}", EXAMPLE.read_text(), re.DOTALL)
    for number, server in enumerate(servers, start=1):
        assert f"server gaze-{number}:8000;" in http
        http = http.replace(f"gaze-{number}:8000", server.removeprefix("http://"))
    return str(http.replace("listen 8080;", "listen 127.0.0.1:PORT;"))


@pytest.mark.skipif(not Path(NGINX).exists(), reason="nginx is not installed")
def test_the_server_works_behind_nginx_under_its_public_name(
    run_folder: Path, tmp_path: Path
) -> None:
    settings = Settings(model=str(run_folder), token=TOKEN, allowed_hosts=("lab.example",))
    with live_server(settings) as server, nginx(tmp_path, passing_to(server)) as proxy:
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


@pytest.mark.skipif(not Path(NGINX).exists(), reason="nginx is not installed")
def test_two_servers_behind_one_proxy_answer_as_one_and_share_the_places(
    run_folder: Path, tmp_path: Path
) -> None:
    settings = Settings(model=str(run_folder), limits=Limits(max_windows=4000, max_jobs=1))
    apps = [created(settings) for _ in range(2)]
    stacks = [ExitStack(), ExitStack()]
    with stacks[0], stacks[1]:
        started = zip(stacks, apps, strict=True)
        urls = [stack.enter_context(live_app(app, settings)) for stack, app in started]
        with (
            nginx(tmp_path, sharing(*urls)) as proxy,
            httpx2.Client(base_url=proxy, timeout=PATIENCE_S) as client,
        ):
            sent = {"n": 2, "seed": 3, "format": "parquet"}

            def answer(url: str = proxy) -> bytes:
                found = httpx2.post(f"{url}/api/generate", json=sent, timeout=PATIENCE_S)
                assert found.status_code == 200, found.text
                return found.content

            assert answer(urls[0]) == answer(urls[1]) == answer()
            with client.stream("GET", "/api/generate/stream?n=4000&quality=best") as stream:
                lines = stream.iter_lines()
                job = next(json.loads(line[6:])["job"] for line in lines if line[:5] == "data:")
                # The client stays with one server: its place is taken, its job is found there.
                active = [app.state.playground.generation.n_active for app in apps]
                assert sorted(active) == [0, 1]
                assert client.post("/api/generate", json=sent).status_code == 429
                assert client.post(f"/api/jobs/{job}/cancel").status_code == 204
                assert any(line == "event: failed" for line in lines)
            expected = answer()
            stacks[active.index(1)].close()
            assert answer() == expected, "the other server takes over"
