"""Where a session works: the directory that its client names, if that lies in the roots."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from surehold.errors import InvalidArgument, NotFound, OutsideWorkspace

if TYPE_CHECKING:
    from surehold.app import Settings
    from surehold.dialects.agent import AgentWorkspace


def open_room(cwd: str, others: Sequence[str], *, roots: Sequence[str], settings: "Settings") -> "AgentWorkspace":
    """Open the directory of a session. Its history is that of the directory; the roots only say what may be opened."""
    from surehold.app import default_state_dir, open_workspace

    allowed = [os.path.realpath(root) for root in roots]
    for directory in (cwd, *others):
        _check(directory, allowed)
    room, state_dir = os.path.realpath(cwd), settings.state_dir
    if state_dir is not None and allowed and room != allowed[0]:
        state_dir = state_dir / default_state_dir(room).name  # paths are recorded relative to their own root
    return open_workspace(cwd, *others, settings=replace(settings, state_dir=state_dir))


def names_of(directories: Sequence[str]) -> dict[str, str]:
    """Return how a client spells the directories that it names, by where they really are."""
    named = {os.path.realpath(one): one.rstrip("/") for one in directories if "\0" not in one}
    return {real: name for real, name in named.items() if real != name}


def check_roots(roots: Sequence[str]) -> None:
    """Refuse a root that no session could ever begin in."""
    for root in roots:
        if not Path(root).is_dir():
            raise NotFound(f"`{root}` is not a directory.", reason="no_such_root", action="Name a directory.")


def _check(directory: str, allowed: Sequence[str]) -> None:
    if not os.path.isabs(directory) or "\0" in directory:  # noqa: PTH117 - names need not be UTF-8
        raise InvalidArgument(
            f"`{directory}` is not an absolute path.", reason="relative_cwd", action="Send an absolute path as cwd."
        )
    real = Path(os.path.realpath(directory))
    if allowed and not any(real.is_relative_to(root) for root in allowed):
        raise OutsideWorkspace(
            f"`{directory}` lies outside of the directories that this agent was started for.",
            path=directory,
            reason="outside_roots",
            action="Start it for that directory: surehold acp ROOT",
        )
