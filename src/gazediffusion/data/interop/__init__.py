"""Recordings as objects of other packages, and back: frames, pymovements, MNE, torch.

One module per package. `to_*` takes recordings, `from_*` returns `Recordings` in memory, with
screen, rate, participant, task, trial, blinks and labels where the object has them. Windows have
their own conversions (`data.conversions`). Nothing here knows how gaze is cleaned or generated.
"""

from __future__ import annotations
