"""examples/cluster/serve_gaze.py on a real Ray of this machine: the answers of one server."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from fastapi.testclient import TestClient

pytest.importorskip("ray.serve", reason="ray[serve] is not installed", exc_type=ImportError)

FOLDER = Path(__file__).parents[2] / "examples" / "cluster"
SOURCE = Path(__file__).parents[2] / "src"
REQUESTS = [{"n": 3, "seed": seed, "format": "parquet"} for seed in range(3)]
# Requests at the same time; then a stream whose actors are killed; then a cancelled job.
SCRIPT = """
import hashlib, json, os, signal, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import httpx2, ray
from ray import serve
import serve_gaze

port, requests = int(sys.argv[1]), json.loads(sys.argv[2])
ray.init(num_cpus=4, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
serve.start(http_options={"host": "127.0.0.1", "port": port})
serve.run(serve_gaze.app)
client = httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=300)

def digest(request):
    return hashlib.sha256(client.post("/api/generate", json=request).content).hexdigest()

def actors():
    names = {path.parent.name: path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")}
    parent = lambda pid: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
    ours = {str(os.getpid())}
    for _ in range(4):
        ours |= {pid for pid in names if Path(f"/proc/{pid}").exists() and parent(pid) in ours}
    return [int(pid) for pid in ours if names.get(pid, b"").startswith(b"ray::Actor")]

with ThreadPoolExecutor(3) as pool:
    found = {"digests": [*pool.map(digest, requests)], "n_actors": len(actors())}
with client.stream("GET", "/api/generate/stream", params={"n": 200, "seed": 1}) as stream:
    n_windows = 0
    for line in stream.iter_lines():
        if line.startswith("data: ") and "job" not in found:
            found["job"] = json.loads(line[6:])["job"]
        n_windows += line == "event: window"
        if line == "event: window" and n_windows == 2:
            for pid in actors():
                os.kill(pid, signal.SIGKILL)
        if line == "event: window" and n_windows == 6:
            found["cancelled"] = client.post(f"/api/jobs/{found['job']}/cancel").status_code
        if line == "event: failed":
            found["last"] = "failed"
found["again"] = digest(requests[0])
print("FOUND", json.dumps(found))
serve.shutdown()
ray.shutdown()
"""


def test_the_deployment_keeps_to_the_schema_of_ray_serve() -> None:
    from ray.serve.schema import ServeDeploySchema

    found = yaml.safe_load((FOLDER / "serve_gaze.yaml").read_text())
    (application,) = ServeDeploySchema.model_validate(found).applications
    module, _, name = application.import_path.partition(":")
    assert f"\n{name} = " in (FOLDER / f"{module}.py").read_text()
    for variable in application.runtime_env["env_vars"]:
        assert variable in (FOLDER / f"{module}.py").read_text()


@pytest.mark.slow
def test_the_service_on_ray_answers_as_one_server_also_after_its_actors_are_killed(
    client: TestClient, run_folder: Path
) -> None:
    expected = [
        hashlib.sha256(client.post("/api/generate", json=one).content).hexdigest()
        for one in REQUESTS
    ]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {"GAZE_MODEL": str(run_folder), "RAY_USAGE_STATS_ENABLED": "0", "GAZE_WORKERS": "2"}
    path = os.pathsep.join([str(FOLDER), str(SOURCE), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(port), json.dumps(REQUESTS)],
        env={**os.environ, **given, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    lines = [line for line in run.stdout.splitlines() if line.startswith("FOUND ")]
    assert lines, run.stderr[-3000:]
    found = json.loads(lines[0].removeprefix("FOUND "))
    assert found["digests"] == expected
    assert found["n_actors"] == 2
    assert found["cancelled"] == 204
    assert found["last"] == "failed"
    assert found["again"] == expected[0]
