"""One agent's session in a workspace: what it was shown, and what it changes."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from surehold.disk.base import Target
from surehold.errors import InvalidArgument, SureholdError
from surehold.stores.base import Blob, Call, Operation, PathRecord, Sighting
from surehold.stores.conversations import MAX_TITLE_CHARS, SessionRow, SessionTurn
from surehold.text.lines import LineRanges, merge_ranges
from surehold.text.page import FilePage
from surehold.text.plan import Delete, Keep
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import Snapshot
from surehold.workspace.access.permission import Approver, Permission
from surehold.workspace.history import History
from surehold.workspace.paths import AnyPath
from surehold.workspace.proposal import Absent, CallAuthor, ChangeRecord, Exact, Proof, Proposal, Receipt, Seen, Sha256
from surehold.workspace.workspace import Workspace

if TYPE_CHECKING:
    from surehold.search.query import SearchResult
    from surehold.workspace.finder import Finder

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
        self.turn_id, self.call_id = "", ""
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
        return CallAuthor(agent=self.agent, session=self.id, turn=self.turn_id, call_id=self.call_id)

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
        self.workspace.store.record_sightings([sighting], self.workspace.reader.blobs_to_keep(kept))

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

    def create(self, path: AnyPath, text: str, *, reason: str = "", dry_run: bool = False) -> Receipt:
        """Make a new file; one that exists is never overwritten."""
        proposal = Proposal(path=path, edit=WriteText(text), proof=Absent())
        return self.submit(proposal, operation="create", reason=reason, dry_run=dry_run)

    def write(
        self, path: AnyPath, text: str, *, expected_sha256: str = "", reason: str = "", dry_run: bool = False
    ) -> Receipt:
        """Overwrite a file that this session has read, or whose sha256 it names. Encoding and line endings stay."""
        proposal = Proposal(path=path, edit=WriteText(text), proof=_proof_of(expected_sha256, Seen(whole=True)))
        return self.submit(proposal, operation="write", reason=reason, dry_run=dry_run)

    def edit(
        self,
        path: AnyPath,
        *edits: StringEdit | tuple[str, str],
        expected_sha256: str = "",
        reason: str = "",
        dry_run: bool = False,
    ) -> Receipt:
        """Replace quoted texts, each of which occurs exactly once; all of them or none."""
        quoted = tuple(_quoted_edit(one) for one in edits)
        proposal = Proposal(path=path, edit=SnapshotEdits(quoted), proof=_proof_of(expected_sha256, Exact()))
        return self.submit(proposal, operation="edit", reason=reason, dry_run=dry_run)

    def delete(self, path: AnyPath, *, expected_sha256: str = "", reason: str = "", dry_run: bool = False) -> Receipt:
        """Move a file to the trash."""
        proposal = Proposal(path=path, edit=Delete(), proof=_proof_of(expected_sha256, Seen()))
        return self.submit(proposal, operation="delete", reason=reason, dry_run=dry_run)

    def move(
        self, path: AnyPath, to_path: AnyPath, *, expected_sha256: str = "", reason: str = "", dry_run: bool = False
    ) -> Receipt:
        """Give a file another name; an existing file there is never overwritten."""
        if not to_path:
            raise InvalidArgument("The new name is empty.", path=str(path), reason="no_destination")
        proposal = Proposal(path=path, to_path=to_path, edit=Keep(), proof=_proof_of(expected_sha256, Exact()))
        return self.submit(proposal, operation="move", reason=reason, dry_run=dry_run)

    def apply(self, *proposals: Proposal, reason: str = "", dry_run: bool = False) -> Receipt:
        """Make several proposals happen as one change, all or none."""
        return self.submit(*proposals, operation="patch", reason=reason, dry_run=dry_run)

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
        self, *proposals: Proposal, operation: Operation, tool: str = "", reason: str = "", dry_run: bool = False
    ) -> Receipt:
        """Make proposals happen on behalf of a tool, by default the one named like the operation; all or none."""
        call = self.make_call(tool or operation, operation, reason=reason)
        return self.workspace.write(*proposals, call=call, dry_run=dry_run, permission=self.permission)

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


def _proof_of(expected_sha256: str, otherwise: Proof) -> Proof:
    return Sha256(expected_sha256) if expected_sha256 else otherwise
