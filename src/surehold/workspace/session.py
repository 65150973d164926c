"""One agent's session in a workspace: what it was shown, what it changes, and which session this process serves."""

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from surehold.disk.base import Target
from surehold.errors import InvalidArgument, SureholdError
from surehold.stores.base import Blob, Call, Operation, PathRecord, Sighting
from surehold.stores.conversations import MAX_TITLE_CHARS, SessionRow, SessionTurn
from surehold.stores.ledger_entries import utc_timestamp
from surehold.stores.owner import current_owner, parent_owner
from surehold.stores.server_runs import ServerRun
from surehold.text.page import FilePage
from surehold.text.plan import Delete, Keep
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import LineRanges, Snapshot, merge_ranges
from surehold.workspace.access.permission import Approver, Permission
from surehold.workspace.history import History
from surehold.workspace.paths import AnyPath
from surehold.workspace.proposal import Absent, CallAuthor, ChangeRecord, Exact, Proposal, Receipt, Seen, proof_of
from surehold.workspace.workspace import Workspace

if TYPE_CHECKING:
    from surehold.search.query import SearchResult
    from surehold.workspace.finder import Finder

_MAX_KEY_CHARS = 200
_MAX_MATCHED_VERSION_BYTES = 256 * 1024
"""Versions up to this size are kept when a search shows lines of them: there may be many."""


class Session:
    """Reads and changes files on behalf of one agent, and remembers what it was shown.

    A file that was not read in this session, or changed since, is not overwritten.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        id: str,  # noqa: A002 - it is the id
        agent: str = "",
        permission: Permission | None = None,
    ) -> None:
        self.workspace, self.id, self.agent = workspace, id, agent
        self.permission = permission or Permission()
        self.permission.keep_for_session(id, workspace.store.questions)
        self.turn_id, self.call_id, self.idempotency_key = "", "", ""
        workspace.store.open_session(SessionRow(id=id, agent=agent, opened=workspace.clock().isoformat()))

    def with_approver(self, approver: Approver | None) -> Self:
        """Return the same conversation with another approver."""
        return self._with_facts(permission=self.permission.with_approver(approver))

    def with_record(self, record: ChangeRecord) -> Self:
        """Return the same conversation, whose changes are recorded."""
        return self._with_facts(permission=self.permission.with_record(record))

    def with_call_id(self, call_id: str) -> Self:
        """Return the same conversation for one tool call, under the id that the host gave it."""
        return self._with_facts(call_id=call_id)

    def with_idempotency_key(self, key: str) -> Self:
        """Return the same conversation for one call, which is made once however often it comes with this key."""
        if not key:
            return self
        if len(key) > _MAX_KEY_CHARS:
            message, action = "The idempotency key is too long.", f"Send at most {_MAX_KEY_CHARS} characters."
            raise InvalidArgument(message, reason="bad_idempotency_key", action=action)
        return self._with_facts(idempotency_key=key)

    def _with_facts(self, **facts: object) -> Self:
        other = object.__new__(type(self))
        vars(other).update(vars(self), **facts)  # the same session to the store
        return other

    @contextmanager
    def turn(self, title: str = "", *, id: str = "") -> Generator[SessionTurn]:  # noqa: A002 - it is the id
        """Mark what happens inside as done for one request of a person; an id that is known goes on with that turn."""
        begun = self.workspace.store.begin_turn(self.id, title=title[:MAX_TITLE_CHARS], turn_id=id)
        earlier, self.turn_id = self.turn_id, begun.id
        try:
            yield begun
        finally:
            self.turn_id = earlier

    @property
    def author(self) -> CallAuthor:
        """Who makes the calls of this session, and for which request."""
        return CallAuthor(
            agent=self.agent,
            session=self.id,
            turn=self.turn_id,
            call_id=self.call_id,
            idempotency_key=self.idempotency_key,
        )

    @property
    def history(self) -> History:
        """What happened in this workspace, and the way back with this session's permission."""
        return History(self.workspace, permission=self.permission)

    @property
    def finder(self) -> "Finder":
        """The way to files whose names are not known."""
        return self.workspace.finder

    def read(self, path: AnyPath, *, encoding: str | None = None) -> Snapshot:
        """Return a file as it is now; the session has then seen all of it."""
        target = self.workspace.target(path)
        snapshot = self.workspace.reader.read(target, encoding=encoding, session=self.id)
        total = snapshot.line_count if snapshot.is_text else 0
        self.record_shown_lines(target, snapshot, spans=((1, total),) if total else (), whole=True)
        return snapshot

    def page(self, path: AnyPath, *, start: int = 1, count: int = 2000) -> FilePage:
        """Return some lines of a file of any size; the session has then seen those."""
        target = self.workspace.target(path)
        page = self.workspace.page(target, start=start, count=count)
        self.record_shown_page(target, page)
        return page

    def record_shown_page(
        self, path: AnyPath, page: FilePage, *, anchored: bool = False, snapshot: Snapshot | None = None
    ) -> None:
        """Remember that a page was shown; lines that were cut were not. All pages of a version make it whole."""
        shown = len(page.rows) - page.cut
        spans = ((page.start, page.start + shown - 1),) if shown else ()
        target = self.workspace.target(path)
        record = self._look_at(target)
        earlier = next((one for one in record.sightings if one.sha256 == page.sha256), None)
        together = merge_ranges([*spans, *(earlier.spans if earlier else ())])
        everything = ((1, page.line_count),) if page.line_count else ()
        whole = not page.cut and together == everything
        self._record_shown(record, target, page.sha256, spans, whole=whole, anchored=anchored, kept=snapshot)

    def record_shown_lines(
        self,
        path: AnyPath,
        snapshot: Snapshot,
        *,
        spans: LineRanges,
        whole: bool = False,
        anchored: bool = False,
        keep: bool = True,
    ) -> None:
        """Remember that these lines of this version were shown, with or without their anchors; `keep` its bytes."""
        target, kept = self.workspace.target(path), snapshot if keep else None
        record = self._look_at(target)
        self._record_shown(record, target, snapshot.sha256, spans, whole=whole, anchored=anchored, kept=kept)

    def _look_at(self, target: Target) -> PathRecord:
        return self.workspace.reader.record_for(target, self.id)

    def _record_shown(
        self,
        record: PathRecord,
        target: Target,
        sha256: str,
        spans: LineRanges,
        *,
        whole: bool,
        anchored: bool,
        kept: Snapshot | None,
    ) -> None:
        self.workspace.reader.notice_other_version(target, record, sha256)
        with_anchors = spans if anchored else ()
        sighting = Sighting(
            session=self.id, path=target.key, sha256=sha256, spans=spans, whole=whole, anchored=with_anchors
        )
        self.workspace.reader.record_shown(sighting, record.sightings, kept)

    def record_shown_matches(self, found: "SearchResult") -> None:
        """Remember the lines that a search showed, of many files at once."""
        sightings, blobs = list[Sighting](), list[Blob]()
        self.workspace.reader.notice_outside_many({file.path: file.sha256 for file, _ in found.whole_lines()})
        for file, spans in found.whole_lines():
            sightings.append(Sighting(session=self.id, path=file.path, sha256=file.sha256, spans=spans))
            if file.snapshot.size <= _MAX_MATCHED_VERSION_BYTES:
                blobs += self.workspace.reader.blobs_to_keep(file.snapshot)
        if sightings:
            self.workspace.store.record_sightings(sightings, blobs)

    def create(
        self, path: AnyPath, text: str, *, reason: str = "", dry_run: bool = False, idempotency_key: str = ""
    ) -> Receipt:
        """Make a new file; one that exists is never overwritten."""
        proposal = Proposal(path=path, edit=WriteText(text), proof=Absent())
        return self.submit(
            proposal, operation="create", reason=reason, dry_run=dry_run, idempotency_key=idempotency_key
        )

    def write(
        self,
        path: AnyPath,
        text: str,
        *,
        expected_sha256: str = "",
        reason: str = "",
        dry_run: bool = False,
        idempotency_key: str = "",
    ) -> Receipt:
        """Overwrite a file that this session has read, or whose sha256 it names. Encoding and line endings stay."""
        proposal = Proposal(path=path, edit=WriteText(text), proof=proof_of(expected_sha256, Seen(whole=True)))
        return self.submit(proposal, operation="write", reason=reason, dry_run=dry_run, idempotency_key=idempotency_key)

    def edit(
        self,
        path: AnyPath,
        *edits: StringEdit | tuple[str, str],
        expected_sha256: str = "",
        reason: str = "",
        dry_run: bool = False,
        idempotency_key: str = "",
    ) -> Receipt:
        """Replace quoted texts, each of which occurs exactly once; all of them or none."""
        quoted = tuple(_quoted_edit(one) for one in edits)
        proposal = Proposal(path=path, edit=SnapshotEdits(quoted), proof=proof_of(expected_sha256, Exact()))
        return self.submit(proposal, operation="edit", reason=reason, dry_run=dry_run, idempotency_key=idempotency_key)

    def delete(
        self,
        path: AnyPath,
        *,
        expected_sha256: str = "",
        reason: str = "",
        dry_run: bool = False,
        idempotency_key: str = "",
    ) -> Receipt:
        """Move a file to the trash."""
        proposal = Proposal(path=path, edit=Delete(), proof=proof_of(expected_sha256, Seen()))
        return self.submit(
            proposal, operation="delete", reason=reason, dry_run=dry_run, idempotency_key=idempotency_key
        )

    def move(
        self,
        path: AnyPath,
        to_path: AnyPath,
        *,
        expected_sha256: str = "",
        reason: str = "",
        dry_run: bool = False,
        idempotency_key: str = "",
    ) -> Receipt:
        """Give a file another name; an existing file there is never overwritten."""
        if not to_path:
            raise InvalidArgument("The new name is empty.", path=str(path), reason="no_destination")
        proposal = Proposal(path=path, to_path=to_path, edit=Keep(), proof=proof_of(expected_sha256, Exact()))
        return self.submit(proposal, operation="move", reason=reason, dry_run=dry_run, idempotency_key=idempotency_key)

    def apply(
        self, *proposals: Proposal, reason: str = "", dry_run: bool = False, idempotency_key: str = ""
    ) -> Receipt:
        """Make several proposals happen as one change, all or none."""
        return self.submit(
            *proposals, operation="patch", reason=reason, dry_run=dry_run, idempotency_key=idempotency_key
        )

    def restore(self, trash_id: str, *, to_path: str = "") -> Receipt:
        """Bring a deleted file back."""
        return self.history.restore(trash_id, to_path=to_path, author=self.author)

    def undo(self, change_id: str = "", *, dry_run: bool = False) -> Receipt:
        """Take back a change, by default the newest that is not undone."""
        return self.history.undo(change_id, author=self.author, dry_run=dry_run)

    def redo(self, change_id: str = "", *, dry_run: bool = False) -> Receipt:
        """Make a change again that was undone."""
        return self.history.redo(change_id, author=self.author, dry_run=dry_run)

    def submit(
        self,
        *proposals: Proposal,
        operation: Operation,
        tool: str = "",
        reason: str = "",
        dry_run: bool = False,
        idempotency_key: str = "",
    ) -> Receipt:
        """Make proposals happen on behalf of a tool, by default the one named like the operation; all or none.

        With an idempotency key it happens once: the same call with the same key returns the first receipt.
        """
        call = self.with_idempotency_key(idempotency_key).make_call(tool or operation, operation, reason=reason)
        return self.workspace.writer.write(*proposals, call=call, dry_run=dry_run, permission=self.permission)

    def make_call(self, tool: str, operation: Operation, *, reason: str = "") -> Call:
        """Name who asks: this session, by this tool."""
        return self.author.make_call(tool, operation, reason=reason)

    def record_refusal(self, path: str, *, tool: str, operation: Operation, error: SureholdError) -> None:
        """Write a call into the ledger that was refused before any file was looked at."""
        self.workspace.record_refusal([(path, "")], self.make_call(tool, operation), self.workspace.new_id(), error)


def _quoted_edit(given: StringEdit | tuple[str, str]) -> StringEdit:
    if isinstance(given, StringEdit):
        return given
    pair = [*given] if isinstance(given, Sequence) else []  # pyright: ignore[reportUnnecessaryIsInstance] - callers may have no type checker
    if len(pair) != 2 or not all(isinstance(one, str) for one in pair) or isinstance(given, str):  # noqa: PLR2004 # pyright: ignore[reportUnnecessaryIsInstance] - callers may have no type checker
        action = 'Send pairs, edit("a.txt", ("old", "new")), or `StringEdit` values.'
        raise InvalidArgument("An edit is the text to find and its replacement.", reason="bad_edit", action=action)
    return StringEdit(old=pair[0], new=pair[1])


class CurrentServer:
    """Serves one session: the one it was told, one of an earlier server of its parent, or a new one."""

    def __init__(self, workspace: Workspace, *, named: str = "") -> None:
        """`named`: the id of the session to serve, whoever served it before."""
        self._workspace, self._named = workspace, named
        self._lock = threading.Lock()
        parent, began = parent_owner(), utc_timestamp(workspace.clock())
        self._run = parent and ServerRun(
            id=workspace.new_id(), server=current_owner(), parent=parent, roots=workspace.roots, began=began
        )

    def choose_session(self, client: str, *, fresh: str) -> str:
        """Return the session to serve, the same each time; `fresh` is the id of a new one."""
        if self._named or self._run is None:
            return self._named or fresh
        with self._lock:
            if not self._run.session:
                mine = replace(self._run, client=client)
                self._run = replace(mine, session=self._workspace.store.claim_session(mine, fresh=fresh))
            return self._run.session

    def end(self) -> None:
        """Remember that this process ended properly: what it served is over, unless its parent starts one for each call."""
        if self._run is not None and not self._named:
            with suppress(SureholdError):  # the next server then takes this one for dead
                self._workspace.store.end_server(self._run)
