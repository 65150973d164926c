"""Tells whether this process is part of a run, and of which."""

import os
from dataclasses import dataclass

JOINED_VARIABLE = "SUREHOLD_RUN"
"""What every process of a run has in its environment: the id of the change, the supervisor, and the root."""


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that this process is part of."""

    change_id: str
    root: str


def spell_run(change_id: str, supervisor: int, root: str) -> str:
    return f"{change_id} {supervisor} {root}"


def find_open_run() -> OpenRun | None:
    """Return the run that records this process; None also where only the variable is left of one.

    A supervisor adopts the orphans of its tree: whatever it records is below it.
    """
    change_id, _, rest = os.environ.get(JOINED_VARIABLE, "").partition(" ")
    supervisor, _, root = rest.partition(" ")
    if not (change_id and root and supervisor.isdecimal()) or not _is_below(int(supervisor)):
        return None
    return OpenRun(change_id, root)


def _is_below(ancestor: int) -> bool:
    pid = os.getppid()
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            with open(f"/proc/{pid}/stat", "rb") as facts:
                pid = int(facts.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return False
    return False
