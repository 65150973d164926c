"""`surehold hook HOST`: what the hooks of a host call, with an event as JSON on standard input.

1. A prompt begins a turn. 2. Before an edit tool runs, the bytes of its files are kept. 3. After it, what it did is one
change of the history. 4. A shell command is put under `surehold -c`, which records what it does; where a rewritten command
would get around the person's rules, its shell is, as a session begins.

A hook that fails says so on standard error and in a log, and lets the host go on; only `--strict` blocks it.
"""

import json
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from surehold.errors import InvalidArgument
from surehold.front.hosts.agent_host import AgentHost, HookEvent, find_agent_host, text_of
from surehold.front.hosts.hook_notes import HookNotes, PendingEdit, pending_name

PROJECT_VARIABLES = ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR")
_OWN_COMMAND = re.compile(r"\s*(?:\S*/)?surehold\s[^;&|`$<>()\n]*")
"""A command of ours alone: what it changes is recorded already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRun:
    """One event of a host, in its workspace."""

    host: AgentHost
    event: HookEvent
    root: str
    state_dir: Path
    notes: HookNotes
    blobs: str = ""
    state: str = ""

    def answer(self) -> Mapping[str, Any]:
        """Do what the event asks for, and return what the host is told."""
        match self.event.kind:
            case "start":
                self._begin_session()
            case "prompt":
                self._begin_turn()
            case "before_edit":
                self._note_before()
            case "after_edit":
                self._record(pending_name(self.event.session, self.event.call_id, self.event.tool, self.event.paths))
            case "before_shell" if self.event.command and not _OWN_COMMAND.fullmatch(self.event.command):
                return self.host.answer_shell(self.event, self._captured_command())
            case "end":
                self._settle_pending()
            case _:
                pass
        return {}

    def _begin_session(self) -> None:
        from surehold.front.hosts.setup import find_program

        self.host.begin_session(find_program())

    def _begin_turn(self) -> None:
        from surehold.app import open_records
        from surehold.stores.conversations import MAX_TITLE_CHARS, SessionRow
        from surehold.stores.ledger_entries import utc_now

        self._settle_pending()
        event, store = self.event, open_records(self.root, self.state_dir, state=self.state)
        try:
            store.open_session(SessionRow(id=event.session, agent=self.host.agent, opened=utc_now().isoformat()))
            turn = store.begin_turn(event.session, title=event.prompt[:MAX_TITLE_CHARS], turn_id=event.turn)
            self.notes.set_turn(event.session, turn.id)
        finally:
            store.close()

    def _note_before(self) -> None:
        from surehold.app import open_reader
        from surehold.workspace.foreign.noted_edits import note_before

        event = self.event
        paths = [self._absolute_path(path) for path in event.paths]
        inside = [path for path in paths if self._is_inside(path)]
        with open_reader(self.root, self.state_dir, state=self.state, blobs=self.blobs) as reader:
            edit = PendingEdit(
                name=pending_name(event.session, event.call_id, event.tool, event.paths),
                session=event.session,
                turn=event.turn or self.notes.turn_of(event.session),
                call_id=event.call_id,
                tool=event.tool,
                agent=self.host.agent,
                files=note_before(reader, inside),
            )
        self.notes.save_pending(edit)
        if outside := [path for path in paths if path not in inside]:
            raise InvalidArgument(
                f"`{outside[0]}` is outside of the workspace `{self.root}`, so its change is not recorded.",
                path=outside[0],
                reason="outside_root",
                action="Start the host in a directory that contains the file.",
            )

    def _record(self, name: str) -> None:
        from surehold.app import open_reader
        from surehold.stores.base import Call
        from surehold.workspace.foreign.noted_edits import note_after

        edit = self.notes.take_pending(name)
        if edit is None or not edit.files:
            return
        call = Call(
            tool=edit.tool,
            operation="edit",
            writer=self.host.key,
            agent=edit.agent,
            session=edit.session,
            turn=edit.turn,
            call_id=edit.call_id,
        )
        with open_reader(self.root, self.state_dir, state=self.state, blobs=self.blobs) as reader:
            note_after(reader, edit.files, call)

    def _settle_pending(self) -> None:
        """Record what edits did whose end was not reported."""
        for name in list(self.notes.pending_names(self.event.session)):
            self._record(name)

    def _captured_command(self) -> str:
        event = self.event
        facts = {
            "SUREHOLD_AGENT": self.host.agent,
            "SUREHOLD_SESSION": event.session,
            "SUREHOLD_TURN": event.turn or self.notes.turn_of(event.session),
            "SUREHOLD_CALL": event.call_id,
        }
        from surehold.front.hosts.setup import find_program

        words = [f"{name}={shlex.quote(value)}" for name, value in facts.items() if value]
        return " ".join([*words, shlex.quote(find_program()), "-c", shlex.quote(event.command)])

    def _absolute_path(self, path: str) -> str:
        return os.path.join(self.event.directory or self.root, path)  # noqa: PTH118 - names need not be UTF-8

    def _is_inside(self, path: str) -> bool:
        root = os.path.realpath(self.root)
        return os.path.commonpath((root, os.path.realpath(path))) == root


@dataclass(frozen=True, slots=True, kw_only=True)
class HookOutcome:
    """What the host is told; and what went wrong, if something did."""

    text: str = "{}"
    failure: str = ""


def run_hook(
    key: str,
    data: bytes,
    *,
    event_name: str = "",
    root: str = "",
    state_dir: str = "",
    state: str = "",
    blobs: str = "",
) -> HookOutcome:
    """Handle one event; whatever fails is reported and logged, and never raised."""
    notes = HookNotes(locate_state(root or os.getcwd(), state_dir) / "hooks")  # noqa: PTH109 - pathlib has no use here
    event: HookEvent | None = None
    try:
        host = find_agent_host(key)
        event = _parse_event(host, data, event_name)
        _check_event(event)
        place = root or locate_root(event.directory)
        directory = locate_state(place, state_dir)
        notes = HookNotes(directory / "hooks")
        if event.kind == "other":
            return HookOutcome()
        run = HookRun(host=host, event=event, root=place, state_dir=directory, notes=notes, state=state, blobs=blobs)
        return HookOutcome(text=json.dumps(run.answer()))
    except Exception as error:  # noqa: BLE001 - whatever it is, the host must go on
        failure = f"surehold hook {key}: {_describe_event(event)} cannot be undone, since it is not recorded: {error}"
        notes.log_failure(failure)
        return HookOutcome(failure=failure)


def _describe_event(event: HookEvent | None) -> str:
    match event.kind if event else "other":
        case "before_edit" | "after_edit":
            assert event is not None
            return f"What {event.tool or 'the edit'} does to {', '.join(event.paths) or 'files'}"
        case "before_shell":
            return "What this command does"
        case "start":
            return "What the shell does in this session"
        case "prompt":
            return "This turn by itself"
        case _:
            return "This event"


def locate_root(directory: str) -> str:
    """Return the workspace of a host that works in a directory: what it calls its project, else the nearest one."""
    from surehold.front.shared.locate import find_workspace

    project = next(filter(None, map(os.environ.get, PROJECT_VARIABLES)), "")
    return project or find_workspace(directory or os.getcwd())  # noqa: PTH109 - as above


def locate_state(root: str, state_dir: str) -> Path:
    from surehold.app import default_state_dir

    return Path(state_dir) if state_dir else default_state_dir(root)


def _parse_event(host: AgentHost, data: bytes, event_name: str) -> HookEvent:
    """Read an event; a host that does not put its name into it has it on the command line."""
    try:
        event: Any = json.loads(data)
    except ValueError as error:
        raise InvalidArgument(f"The event is not JSON: {error}.", reason="bad_json") from None
    if not isinstance(event, dict):
        raise InvalidArgument("The event must be one JSON object.", reason="bad_json")
    known = cast("dict[str, Any]", event)
    if event_name:
        known = {**known, "hook_event_name": event_name}
    if not text_of(known, "hook_event_name", "hookEventName", host.event_shape.name):
        raise InvalidArgument("The event does not say what happened.", reason="bad_event")
    return host.read_event(known)


def _check_event(event: HookEvent) -> None:
    """Refuse an event that lacks what its record needs, instead of recording nothing in silence."""
    if event.kind != "other" and not event.session:
        raise InvalidArgument("The event does not name its session.", reason="bad_event")
    if event.kind == "before_edit" and not event.paths:
        raise InvalidArgument("The event does not name a file.", reason="bad_event")
