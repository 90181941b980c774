"""The service on a Ray cluster: replicas of the playground on any of its nodes.

    pip install 'gazediffusion[cluster,web]' 'ray[serve]'
    serve run --working-dir examples/cluster serve_gaze:app

Every replica is a whole server, with a queue and limits of its own, and gives the same windows for
the same request. Ray starts another one for a replica that is lost. A job is cancelled wherever its
connection is closed; to cancel it by its number, and to write the report of a comparison made
before, a client has to reach the same replica: so one is the default.

GAZE_REPLICAS: number of replicas. GAZE_GPU=1: each takes a GPU. GAZE_MODEL: a run folder on a file
system of all nodes, or the name of a packaged model. GAZE_HOST: the public name, which needs
GAZEDIFFUSION_TOKEN.
"""

from __future__ import annotations

import os

from fastapi import FastAPI
from ray import serve

from gazediffusion.web.app import create_app
from gazediffusion.web.settings import Settings


def build() -> FastAPI:
    """The application, made on the node of a replica."""
    name = os.environ.get("GAZE_HOST")
    settings = Settings(
        model=os.environ.get("GAZE_MODEL"),
        token=os.environ.get("GAZEDIFFUSION_TOKEN"),
        allowed_hosts=(name,) if name else (),
    )
    return create_app(settings)


# Requests wait in the queue of the application, which refuses those beyond its limits itself.
app = serve.deployment(
    serve.ingress(build)(),
    name="gaze",
    num_replicas=int(os.environ.get("GAZE_REPLICAS", "1")),
    max_ongoing_requests=1000,
    ray_actor_options={"num_cpus": 1, "num_gpus": int(os.environ.get("GAZE_GPU") == "1")},
).bind()
