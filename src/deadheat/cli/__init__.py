"""The command `deadheat`: one file per verb; each parses, calls, prints."""

from deadheat.cli.app import main

__all__ = ["main"]
