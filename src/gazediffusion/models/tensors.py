"""Files of tensors with a JSON header, in the safetensors format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from gazediffusion.errors import GazeError
from gazediffusion.storage import read_safetensors, written_whole


def save_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    """Write tensors with a JSON header as one safetensors file, whole; same input, same bytes."""
    from safetensors.torch import save

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    packed = save(plain, metadata={"gazediffusion": json.dumps(dict(header))})
    with written_whole(path) as temporary:
        temporary.write_bytes(packed)


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and header of a file `save_tensors` wrote; anything else is refused."""
    if not path.is_file():
        raise GazeError("there is no such checkpoint", path=path)
    tensors, header = read_safetensors(path, "pt", "the checkpoint is damaged or cut short")
    if not isinstance(header, dict):
        raise GazeError("this checkpoint is not one of gazediffusion", path=path)
    return tensors, header
