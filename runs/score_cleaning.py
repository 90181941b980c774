"""How well cleaning finds what experts labelled as blink or noise (label B) in GazeCom.

    python runs/score_cleaning.py ../shared/data/gazecom.parquet

Reads the hand labels of natural_movies (F fixation, S saccade, P pursuit, B blink or noise), which
the package never uses. Counts by setting how many B samples pass the cleaning and are in windows,
and how many other samples are lost.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl

import gazediffusion as gd
from gazediffusion import CleaningConfig, PrepareConfig, Recording, Screen
from gazediffusion.data.cleaning import clean
from gazediffusion.data.preparing import window_starts
from gazediffusion.data.resampling import read_clock
from gazediffusion.data.segments import clean_segments

SCREEN = Screen(1280, 720, 40.0, 22.5, 45.0)
SETTINGS = {
    "default: 60 ms before, 100 ms after, 1000 deg/s": CleaningConfig(),
    "no padding": CleaningConfig(blink_before_ms=0, blink_after_ms=0),
    "100 ms before, 150 ms after": CleaningConfig(blink_before_ms=100, blink_after_ms=150),
    "no limit on speed": CleaningConfig(max_speed_deg_s=1e9),
}


def score(recording: Recording, label: np.ndarray, config: CleaningConfig) -> Counter[str]:
    """Samples of one trial by label and by what cleaning does with them."""
    cleaned = clean(recording, config)
    gaze = recording.gaze_px[cleaned.eye]
    is_seen = np.isfinite(gaze).all(axis=0)
    is_noise, is_good = (label == "B") & is_seen, (label != "B") & is_seen
    is_on_screen = (np.abs(SCREEN.to_normalized(gaze)) <= 1).all(axis=0)
    in_window = np.zeros(len(label), dtype=bool)
    length, stride = PrepareConfig().length, PrepareConfig().step
    for segment in clean_segments(cleaned, read_clock(cleaned.time_ms), 250.0, length):
        first = int(np.searchsorted(cleaned.time_ms, segment.onset_ms))
        for start in window_starts(SCREEN.to_normalized(segment.gaze_px), length, stride)[0]:
            in_window[first + start : first + start + length] = True
    chosen = {
        "noise": is_noise,
        "noise_kept": is_noise & cleaned.is_valid,
        "noise_kept_on_screen": is_noise & cleaned.is_valid & is_on_screen,
        "good": is_good,
        "good_lost": is_good & ~cleaned.is_valid,
        "in_windows": in_window,
        "noise_in_windows": is_noise & in_window,
        "noise_in_windows_on_screen": is_noise & in_window & is_on_screen,
    }
    return Counter({name: int(mask.sum()) for name, mask in chosen.items()})


def main(path: Path) -> None:
    """Print the counts of each setting."""
    table = pl.read_parquet(path, columns=["task", "label"])
    labels = table.filter(pl.col("task") == "natural_movies")["label"].to_numpy().astype(str)
    recordings = [one for one in gd.read(path, screen=SCREEN) if one.task == "natural_movies"]
    ends = np.cumsum([len(one) for one in recordings])
    assert ends[-1] == len(labels)
    for name, config in SETTINGS.items():
        total: Counter[str] = Counter()
        for recording, label in zip(recordings, np.split(labels, ends[:-1]), strict=True):
            total.update(score(recording, label, config))
        print(
            f"{name}\n  B samples kept: {said(total, 'noise_kept', 'noise')}, "
            f"{total['noise_kept_on_screen']:,} of them on the screen\n"
            f"  good samples lost: {said(total, 'good_lost', 'good')}\n  in windows: B "
            f"{said(total, 'noise_in_windows', 'in_windows')}, B on the screen "
            f"{said(total, 'noise_in_windows_on_screen', 'in_windows')}"
        )


def said(total: Counter[str], part: str, whole: str) -> str:
    """A part of a whole in words."""
    return f"{total[part]:,} of {total[whole]:,} ({total[part] / total[whole]:.2%})"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
