"""Finds the workspace that a directory belongs to."""

import os
from pathlib import Path


def find_workspace(directory: str) -> str:
    """Return the nearest directory, upwards, that has a history; else the nearest with `.git`; else the given one."""
    from surehold.app import default_state_dir

    upwards = [directory, *(str(parent) for parent in Path(directory).parents)]
    with_history = (one for one in upwards if has_state_database(default_state_dir(one)))
    with_git = (one for one in upwards if os.path.exists(os.path.join(one, ".git")))  # noqa: PTH110, PTH118 - speed
    return next(with_history, None) or next(with_git, None) or directory


def has_state_database(directory: Path) -> bool:
    try:
        return (directory / "state.db").exists()
    except PermissionError:
        return True  # something is there; opening it says what is wrong
