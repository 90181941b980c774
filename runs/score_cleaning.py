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
from gazediffusion.data.preparing import clean_segments, window_starts
from gazediffusion.data.resampling import read_clock

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
    is_noise = (label == "B") & is_seen
    is_good = (label != "B") & is_seen
    is_on_screen = (np.abs(SCREEN.to_normalized(gaze)) <= 1).all(axis=0)
    in_window = np.zeros(len(label), dtype=bool)
    length, stride = PrepareConfig().length, PrepareConfig().step
    clock = read_clock(cleaned.time_ms)
    for segment in clean_segments(cleaned, clock, 250.0, length):
        first = int(np.searchsorted(cleaned.time_ms, segment.onset_ms))
        for start in window_starts(SCREEN.to_normalized(segment.gaze_px), length, stride)[0]:
            in_window[first + start : first + start + length] = True
    return Counter(
        noise=int(is_noise.sum()),
        noise_kept=int((is_noise & cleaned.is_valid).sum()),
        noise_kept_on_screen=int((is_noise & cleaned.is_valid & is_on_screen).sum()),
        good=int(is_good.sum()),
        good_lost=int((is_good & ~cleaned.is_valid).sum()),
        in_windows=int(in_window.sum()),
        noise_in_windows=int((is_noise & in_window).sum()),
        noise_in_windows_on_screen=int((is_noise & in_window & is_on_screen).sum()),
    )


def main(path: Path) -> None:
    """Print the counts of each setting."""
    table = pl.read_parquet(path, columns=["task", "label"])
    labels = table.filter(pl.col("task") == "natural_movies")["label"].to_numpy().astype(str)
    recordings = [
        recording
        for recording in gd.read(path, screen=SCREEN)
        if recording.task == "natural_movies"
    ]
    assert sum(len(recording) for recording in recordings) == len(labels)
    for name, config in SETTINGS.items():
        total: Counter[str] = Counter()
        offset = 0
        for recording in recordings:
            total.update(score(recording, labels[offset : offset + len(recording)], config))
            offset += len(recording)
        print(
            f"{name}\n"
            f"  B samples kept: {total['noise_kept']:,} of {total['noise']:,} "
            f"({total['noise_kept'] / total['noise']:.1%}), "
            f"{total['noise_kept_on_screen']:,} of them on the screen\n"
            f"  good samples lost: {total['good_lost']:,} of {total['good']:,} "
            f"({total['good_lost'] / total['good']:.2%})\n"
            f"  in windows: {total['in_windows']:,} samples, of which B "
            f"{total['noise_in_windows'] / total['in_windows']:.2%}, B on the screen "
            f"{total['noise_in_windows_on_screen'] / total['in_windows']:.2%}"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
