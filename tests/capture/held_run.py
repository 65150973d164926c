"""Runs a command as the command line does; a call that changes `a.txt` waits until the test lets it go on.

Its arguments: a directory for signs, a name for this run, how long it waits for its turn, and those of the command line.
A sign is an empty file: `NAME-came` when the call was heard of, `NAME-kept` when it is about to go on; it waits for `NAME-go`.
"""

import sys
import time
from pathlib import Path
from typing import Any

from surehold.capture import turns
from surehold.capture.kept.keeper import Keeper
from surehold.capture.notices import CallNotice, Listener
from surehold.front.cli.main import run
from surehold.workspace.runs import shared_paths

_HELD_SECONDS = 120.0
"""So long after a test that failed, the processes are gone."""


def main(signs: Path, name: str, patience: str, *words: str) -> int:
    let_pass, came = Listener.let_pass, list[bytes]()
    shared_paths._PATIENCE_SECONDS = 0.05  # pyright: ignore[reportPrivateUsage]  # as if the machine were very slow
    turns.TURN_SECONDS = float(patience)

    def wrap(keep: Any) -> Any:
        def keep_and_say(self: Keeper, path: bytes, **options: Any) -> Any:
            if path.endswith(b"/a.txt"):
                came.append(path)
                (signs / f"{name}-came").touch()
            return keep(self, path, **options)

        return keep_and_say

    def wait_and_let_pass(self: Listener, notice: CallNotice) -> None:
        if came:
            came.clear()
            (signs / f"{name}-kept").touch()
            end = time.monotonic() + _HELD_SECONDS
            while not (signs / f"{name}-go").exists() and time.monotonic() < end:
                time.sleep(0.005)
        let_pass(self, notice)

    Keeper.keep_removed = wrap(Keeper.keep_removed)
    Keeper.keep_written = wrap(Keeper.keep_written)
    Listener.let_pass = wait_and_let_pass
    return run([*words])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
