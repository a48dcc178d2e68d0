"""Deadheat: race reinforcement-learning recipes for language models and never call a tie a win."""

__version__ = "0.1.0"
