"""
Main sequence of synthetic saccades
===================================

Larger saccades are faster (Bahill, Clark and Stark 1975). Are synthetic ones? The packaged summary
of held-out participants answers without recordings.
"""

import matplotlib.pyplot as plt
import numpy as np

import gazediffusion as gd

gaze = gd.load("default").sample(25, task="reading", seed=0)
result = gd.evaluate(synthetic={"synthetic": gaze}, config=gd.EvaluationConfig(quick=True))
sequence = result.results["main_sequence"]["sets"]

# %%
# The package holds the fitted line of the held-out participants (``real``), not their saccades.

figure, axes = plt.subplots(figsize=(7, 4.5))
ours, real = sequence["synthetic"], sequence["real"]
axes.loglog(ours["amplitude_deg"], ours["peak_deg_s"], ".", markersize=5, alpha=0.5)
amplitude = np.geomspace(0.3, 20, 50)
for fit, style, name in ((ours, "-", "synthetic"), (real, "--", "held-out participants")):
    peak = 10 ** (fit["intercept"] + fit["slope"] * np.log10(amplitude))
    axes.loglog(amplitude, peak, style, linewidth=2, label=f"{name}: slope {fit['slope']:.2f}")
axes.set(xlabel="amplitude (deg)", ylabel="peak velocity (deg/s)", title="main sequence, reading")
axes.legend()
plt.show()

# %%
# The difference of the slopes is one of the headline numbers of every evaluation.

print(result.headline())
