"""The other processes of the demo: a racer that waits for its start, and one that dies in the middle of its work."""

import itertools
import json
import os
import signal
import sys
from typing import Any

from surehold import Exact, Proposal, SnapshotEdits, StringEdit, SureholdError, open_workspace
from surehold.disk.kernel import Kernel
from surehold.disk.local import LocalDisk

FILES = ("shop/cart.py", "shop/invoice.py", "shop/till.py")


class Fatal(Kernel):
    """The real system calls, except that the second file of a change is never reached."""

    calls = itertools.count(1)

    def swap(self, dir_fd: int, one: str, other: str) -> None:
        """Let two names trade places; kill the process instead when it is the second time."""
        if next(self.calls) > 1:
            os.kill(os.getpid(), signal.SIGKILL)
        super().swap(dir_fd, one, other)


def race(root: str, agent: str, path: str, old: str, new: str) -> None:
    """Read, wait for the start, edit; when refused, follow the advice."""
    with open_workspace(root) as workspace:
        session = workspace.session(agent=agent)
        seen = session.read(path).sha256
        _say(event="ready")
        sys.stdin.readline()
        try:
            session.edit(path, (old, new), expected_sha256=seen)
        except SureholdError as error:
            _say(event="refused", kind=error.kind, message=error.message, action=error.action, **error.details)
            seen = session.read(path).sha256
            session.edit(path, (old, new), expected_sha256=seen)
            _say(event="wrote after reading again")
        else:
            _say(event="wrote")


def die(root: str) -> None:
    """Change three files in one call, and be killed between the first and the second."""
    with open_workspace(root) as workspace:
        workspace.disk = LocalDisk([root], kernel=Fatal())
        rename = SnapshotEdits((StringEdit(old="price", new="cents", replace_all=True),))
        proposals = [Proposal(path=path, edit=rename, proof=Exact()) for path in FILES]
        workspace.session(agent="carol").apply(*proposals, reason="say what the number is")


def _say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    {"race": race, "die": die}[sys.argv[1]](*sys.argv[2:])
