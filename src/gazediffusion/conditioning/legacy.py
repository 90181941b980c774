"""Reading the conditioning of models that were written before it was an object of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gazediffusion.conditioning.conditioning import AUGMENTATIONS, Conditioning
from gazediffusion.conditioning.prior import Prior
from gazediffusion.geometry import Screen


def legacy_conditioning(config: Mapping[str, Any]) -> Conditioning:
    """The conditioning in a config.json of that time."""
    if not config.get("tasks"):
        return Conditioning()
    tables = config.get("manners")
    return Conditioning(
        tasks=tuple(config["tasks"]),
        task_shares=tuple(config["task_shares"]),
        task_screens=tuple(Screen(**one) for one in config["task_screens"]),
        augmentations=AUGMENTATIONS,
        prior=Prior.from_legacy(tables) if tables else None,
    )
