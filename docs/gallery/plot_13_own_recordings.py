"""
From recordings to windows
==========================

What ``inspect`` and ``prepare`` make of recordings: clean, resample, cut, split by participant.
"""

import matplotlib.pyplot as plt
import numpy as np

import gazediffusion as gd
from gazediffusion.data.cleaning import clean

# %%
# Four simulated participants at 1,000 Hz, as EyeLink files. A folder of your own takes their place.

config = gd.SimulationConfig(n_participants=4, minutes=0.5, binocular=False)
gd.write_simulation(config, "study", "asc", overwrite=True)
recordings = gd.read("study")
for found in gd.inspect(recordings):
    print(found.task, len(found.participants), "participants,", found.minutes, "min")

# %%
# Lost samples, blinks with their flanks and impossible speeds divide a recording into segments.

recording = next(iter(recordings))
cleaned = clean(recording, gd.CleaningConfig())
x_px = recording.gaze_px["right"][0]
seconds = (recording.time_ms - recording.time_ms[0]) / 1000
is_kept = np.zeros(len(recording), dtype=bool)
for first, stop in cleaned.valid_segments():
    is_kept[first:stop] = True

figure, axes = plt.subplots(figsize=(9, 3.4))
axes.plot(seconds, np.where(is_kept, np.nan, x_px), color="C1", linewidth=2.5, label="dropped")
axes.plot(seconds, np.where(is_kept, x_px, np.nan), color="C0", linewidth=1, label="kept")
axes.set(xlabel="time (s)", ylabel="x (px)")
axes.legend(ncols=2, loc="lower right")
plt.show()

# %%
# Windows of eight seconds at 250 Hz. Participants, never windows, are held out.

windows = gd.prepare(recordings)
print(windows.train)
print(windows.held_out)
