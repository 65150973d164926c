"""Runs the command line with `python -m surehold`."""

from surehold.front.cli.main import entry

if __name__ == "__main__":
    entry()
