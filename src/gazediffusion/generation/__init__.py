"""Windows of synthetic gaze from a model or a baseline, and synthetic sets written to files.

Window k of a seed is always the same window. It must not know training or evaluation.
"""
