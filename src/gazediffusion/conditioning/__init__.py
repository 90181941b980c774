"""What a model is conditioned on: task, augmentation labels, summary statistics and their prior.

One object, `Conditioning`, encodes, drops out, draws and calibrates conditions; no other package
knows the layout of a condition. It must not know networks, training or sampling.
"""

from gazediffusion.conditioning.conditioning import Condition, Conditioning, Conditions

__all__ = ["Condition", "Conditioning", "Conditions"]
