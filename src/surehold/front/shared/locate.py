"""Finds the workspace that a directory belongs to."""

import os
from pathlib import Path

from surehold.errors import NotFound


def find_workspace(directory: str) -> str:
    """Return the nearest directory, upwards, that has a history; else the nearest with `.git`; else the given one."""
    from surehold.app import default_state_dir

    upwards = [directory, *(str(parent) for parent in Path(directory).parents)]
    with_history = (one for one in upwards if has_state_database(default_state_dir(one)))
    with_git = (one for one in upwards if os.path.exists(os.path.join(one, ".git")))  # noqa: PTH110, PTH118 - speed
    return next(with_history, None) or next(with_git, None) or directory


def find_removed_workspace(directory: str, state_dir: str) -> str:
    """Return the current directory, which was removed, if it is a workspace: its history is known by its path."""
    from surehold.app import default_state_dir

    is_removed = os.path.isabs(directory) and not os.path.lexists(directory)  # noqa: PTH117
    if is_removed and has_state_database(Path(state_dir) if state_dir else default_state_dir(directory)):
        return directory
    action = "Change to a directory that exists, or name one with --root."
    raise NotFound("The current directory no longer exists.", reason="no_such_root", action=action)


def has_state_database(directory: Path) -> bool:
    try:
        return (directory / "state.db").exists()
    except PermissionError:
        return True  # something is there; opening it says what is wrong
