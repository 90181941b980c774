"""From eye-tracker files to windows and back: readers, cleaning, splits, export, simulation.

Everything here is numpy and files. It knows nothing of networks, diffusion or evaluation, and the
windows file loads where only numpy and safetensors are installed.
"""
