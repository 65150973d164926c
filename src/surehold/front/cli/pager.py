"""Shows long output of a command page by page, as git does.

1. Only on a terminal: what goes into a pipe or a file never meets a pager.
2. `SUREHOLD_PAGER` or `PAGER` names the program, `cat` or nothing means none; else it is `less`, which ends by itself when
   everything fits.
3. When the person ends the pager, the command ends too, as when a pipe is closed.
"""

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress

from surehold.front.cli.output import Output

_NO_PAGER = frozenset({"", "cat"})


def pager_words() -> list[str]:
    """Return the pager as the words of a command; empty for none."""
    import shlex
    import shutil

    chosen = os.environ.get("SUREHOLD_PAGER", os.environ.get("PAGER", "less"))
    try:
        words = shlex.split(chosen)
    except ValueError:  # an open quote
        return []
    return words if words and words[0] not in _NO_PAGER and shutil.which(words[0]) else []


@contextmanager
def page_output(out: Output) -> Generator[None]:
    """Send what is printed inside through the pager, if there is a terminal."""
    words = pager_words() if out.is_terminal and os.environ.get("TERM", "dumb") != "dumb" else []
    if not words:
        yield
        return
    import subprocess

    out.flush()
    terminal = os.dup(sys.stdout.fileno())
    environment = {"LESS": "FRX", "LV": "-c", **os.environ}
    try:
        pager = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=terminal, env=environment)  # noqa: S603 - the person's own
    except OSError:
        os.close(terminal)
        yield
        return
    assert pager.stdin is not None
    os.dup2(pager.stdin.fileno(), sys.stdout.fileno())
    pager.stdin.close()
    try:
        yield
        out.flush()
    finally:
        # What could not be written any more must not be tried again, on the terminal.
        with suppress(OSError):
            sys.stdout.flush()
        os.dup2(terminal, sys.stdout.fileno())
        os.close(terminal)
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the pager now
        pager.wait()
        signal.signal(signal.SIGINT, before)
