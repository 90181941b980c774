"""Model folders in the format of the Hugging Face hub: saved, shared and loaded.

A folder has config.json, model.safetensors (the averaged weights in single precision),
conditioning.safetensors, losses.json and scores.json where the model has
them, and README.md, a model card whose YAML head names licence, tags and library. Nothing in it is
executed on loading.
The names of the recordings that a model was trained on are left out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from gazediffusion import __version__
from gazediffusion.data.interop import required
from gazediffusion.device import choose_device
from gazediffusion.errors import GazeError
from gazediffusion.network.checkpoint import CONFIG, HUB_WEIGHTS, TABLES, Run, RunConfig
from gazediffusion.network.distilled import DISTILLED
from gazediffusion.network.pretrained import (
    BESIDE,
    HUB_PREFIX,
    copy_run,
    load_model,
    pretrained_folder,
)
from gazediffusion.network.unet import n_parameters
from gazediffusion.storage import written_whole

README = "README.md"
FILES = (CONFIG, HUB_WEIGHTS, DISTILLED, TABLES, *BESIDE, README)
TAGS = ("eye-tracking", "gaze", "diffusion", "synthetic-data", "time-series")


class Shared:
    """What a model offers for sharing; `run` is its run."""

    run: Run

    def __init__(self, run: Run) -> None:
        self.run = run

    def save_pretrained(
        self, folder: Path | str, *, license: str | None = None, overwrite: bool = False
    ) -> list[Path]:
        """Write a folder in the format of the Hugging Face hub, which `load` takes as any other.

        license: of the weights, as the hub spells it; mit for a packaged model, otherwise not
        stated. overwrite: replace a model that is there. Returns the files.

        >>> import tempfile
        >>> import gazediffusion as gd
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = gd.load("default").save_pretrained(f"{folder}/model")
        ...     [path.name for path in files][:3], gd.load(f"{folder}/model").name
        (['README.md', 'conditioning.safetensors', 'config.json'], 'steerable')
        """
        run, folder = self.run, Path(folder)
        config = replace(run.config, data={**run.config.data, "sources": []})
        with written_whole(folder, overwrite, CONFIG) as temporary:
            copy_run(run, temporary, HUB_WEIGHTS, config, (DISTILLED, *BESIDE))
            (temporary / README).write_text(model_card(run, license), encoding="utf-8")
        return sorted(folder.iterdir())

    @classmethod
    def from_pretrained(
        cls, model: Path | str, *, revision: str | None = None, device: str = "auto"
    ) -> Self:
        """A model of a folder, or of a repository of the Hugging Face hub, as `owner/name`.

        revision: of the repository: a branch, a tag or a commit. `load` takes `hf:owner/name` too,
        and so does every command. Downloaded files are kept in the hub's cache.
        """
        given = str(model)
        if not Path(given).is_dir() and "/" in given:
            given = f"{HUB_PREFIX}{given.removeprefix(HUB_PREFIX)}"
            given += f"@{revision}" if revision else ""
        elif revision:
            raise GazeError("`revision` is of a repository of the hub, as owner/name", path=given)
        return cls(load_model(given, device=choose_device(device)))

    def push_to_hub(
        self,
        repo_id: str,
        *,
        license: str | None = None,
        private: bool | None = None,
        token: str | None = None,
        message: str = "Model of gazediffusion",
    ) -> str:
        """Upload the folder of `save_pretrained` to a repository `owner/name` of the hub.

        The repository is created where there is none; private: then only for its owner. token: of
        the hub, by default that of `hf auth login`. Returns the address of the commit.
        """
        hub = required("huggingface_hub")
        api = hub.HfApi(token=token, library_name="gazediffusion", library_version=__version__)
        with tempfile.TemporaryDirectory() as folder, naming_hub(repo_id):
            saved = Path(folder) / "model"
            self.save_pretrained(saved, license=license)
            repo = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
            done = api.upload_folder(repo_id=repo, folder_path=saved, commit_message=message)
        return str(done.commit_url)


def download(given: str) -> Path:
    """The folder of `owner/name`, or `owner/name@revision`, of the hub, downloaded if need be."""
    hub = required("huggingface_hub")
    repo_id, _, revision = given.partition("@")
    with naming_hub(repo_id):
        folder = hub.snapshot_download(
            repo_id,
            revision=revision or None,
            allow_patterns=list(FILES),
            library_name="gazediffusion",
            library_version=__version__,
        )
    return Path(folder)


@contextmanager
def naming_hub(repo_id: str) -> Iterator[None]:
    """A failure of the hub as one line that names the repository."""
    errors = required("huggingface_hub").errors
    known = (errors.HfHubHTTPError, errors.HTTPError, errors.HFValidationError, OSError)
    try:
        yield
    except GazeError:
        raise
    except known as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        reason = lines[0] if lines else type(error).__name__
        raise GazeError(
            f"the hub's repository {repo_id} cannot be reached ({reason[:200]})",
            remedy="check its name and the network; a private one needs hf auth login",
        ) from error


def model_card(run: Run, license: str | None = None) -> str:
    """The model card in Markdown, with the YAML head that the hub reads."""
    is_packaged = run.path.parent == pretrained_folder()
    license = license or ("mit" if is_packaged else None)
    head = ["---", *([f"license: {license}"] if license else []), "library_name: gazediffusion"]
    head += ["tags:", *(f"- {tag}" for tag in TAGS), "---", ""]
    own = run.path / README
    body = own.read_text(encoding="utf-8") if is_packaged and own.is_file() else _described(run)
    return "\n".join(head) + "\n" + body.rstrip() + "\n" + _USE


_USE = """
## Use

```python
import gazediffusion as gd

model = gd.Model.from_pretrained("owner/name")  # this repository, or a folder
gaze = model.sample(100, seed=0)
```

What the model generates is synthetic: no participant was recorded. The folder contains no recording
and names no participant. Ask before sharing whether the terms of the recordings allow it.
"""


def _described(run: Run) -> str:
    config: RunConfig = run.config
    data: dict[str, Any] = dict(config.data)
    n_training = data["n_participants"] - data["n_held_out_participants"]
    screens = dict.fromkeys([*(config.conditioning.task_screens or ()), config.screen])
    rows = {
        "recipe, seed": f"`{config.recipe.name}`, {config.seed}",
        "parameters": f"{n_parameters(config.recipe.network):,}",
        "windows": f"{config.length / config.rate_hz:g} s at {config.rate_hz:g} Hz",
        "weights": f"{run.weights}, epoch {run.epoch}",
        "training data": f"{data['n_windows']:,} windows of {n_training} participants",
        "held out": f"{data['n_held_out_participants']} participants",
        "tasks": ", ".join(config.conditioning.tasks or data["tasks"]),
        "screens": "; ".join(screen.in_words() for screen in screens),
        "gazediffusion": config.gazediffusion_version,
    }
    lines = ["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows.items())]
    return f"# Diffusion model of gaze\n\n{chr(10).join(lines)}\n"
