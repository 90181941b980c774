"""The package's version, one line that loads nothing."""

__version__ = "0.1.0"
