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
# Requests at the same time to two replicas; then again, when both have been killed.
SCRIPT = """
import hashlib, json, os, signal, sys, time
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
    for _ in range(300):  # until another replica has taken the place of a lost one
        found = client.post("/api/generate", json=request)
        if found.status_code == 200:
            return hashlib.sha256(found.content).hexdigest()
        time.sleep(1)

def replicas():
    names = {path.parent.name: path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")}
    parent = lambda pid: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
    ours = {str(os.getpid())}
    for _ in range(4):
        ours |= {pid for pid in names if Path(f"/proc/{pid}").exists() and parent(pid) in ours}
    return [int(pid) for pid in ours if names.get(pid, b"").startswith(b"ray::ServeReplica")]

with ThreadPoolExecutor(3) as pool:
    found = {"digests": [*pool.map(digest, requests)], "n_replicas": len(replicas())}
for pid in replicas():
    os.kill(pid, signal.SIGKILL)
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
def test_replicas_on_ray_answer_as_one_server_also_after_they_are_killed(
    client: TestClient, run_folder: Path
) -> None:
    answers = [client.post("/api/generate", json=one).content for one in REQUESTS]
    expected = [hashlib.sha256(one).hexdigest() for one in answers]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = {"GAZE_MODEL": str(run_folder), "RAY_USAGE_STATS_ENABLED": "0", "GAZE_REPLICAS": "2"}
    path = os.pathsep.join([str(FOLDER), str(SOURCE), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(port), json.dumps(REQUESTS)],
        env={**os.environ, **given, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    lines = [line for line in run.stdout.splitlines() if line.startswith("FOUND ")]
    assert lines, run.stderr[-3000:]
    found = json.loads(lines[0].removeprefix("FOUND "))
    assert found == {"digests": expected, "n_replicas": 2, "again": expected[0]}
