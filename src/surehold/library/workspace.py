"""A workspace whose sessions can call the tools.

The tools are imported by the first session, since most commands need none.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from surehold.errors import InvalidArgument
from surehold.library.arguments import (
    NamedSession,
    bad_argument,
    require_bytes,
    require_flag,
    require_name,
    require_number,
    require_text,
    session_id,
    text_items,
)
from surehold.library.python_words import speak_python
from surehold.workspace.workspace import Workspace

if TYPE_CHECKING:
    from surehold.library.command_run import RunReceipt
    from surehold.library.session import AgentSession
    from surehold.workspace.access.permission import Approver
    from surehold.workspace.past.selectors import Selectors
    from surehold.workspace.proposal import CallAuthor, Receipt
    from surehold.workspace.session import Session
    from surehold.workspace.settings import Mode
    from surehold.workspace.undo.switch_board import ChangeView

Moment = str | datetime
"""A time as `2h`, `10:00`, `yesterday` or in ISO form; or as Python has it."""


class AgentWorkspace(Workspace):
    """One or several directories that agents may edit."""

    def run(
        self,
        argv: Sequence[str],
        *,
        session: "str | Session" = "",
        turn: str = "",
        agent: str = "",
        reason: str = "",
        stdin: bytes = b"",
        confine: bool = False,
        guard: int | None = None,
        approver: "Approver | None" = None,
    ) -> "RunReceipt":
        """Run a command in the first root and record what it changes, so that it can be undone.

        Before the `guard`th deletion (by default the 100th; 0 for no guard), and before a protected file changes, the
        approver is asked while the command waits: the given one, or that of the session or the workspace. Without any, those
        are asked whom `surehold run` would ask.
        """
        from surehold.library.command_run import start_run

        require_bytes("stdin", stdin)
        with speak_python():
            return start_run(
                self,
                argv,
                session=session,
                turn=turn,
                agent=agent,
                reason=reason,
                confine=confine,
                guard=guard,
                approver=approver,
            ).wait(stdin)

    def session(
        self,
        *,
        agent: str = "",
        id: str = "",  # noqa: A002 - it is the id
        mode: "Mode | None" = None,
        approver: "Approver | None" = None,
    ) -> "AgentSession":
        """Begin a session, or continue the one of that id, in a mode and with an approver to ask."""
        from surehold.library.session import AgentSession

        require_name("agent", agent, example='workspace.session(agent="me")')
        require_name("id", id, example="workspace.session(id=session.id)")
        return AgentSession(self, id=id or self.new_id(), agent=agent, permission=self.permission(mode, approver))

    def changes(
        self,
        *paths: str,
        session: str | NamedSession = "",
        agent: str = "",
        turn: str = "",
        since: Moment = "",
        until: Moment = "",
        limit: int | None = None,
    ) -> "list[ChangeView]":
        """Return the changes that the selectors name, newest first; without any, all of them."""
        from itertools import islice

        if limit is not None:
            require_number("limit", limit, example="limit=20")
            if limit < 0:
                raise InvalidArgument("`limit` is a number of changes.", reason="bad_limit", action="limit=20")
        words = _selectors(paths, session=session, agent=agent, turn=turn, since=since, until=until)
        # As in the log: outside edits belong to no session and no agent.
        outside = not any((session, agent, turn, since, until))
        with speak_python():
            entries = self.history.iterate(self.history.select(words), outside=outside)
            return list(islice(self.history.group_changes(entries), limit))

    def undo(
        self,
        change: str = "",
        *,
        session: str | NamedSession = "",
        agent: str = "",
        turn: str = "",
        since: Moment = "",
        until: Moment = "",
        paths: Sequence[str] = (),
        partial: bool = False,
        dry_run: bool = False,
        by: str = "",
        reason: str = "",
    ) -> "Receipt":
        """Undo a change, or everything that the selectors name as one change; without any, the newest change.

        `agent` is the beginning of a name, as in every selector: `agent="ann"` names `anna` too. `by` and `reason` are for
        the history: who undoes it, and why.
        """
        words = _selectors(paths, session=session, agent=agent, turn=turn, since=since, until=until)
        return self._switch("undo", change, words, _author(by, reason), partial=partial, dry_run=dry_run)

    def redo(
        self,
        change: str = "",
        *,
        session: str | NamedSession = "",
        agent: str = "",
        turn: str = "",
        since: Moment = "",
        until: Moment = "",
        paths: Sequence[str] = (),
        partial: bool = False,
        dry_run: bool = False,
        by: str = "",
        reason: str = "",
    ) -> "Receipt":
        """Redo what was undone: a change, everything that the selectors name, or what was undone last."""
        words = _selectors(paths, session=session, agent=agent, turn=turn, since=since, until=until)
        return self._switch("redo", change, words, _author(by, reason), partial=partial, dry_run=dry_run)

    def _switch(
        self,
        operation: Literal["undo", "redo"],
        change: str,
        words: "Selectors",
        author: "CallAuthor",
        *,
        partial: bool,
        dry_run: bool,
    ) -> "Receipt":
        require_text("change", change, example=f"workspace.{operation}(done.change_id)")
        require_flag("partial", partial)
        require_flag("dry_run", dry_run)
        history = self.history
        if change and words:
            action = "Name a change, or selectors such as agent= and since=."
            raise InvalidArgument("A change is named, and selectors too.", reason="change_and_selectors", action=action)
        with speak_python():
            if words:
                many = history.undo_selected if operation == "undo" else history.redo_selected
                return many(words, author=author, partial=partial, dry_run=dry_run)
            one = history.undo if operation == "undo" else history.redo
            return one(change, author=author, dry_run=dry_run)


def _author(name: str, reason: str) -> "CallAuthor":
    from surehold.workspace.proposal import CallAuthor

    require_name("by", name)
    require_text("reason", reason)
    return CallAuthor(agent=name or "library", reason=reason)


def _selectors(
    paths: Sequence[str], *, session: str | NamedSession, agent: str, turn: str, since: Moment, until: Moment
) -> "Selectors":
    from surehold.workspace.past.selectors import Selectors

    if isinstance(paths, str):
        raise InvalidArgument("`paths` is a list.", reason="bad_paths", action='paths=["src/app.py"]')
    named = text_items("paths", paths, example='paths=["src/app.py"]')
    require_text("agent", agent)
    require_text("turn", turn, example="turn=turn.id")
    begin, end = _moment("since", since), _moment("until", until)
    return Selectors(session=session_id(session), agent=agent, turn=turn, since=begin, until=end, paths=named)


def _moment(name: str, given: object) -> str:
    if isinstance(given, datetime):
        return given.astimezone().isoformat()
    if not isinstance(given, str):
        raise bad_argument(name, "a time", given, f'{name}="2h", {name}="10:00", or a datetime')
    return given
