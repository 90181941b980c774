"""How odd each window of gaze is to a model: scores, percentiles, tables and pictures.

A score is a number of one window; `evaluation` compares whole sets and knows nothing of this. It
must not know web or command line.
"""
