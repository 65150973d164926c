"""Which directory a history in a state directory belongs to: a note beside it, so that another one is refused.

A workspace that was moved, or copied together with its history, goes on: then the directory of the note is gone, or the note
lies elsewhere than it says.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from surehold.errors import STATE_DIR, StateUnavailable, spell

_NOTE_NAME = "workspace.json"


def refuse_other_root(state_dir: Path, root: str) -> None:
    """Refuse a state directory that has the history of another directory, which is still there."""
    noted = _read_note(state_dir)
    theirs = str(noted.get("root", ""))
    if not theirs or noted.get("state") != os.path.realpath(state_dir) or _is_same(noted, root):
        return
    if os.path.isdir(theirs):  # noqa: PTH112 - strings all the way: names need not be UTF-8
        raise StateUnavailable(
            f"The state directory `{state_dir}` belongs to another workspace: {theirs}.",
            path=str(state_dir),
            reason="state_of_another_workspace",
            action=spell("Name another directory with {}, or none to go by the workspace.", STATE_DIR),
            root=theirs,
        )


def note_root(state_dir: Path, root: str) -> None:
    """Note the directory to which a history belongs, if that is not known yet or has changed."""
    real, found = os.path.realpath(root), os.stat(root)  # noqa: PTH116 - as above
    note = {"root": real, "state": os.path.realpath(state_dir), "device": found.st_dev, "inode": found.st_ino}
    if _read_note(state_dir) == note:
        return
    text, new = json.dumps(note), state_dir / f"{_NOTE_NAME}.{os.getpid()}"
    with suppress(OSError):  # a history that cannot be written to can be looked at
        new.write_text(text, encoding="ascii")
        new.chmod(0o600)
        new.replace(state_dir / _NOTE_NAME)


def noted_root(state_dir: Path) -> str:
    """Return the directory to which a history belongs; empty if that is not known."""
    return str(_read_note(state_dir).get("root", ""))


def _read_note(state_dir: Path) -> dict[str, Any]:
    try:
        found = json.loads((state_dir / _NOTE_NAME).read_bytes())
    except (OSError, ValueError):  # none yet, or one that a crash cut short
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _is_same(noted: dict[str, Any], root: str) -> bool:
    if noted["root"] == os.path.realpath(root):
        return True
    with suppress(OSError):
        found = os.stat(root)  # noqa: PTH116 - as above
        return (noted.get("device"), noted.get("inode")) == (found.st_dev, found.st_ino)
    return False
