"""examples/cluster: scripts run with stand-ins for the cluster's programs, and what these are given
is parsed by the real ones; YAML files keep to their schemas."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from gazediffusion.cli import app

FOLDER = Path(__file__).parents[1] / "examples" / "cluster"
SCRIPTS = {
    "slurm_train.sh": ["windows.safetensors", "run"],
    "slurm_generate.sh": ["gaze", "1000000"],
    "slurm_ray.sh": ["gaze", "1000000000"],
}
SLURM = {
    "SLURM_JOB_NODELIST": "node-[1-4]",
    "SLURM_NNODES": "4",
    "SLURM_JOB_ID": "77",
    "SLURM_ARRAY_TASK_ID": "12",
}
# Of sbatch(1); a misspelt one would be refused when a job is submitted.
DIRECTIVES = {
    "job-name", "nodes", "ntasks", "ntasks-per-node", "gpus-per-node", "gpus-per-task",
    "cpus-per-task", "time", "signal", "requeue",
}  # fmt: skip
SRUN = {"nodes", "ntasks", "nodelist", "exclude", "overlap", "kill-on-bad-exit"}
# Each writes its own words as a line of JSON; srun also runs the command that it was given.
RECORD = """#!/usr/bin/env python3
import json, os, sys
words = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
with open(os.environ["RECORDED"], "a") as stream:
    stream.write(json.dumps(words) + "\\n")
if words[0] == "scontrol":
    print("node-1\\nnode-2\\nnode-3\\nnode-4")
if words[0] == "srun":
    while words[1].startswith("--"):
        del words[1]
    os.execvp(words[1], words[1:])
"""


def commands_of(name: str, folder: Path) -> list[list[str]]:
    """The words of every command that a script gives to the cluster's programs."""
    programs, recorded = folder / "programs", folder / "recorded"
    programs.mkdir()
    for program in ("scontrol", "srun", "torchrun", "ray", "gazediffusion", "sleep"):
        (programs / program).write_text(RECORD)
        (programs / program).chmod(0o755)
    given = {**os.environ, **SLURM, "RECORDED": str(recorded)}
    given["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    script = (
        f"set -e; cd {shlex.quote(str(folder))}; source {shlex.quote(str(FOLDER / name))}; wait"
    )
    run = subprocess.run(
        ["bash", "-c", script, name, *SCRIPTS[name]], env=given, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in recorded.read_text().splitlines()]


def require_parsed(words: list[str]) -> dict[str, Any]:
    """The settings of a command of gazediffusion, as its own parser reads them."""
    verbs: Any = typer.main.get_command(app)
    verb, *rest = words
    assert verb in verbs.commands, verb
    settings: dict[str, Any] = verbs.commands[verb].make_context(verb, rest).params
    return settings


def require_ray_parsed(words: list[str]) -> dict[str, Any]:
    """The settings of a command of ray."""
    from ray.scripts import scripts

    verb, *rest = words
    settings: dict[str, Any] = scripts.cli.commands[verb].make_context(verb, rest).params
    return settings


def test_every_script_is_tested() -> None:
    assert {path.name for path in FOLDER.glob("*.sh")} == set(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_commands_of_a_slurm_script_are_understood(name: str, tmp_path: Path) -> None:
    text = (FOLDER / name).read_text()
    for directive in re.findall(r"^#SBATCH (.*)$", text, re.MULTILINE):
        assert directive.removeprefix("--").partition("=")[0] in DIRECTIVES, directive
    commands = commands_of(name, tmp_path)
    settings = []
    for program, *words in commands:
        if program == "gazediffusion":
            settings.append(require_parsed(words))
        elif program == "torchrun":
            from torch.distributed.run import get_args_parser

            given = get_args_parser().parse_args(words)
            assert given.module
            assert given.training_script == "gazediffusion"
            assert given.rdzv_endpoint == "node-1:29500"
            settings.append(require_parsed(given.training_script_args))
        elif program == "ray":
            found = require_ray_parsed(words)
            assert found.get("head") or found["address"] == "node-1:6379"
        elif program == "srun":
            options = [word for word in words if word.startswith("--")]
            known = {word for word in options if word[2:].partition("=")[0] in SRUN}
            assert words[: len(known)] == [word for word in options if word in known]
    (found,) = settings
    settings_of: dict[str, dict[str, Any]] = {
        "slurm_train.sh": {"output": Path("run")},
        "slurm_generate.sh": {"n": 1_000_000, "seed": 12, "output": Path("gaze/seed-12")},
        "slurm_ray.sh": {"n": 10**9, "output": Path("gaze")},
    }
    assert {key: found[key] for key in settings_of[name]} == settings_of[name]


def test_the_programs_would_refuse_an_unknown_option() -> None:
    for words in (["generate", "-o", "gaze", "--no-such"], ["serve", "--port", "two"]):
        with pytest.raises(Exception, match=r"No such option|valid integer"):
            require_parsed(words)
    with pytest.raises(Exception, match="No such option"):
        require_ray_parsed(["start", "--no-such"])


def shell_words(text: str) -> list[list[str]]:
    """The words of the gazediffusion and ray commands of a text, comments included."""
    found = re.findall(r"\b(?:gazediffusion|ray) (?:start|generate|serve)\b[^'\n]*", text)
    return [shlex.split(one) for one in found]


def test_the_ray_cluster_keeps_to_its_schema() -> None:
    import jsonschema
    import ray

    text = (FOLDER / "ray_cluster.yaml").read_text()
    schema = json.loads((Path(ray.__file__).parent / "autoscaler" / "ray-schema.json").read_text())
    jsonschema.validate(yaml.safe_load(text), schema)
    commands = shell_words(text)
    assert [one[:2] for one in commands] == [
        ["gazediffusion", "generate"],
        ["ray", "start"],
        ["ray", "start"],
    ]
    for program, *words in commands:
        require_parsed(words) if program == "gazediffusion" else require_ray_parsed(words)


# Keys of the Compose specification that the file uses, with the kinds of their values.
SERVICE = {
    "build": dict, "command": str, "depends_on": dict, "environment": dict, "expose": list,
    "healthcheck": dict, "image": str, "init": bool, "ports": list, "restart": str,
    "volumes": list,
}  # fmt: skip


def test_the_compose_file_names_what_exists() -> None:
    found = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    assert set(found) == {"services"}
    services = found["services"]
    for service in services.values():
        assert all(isinstance(value, SERVICE[key]) for key, value in service.items())
        assert ("image" in service) != ("build" in service)
        for name, how in service.get("depends_on", {}).items():
            assert "healthcheck" in services[name]
            assert how == {"condition": "service_healthy"}
        for volume in service.get("volumes", []):
            assert (FOLDER / volume.split(":")[0]).is_file()
    servers = [one for one in services.values() if "build" in one]
    for server in servers:
        assert (FOLDER / server["build"]["context"] / server["build"]["dockerfile"]).is_file()
        assert set(server["healthcheck"]) <= {
            "test", "interval", "timeout", "retries", "start_period",
        }  # fmt: skip
        assert "GAZEDIFFUSION_TOKEN" in server["environment"]
    settings = [require_parsed(shlex.split(one["command"])[1:]) for one in servers]
    assert sum(one["max_jobs"] for one in settings) == 16, "as the file says"
    # The proxy passes requests to these services, at their port.
    upstream = re.findall(r"server ([a-z0-9-]+):(\d+);", (FOLDER / "nginx.conf").read_text())
    names = [name for name, one in services.items() if "build" in one]
    assert upstream == [(name, str(one["port"])) for name, one in zip(names, settings, strict=True)]


def test_the_image_copies_what_exists() -> None:
    lines = (FOLDER / "Dockerfile").read_text().splitlines()
    assert next(line for line in lines if not line.startswith("#")).startswith("FROM ")
    for line in lines:
        if line.startswith("COPY "):
            for source in line.split()[1:-1]:
                assert (FOLDER.parents[1] / source).exists(), source
    (command,) = [json.loads(line[4:]) for line in lines if line.startswith("CMD ")]
    require_parsed(command[1:])
