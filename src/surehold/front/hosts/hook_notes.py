"""What hooks of one host remember from one event to the next: noted files, the turn under way, and what went wrong.

It lies beside the history: `hooks/` in the state directory. Every file there is written whole and read whole.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from surehold.workspace.foreign.noted_edits import NotedFile

_LOG_BYTES = 64 * 1024
_LOG_LINES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingEdit:
    """A tool of a host was about to change files, and has not reported back yet."""

    name: str
    session: str
    turn: str
    call_id: str
    tool: str
    agent: str
    files: "tuple[NotedFile, ...]"


@dataclass(frozen=True, slots=True)
class HookNotes:
    """The notes of one workspace."""

    folder: Path

    def save_pending(self, edit: PendingEdit) -> None:
        from surehold.stores.ledger_entries import version_text

        files = [{"key": one.key, "version": version_text(one.version), "seq": one.seq} for one in edit.files]
        facts = {name: getattr(edit, name) for name in ("session", "turn", "call_id", "tool", "agent")}
        self._write(f"{edit.name}.pending", {**facts, "files": files})

    def take_pending(self, name: str) -> PendingEdit | None:
        """Return a pending edit; it is pending no more."""
        path = self.folder / f"{name}.pending"
        facts = _read_json(path)
        path.unlink(missing_ok=True)
        if facts is None:
            return None
        from surehold.stores.ledger_entries import version_from_text
        from surehold.workspace.foreign.noted_edits import NotedFile

        files = tuple(
            NotedFile(key=one["key"], version=version_from_text(one["version"]), seq=one["seq"])
            for one in facts["files"]
        )
        texts = {key: str(facts[key]) for key in ("session", "turn", "call_id", "tool", "agent")}
        return PendingEdit(name=name, files=files, **texts)

    def pending_names(self, session: str) -> Iterator[str]:
        """Yield the pending edits of a session."""
        with suppress(FileNotFoundError):
            for path in sorted(self.folder.glob(f"{_short_name(session)}-*.pending")):
                yield path.name.removesuffix(".pending")

    def set_turn(self, session: str, turn: str) -> None:
        self._write(f"{_short_name(session)}.turn", {"session": session, "turn": turn})

    def turn_of(self, session: str) -> str:
        facts = _read_json(self.folder / f"{_short_name(session)}.turn")
        return str(facts["turn"]) if facts else ""

    def log_failure(self, text: str) -> None:
        """Add a line to the log that `surehold doctor` shows; a log that grew too long begins anew."""
        path = self.folder / "failures.log"
        with suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            is_long = path.is_file() and path.stat().st_size > _LOG_BYTES
            with path.open("w" if is_long else "a", encoding="utf-8", errors="backslashreplace") as log:
                log.write(" ".join(text.split()) + "\n")

    def failures(self) -> Sequence[str]:
        """Return the last lines of the log, oldest first."""
        try:
            return (
                (self.folder / "failures.log").read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:]
            )
        except FileNotFoundError:
            return ()

    def _write(self, name: str, facts: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = self.folder / f"{name}.{os.getpid()}"
        new.write_text(json.dumps(facts), encoding="utf-8")
        new.replace(self.folder / name)


def pending_name(session: str, call_id: str, tool: str, paths: Sequence[str]) -> str:
    """Return what a pending edit is called: by the call, or by tool and paths where a host does not name its calls."""
    call = call_id or "\0".join((tool, *paths))
    return f"{_short_name(session)}-{_short_name(call)}"


def _short_name(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:20]


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        return cast("dict[str, Any]", json.loads(path.read_bytes()))
    except (FileNotFoundError, ValueError):
        return None
