"""Long gaze: generated window by window, each given the end of the one before.

Gaze without constraints has a drawn course: targets, or a waypoint in each window. Noise of the
tracker and small motion within fixations differ between recordings and hardly change within one. A
network takes them from the gaze before with an error, which would add up. So the slow motion of
each further window is scaled to the noise level of the first one; saccades and the position of
fixations stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gazediffusion.conditioning.course import JITTER_S
from gazediffusion.screen import Floats

if TYPE_CHECKING:
    from gazediffusion.conditioning import Conditions
    from gazediffusion.diffusion.solvers import WindowNoise
    from gazediffusion.generation.sampler import Sampler
    from gazediffusion.generation.scheduling import Progress, Span

OVERLAP_S = 1.5  # of successive windows of long gaze
EDGE_S = 0.2  # at the end of a window, where gaze is not quite as elsewhere
_LEAST_KNOWN_S = 0.5  # of the gaze before that a window is given
_WAYPOINT_S, _WAYPOINTS_APART_S = 2.8, 1.0  # after the begin of a window; of two windows


def long_gaze(
    sampler: Sampler, noise: WindowNoise, drawn: Conditions, span: Span, progress: Progress
) -> tuple[Tensor, Tensor]:
    """Gaze longer than a window, and uniforms: both (window, 2, time).

    noise, drawn: of the first window of each.
    """
    config, (first, stop) = sampler.sampled.config, span
    length, rate_hz = config.length, config.rate_hz
    starts = window_starts(sampler.n_samples, length, rate_hz)
    given = sampler.given(drawn, span)
    is_placed = sampler.constraints is not None and "targets" not in given
    gaze = np.empty((stop - first, 2, sampler.n_samples), dtype=np.float32)
    uniforms = np.empty_like(gaze)
    for number, start in enumerate(starts):
        elapsed_s = None if is_placed else start / rate_hz
        here = config.conditioning.of_part(drawn, number, elapsed_s, first, sampler.seed)
        within = slice(start, start + length)
        part = {name: array[..., within] for name, array in given.items()}
        if number:
            noise = sampler.noise(first, stop, number)
            before = gaze[..., within], part.get("known"), starts[number - 1] + length - start
            part["known"] = continued(*before, rate_hz, part.get("targets"))

        def counted(share: float, number: int = number) -> None:
            progress((stop - first) * (number + share) / len(starts))

        made = sampler.of_length(noise, here, part, counted).cpu().numpy()
        known = part.get("known")
        if number and known is not None and sampler.style is None:
            made = at_noise_level(made, known, noise_level(gaze[..., :length]), rate_hz)
        gaze[..., within] = made if known is None else with_known(made, known)
        # At the scale of a resolution gaze no longer depends on its initial noise.
        uniforms[..., within] = torch.special.ndtr(noise.first[:, :2]).cpu().numpy()
    return torch.from_numpy(gaze), torch.from_numpy(uniforms)


def window_starts(n_samples: int, length: int, rate_hz: float) -> list[int]:
    """Where the windows of `length` samples begin that together give this many samples.

    Each overlaps the one before by OVERLAP_S; the last ends with the gaze and may overlap more.
    """
    step = length - round(OVERLAP_S * rate_hz)
    starts = list(range(0, max(n_samples - length, 0), step))
    return [*starts, max(n_samples - length, 0)]


def joint_samples(
    n_windows: int, stop: int, rate_hz: float, targets: Floats | None = None
) -> NDArray[np.int64]:
    """Up to which of its samples each of n_windows is given the gaze before.

    stop: where the gaze before ends. What lies less than EDGE_S before is generated again. With
    targets (window, 2, time) a joint lies as long before their last jump: gaze has come to rest.
    """
    edge = round(EDGE_S * rate_hz)
    found = np.full(n_windows, stop - edge)
    if targets is None:
        return found
    first = round(_LEAST_KNOWN_S * rate_hz) + edge
    moved = np.diff(targets[..., first - 1 : stop + edge // 2], axis=2)
    is_jump = (np.isfinite(moved) & (moved != 0)).any(axis=1)
    last = first + is_jump.shape[1] - 1 - is_jump[:, ::-1].argmax(axis=1)
    return np.where(is_jump.any(axis=1), np.minimum(last - edge, found), found)


def continued(
    before: Floats, fixed: Floats | None, stop: int, rate_hz: float, targets: Floats | None = None
) -> Floats:
    """What is known in windows (window, 2, time) that continue the gaze before, up to `stop`.

    After the joint, that is what is fixed anyway.
    """
    joints = joint_samples(len(before), stop, rate_hz, targets)
    after = np.float32(np.nan) if fixed is None else fixed
    return np.where(np.arange(before.shape[2]) < joints[:, None, None], before, after)


def waypoint_samples(n_samples: int, length: int, rate_hz: float) -> list[int]:
    """Where waypoints of long gaze are at the earliest: one in a window, not close together.

    They lie up to JITTER_S later. Gaze has the time to get there from the joint.
    """
    found: list[int] = []
    for start in window_starts(n_samples, length, rate_hz):
        at = start + round(_WAYPOINT_S * rate_hz)
        if not found or at - found[-1] >= (JITTER_S + _WAYPOINTS_APART_S) * rate_hz:
            found.append(at)
    return found


def with_known(generated: Floats, known: Floats) -> Floats:
    """Generated gaze with the known samples, which it meets to rounding, in their places."""
    return np.where(np.isfinite(known), known, generated)


_SLOW_S = 0.1  # standard deviation of the filter that the noise lies above
_SHARE = 0.9  # of the difference that is removed: levels of real recordings vary a little
_MOST = 2.0  # the factor, or its inverse
_SMOOTHED_S = 0.02  # over which speed is averaged, and after a known sample noise sets in
_SLOW, _FAST = 4.0, 8.0  # speed in levels: below the first all is noise, above the second none


def noise_level(gaze: Floats) -> Floats:
    """The median absolute step from sample to sample, (window, 2, 1), of gaze (window, 2, time)."""
    level: Floats = np.median(np.abs(np.diff(gaze, axis=2)), axis=2, keepdims=True)
    return level


def at_noise_level(gaze: Floats, known: Floats, level: Floats, rate_hz: float) -> Floats:
    """Gaze (window, 2, time) with noise of the level (window, 2, 1) where nothing is known."""
    from scipy.ndimage import distance_transform_cdt, gaussian_filter1d, uniform_filter1d

    is_free = np.isnan(known[:, :1])
    steps = np.diff(gaze, axis=2, prepend=gaze[..., :1])
    rows = zip(steps, is_free[:, 0], strict=True)
    own = np.stack([np.median(np.abs(one[:, free]), axis=1) for one, free in rows])[..., None]
    size = max(1, round(_SMOOTHED_S * rate_hz))
    fast = uniform_filter1d(steps, size, axis=2) / np.maximum(own, 1e-9)
    is_slow = np.clip((_FAST - np.hypot(fast[:, :1], fast[:, 1:])) / (_FAST - _SLOW), 0.0, 1.0)
    noise = np.cumsum(steps * is_slow * is_free, axis=2)
    noise -= gaussian_filter1d(noise, _SLOW_S * rate_hz, axis=2)
    factor = np.clip((level / np.maximum(own, 1e-9)) ** _SHARE, 1 / _MOST, _MOST)
    # Nothing is added at a known sample, so that gaze still meets it.
    away = np.stack([distance_transform_cdt(one) for one in is_free[:, 0]])[:, None]
    away[is_free.all(axis=2)] = size  # nothing is known
    scaled: Floats = (gaze + (factor - 1) * noise * np.clip(away / size, 0.0, 1.0)).astype(
        np.float32
    )
    return scaled
