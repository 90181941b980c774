"""
Evaluate somebody else's generator
==================================

Any array of gaze can be compared with held-out participants, also without their recordings: the
package holds histograms and means of real gaze. Here a Markov chain against the packaged model.
"""

import matplotlib.pyplot as plt
import numpy as np

import gazediffusion as gd

model = gd.load("default")
ours = model.sample(25, task="reading", seed=0)

# %%
# The other generator: a kinematic Markov chain, fitted to gaze of the model. A file of another
# program would be read by ``gd.evaluate_files``.

chain = gd.fit_baseline("kinematic-markov", model.sample(12, task="reading", seed=9))
theirs = chain.sample(25, seed=0)

# %%
# A ratio of 1 means: as close to held-out participants as the training participants are.

result = gd.evaluate(
    real="bioeye/reading",
    synthetic={"packaged model": ours, "Markov chain": theirs},
    config=gd.EvaluationConfig(quick=True),
)
print(result.headline())

# %%
# The ratios by family of quantities.

table = result.table().drop_nulls("ratio")
figure, axes = plt.subplots(figsize=(8, 4.2))
families = table["family"].unique(maintain_order=True).to_list()
for name, marker, shift in (("packaged model", "o", -0.12), ("Markov chain", "s", 0.12)):
    rows = table.filter(set=name)
    place = np.array([families.index(one) for one in rows["family"]]) + shift
    axes.plot(rows["ratio"], place, marker, alpha=0.6, label=name)
axes.axvline(1, color="0.4", linestyle="--", label="floor")
axes.set_xscale("log")
axes.set_yticks(range(len(families)), families)
axes.invert_yaxis()
axes.set_xlabel("distance / distance between real participants")
axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
plt.show()
