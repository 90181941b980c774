"""The mathematics of diffusion: forward processes, losses, samplers, solvers and likelihood.

A denoiser is any callable; nothing here knows a network, a condition's meaning, gaze or files.
"""
