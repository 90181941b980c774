"""Figures in one style: a function takes data and axes and returns the axes.

It draws what it is given. It must not compute statistics or know models.
"""
