"""The service on a Ray cluster: one replica receives requests, actors on any node generate.

    pip install 'gazediffusion[cluster,web]' 'ray[serve]'
    serve run --working-dir examples/cluster serve_gaze:app

The replica has the queue, its limits, the jobs and the kept comparisons, so all of them hold for
the whole deployment, and every request finds its job. Another actor takes the place of one that is
lost, on another node if need be, and generates its piece again. Ray gives an actor as many threads
as cores, here one, so answers are those of `OMP_NUM_THREADS=1 gazediffusion serve`.

GAZE_WORKERS: number of actors. GAZE_GPU=1: each takes a GPU, and the replica a tenth of one, since
the size of batches and the precision are those of its device. GAZE_MODEL: a run folder on a file
system of all nodes, or the name of a packaged model. GAZE_HOST: the public name, which needs
GAZEDIFFUSION_TOKEN.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import ray
from fastapi import FastAPI
from ray import serve

from gazediffusion.errors import GazeError
from gazediffusion.web.app import create_app
from gazediffusion.web.jobs import Followed
from gazediffusion.web.settings import Settings
from gazediffusion.web.worker import WorkerEndedError

HAS_GPUS = os.environ.get("GAZE_GPU") == "1"


class Actor:
    """Calls functions in a process of the cluster."""

    def call(self, function: Callable[..., bytes], arguments: tuple[Any, ...]) -> bytes:
        return function(*arguments, lambda progress: None)


class RayProcess:
    """An actor as the server uses it: `gazediffusion.web.generating.Generating`."""

    def __init__(self) -> None:
        self.pid: int | None = None  # counts the actors
        self.actor: Any = None

    def start(self) -> None:
        if self.actor is None:
            needs = {"num_cpus": 1, "num_gpus": 0.9 if HAS_GPUS else 0}
            self.actor = ray.remote(Actor).options(**needs).remote()
            self.pid = (self.pid or 0) + 1

    def call(
        self, job: Followed, is_limited: bool, function: Callable[..., bytes], *arguments: Any
    ) -> bytes:
        self.start()
        try:
            answer: bytes = ray.get(self.actor.call.remote(function, arguments))
        except ray.exceptions.RayActorError as error:
            self.close()
            raise WorkerEndedError("an actor was lost") from error
        except ray.exceptions.RayTaskError as error:
            cause = error.cause
            raise (cause if isinstance(cause, GazeError) else error) from None
        return answer

    def close(self) -> None:
        if self.actor is not None:
            ray.kill(self.actor)
        self.actor = None


def build() -> FastAPI:
    """The application, made on the node of the replica."""
    name = os.environ.get("GAZE_HOST")
    settings = Settings(
        model=os.environ.get("GAZE_MODEL"),
        token=os.environ.get("GAZEDIFFUSION_TOKEN"),
        allowed_hosts=(name,) if name else (),
    )
    n_workers = int(os.environ.get("GAZE_WORKERS", "2"))
    return create_app(settings, [RayProcess() for _ in range(n_workers)])


# Requests wait in the queue of the application, which refuses those beyond its limits itself.
app = serve.deployment(
    serve.ingress(build)(),
    name="gaze",
    num_replicas=1,
    max_ongoing_requests=1000,
    ray_actor_options={"num_cpus": 1, "num_gpus": 0.1 if HAS_GPUS else 0},
).bind()
