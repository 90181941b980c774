"""Figures in one style: a function takes data and axes and returns the axes.

It draws what it is given; it computes no statistic and reads no model.
"""
