"""Carry a trained run through a narrow door: half-precision weights in pieces under 16 MiB.

    python runs/pack_run.py pack RUN FOLDER     # config, metrics and best weights, in pieces
    python runs/pack_run.py unpack FOLDER RUN   # a run folder that generates, but cannot resume

A GPU machine may give back only small files. Half precision is what the weights are shipped in;
the unpacked run says so by its weights' hash.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import torch

from gazediffusion.models.checkpoint import load_tensors, save_tensors

PIECE_BYTES = 15 * 2**20


def pack(run: Path, folder: Path) -> None:
    """Write the run's small files and its best weights as numbered pieces."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors, header = load_tensors(run / "best.safetensors")
    pieces: list[dict[str, torch.Tensor]] = [{}]
    size = 0
    for name, tensor in tensors.items():
        n_bytes = 2 * tensor.numel()
        if size + n_bytes > PIECE_BYTES:
            pieces.append({})
            size = 0
        pieces[-1][name] = tensor.half()
        size += n_bytes
    for number, piece in enumerate(pieces):
        save_tensors(folder / f"{run.name}.{number}.safetensors", piece, header)
    for name in ("config.json", "metrics.jsonl"):
        shutil.copy(run / name, folder / f"{run.name}.{name}")


def unpack(folder: Path, run: Path) -> None:
    """Join the pieces into a run folder of the given name."""
    run.mkdir(parents=True, exist_ok=True)
    tensors: dict[str, torch.Tensor] = {}
    header: dict[str, object] = {}
    for path in sorted(folder.glob(f"{run.name}.[0-9].safetensors")):
        piece, header = load_tensors(path)
        tensors |= piece
    save_tensors(run / "best.safetensors", tensors, header)
    for name in ("config.json", "metrics.jsonl"):
        shutil.copy(folder / f"{run.name}.{name}", run / name)


if __name__ == "__main__":
    verb, first, second = sys.argv[1:]
    {"pack": pack, "unpack": unpack}[verb](Path(first), Path(second))
