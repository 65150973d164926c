"""What the history pages show and do: conversations, filtered changes, files, trash, and undo of more than one change."""

from collections.abc import Iterator
from itertools import islice

from surehold.errors import NotFound, StaleFile, SureholdError, UndoConflict
from surehold.front.review import change_markup
from surehold.front.review import history_markup as markup
from surehold.front.review.file_markup import changed_text
from surehold.front.review.history_markup import ChangeFilter, ConversationView
from surehold.stores.base import Entry, LedgerQuery
from surehold.stores.upkeep import TrashQuery
from surehold.text.diff_rows import count_rows
from surehold.workspace.past.blame import blame_file
from surehold.workspace.past.net_diff import FileNetDiff, diff_of_entry, net_diff
from surehold.workspace.past.overview import tally_sessions
from surehold.workspace.past.selectors import Selectors
from surehold.workspace.proposal import CallAuthor
from surehold.workspace.undo.part import undo_part
from surehold.workspace.undo.switch_board import ChangeView
from surehold.workspace.workspace import Workspace

REVIEWER_NAME = "review page"
PAGE_CHANGES = 50
_PAGE_CONVERSATIONS = 100
_MAX_SCANNED_CHANGES = 5000
_SHOWN_CONVERSATIONS = 5
_READ_ENTRIES = 200
_KEPT_ENTRIES = 5000
_MAX_ENTRIES = 10_000_000
_MAX_DIGITS = 9
_SWITCHES = frozenset({"undo", "redo", "gc"})
_UNDO_WORDS = ("session", "turn", "path", "after")


class HistoryPages:
    """The pages of one workspace's history, as bodies of documents. Called from any thread."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._tallies = tally_sessions(workspace)
        self._read_last: tuple[str, list[Entry]] = ("", [])

    def list_changes(self, before: int = 0) -> tuple[list[ChangeView], str]:
        """Return some changes, newest first, and where the rest begins."""
        found = self._workspace.history.group_changes(self._entries_before(before))
        views = list(islice(found, PAGE_CHANGES))
        more = str(views[-1].entries[0].seq) if next(found, None) else ""
        return views, more

    def _entries_before(self, before: int) -> Iterator[Entry]:
        while rows := self._workspace.history.log(LedgerQuery(limit=_READ_ENTRIES, before_seq=before)):
            yield from rows
            before = rows[-1].seq

    def newest_conversations(self) -> str:
        found = list(islice(self._tallies.summarize(), _SHOWN_CONVERSATIONS + 1))
        return markup.render_conversations(found[:_SHOWN_CONVERSATIONS], more=len(found) > _SHOWN_CONVERSATIONS)

    def all_conversations(self, skipped: int = 0) -> str:
        found = list(islice(self._tallies.summarize(), skipped, skipped + _PAGE_CONVERSATIONS + 1))
        rest = len(found) > _PAGE_CONVERSATIONS
        older = skipped + _PAGE_CONVERSATIONS if rest else 0
        return (
            markup.render_conversations(found[:_PAGE_CONVERSATIONS], more=False, older=older)
            or '<p class="quiet">No conversation has changed anything.</p>'
        )

    def conversation(
        self, session: str, *, split: bool, file: str, first_row: int, first_file: int = 0, newer: int = 0
    ) -> Iterator[str]:
        """Yield the page of a conversation: what happened first, since what it did all together takes longer."""
        history = self._workspace.history
        summary, turns = self._tallies.find(session), self._tallies.list_turns(session)
        if summary is None:
            action = "See the list of conversations."
            raise NotFound("This conversation has changed nothing.", reason="no_such_session", action=action)
        yield markup.render_summary(summary)
        entries = self._entries_of(session)
        done = [entry for entry in entries if entry.ok and entry.call.operation not in _SWITCHES]
        changes = islice(history.group_changes(entries), newer, None)
        shown = list(islice(changes, markup.SHOWN_STEPS))
        view = ConversationView(
            summary=summary,
            turns=turns,
            changes=shown[::-1],
            file=file,
            split=split,
            first_row=first_row,
            first_file=first_file,
            newer_changes=newer,
            has_older_changes=next(changes, None) is not None,
        )
        yield markup.render_turns(view)
        yield markup.render_net_diffs(view, net_diff(self._workspace, done) if done else [])

    def _entries_of(self, session: str) -> list[Entry]:
        """Return what a session did or tried, newest first; of the one that was looked at last, only what is new is read."""
        name, known = self._read_last
        known = known if name == session else []
        newest = known[0].seq if known else 0
        query = LedgerQuery(session=session, after_seq=newest, limit=_MAX_ENTRIES)
        found = [one for one in self._workspace.history.log(query) if one.call.operation != "external"] + known
        if len(found) <= _KEPT_ENTRIES:
            self._read_last = (session, found)
        return found

    def change(self, reference: str, *, split: bool, file: str, first_row: int, first_file: int) -> Iterator[str]:
        """Yield the page of a change: who, when and why first, since what it did may take longer."""
        history = self._workspace.history
        view = history.show(reference)
        yield change_markup.render_change_facts(view)
        entries = [entry for entry in markup.counted_entries(view) if file in {"", entry.change.path}]
        shown = entries[first_file : first_file + markup.SHOWN_FILES]
        files = [self._file_of(entry) for entry in shown]
        try:
            proposed = history.proposed_diff(view.id)
        except SureholdError:  # its bytes were pruned
            proposed = ""
        page = change_markup.ChangePage(
            view=view,
            files=files,
            count=len(entries),
            proposed=proposed,
            cut=any(
                not net.before.exists and not net.after.exists and one.change.diff_truncated
                for net, one in zip(files, shown, strict=True)
            ),
            split=split,
            file=file,
            first_row=first_row,
            first_file=first_file,
        )
        yield change_markup.render_change(page)

    def _file_of(self, entry: Entry) -> FileNetDiff:
        """Return what an entry did; where its versions were pruned, what the ledger keeps of the diff."""
        if found := diff_of_entry(self._workspace, entry):
            return found
        change = entry.change
        added, removed = count_rows(change.diff)
        return FileNetDiff(key=change.path, to_key=change.to_path, diff=change.diff, added=added, removed=removed)

    def undo_part(self, form: dict[str, str]) -> str:
        """Undo one part of what a form names, as a change; return that change."""
        net, why = self._named_file(form)
        part = form.get("part", "")
        number = int(part) if part.isascii() and part.isdecimal() and len(part) < _MAX_DIGITS else -1
        call = CallAuthor(agent=REVIEWER_NAME).make_call("undo_part", "edit", reason=f"part {number + 1} of {why}")
        return undo_part(self._workspace, changed_text(net), number, call).change_id

    def _named_file(self, form: dict[str, str]) -> tuple[FileNetDiff, str]:
        """Return the file that the form of a part is about, as it was shown, and what it is a part of."""
        history, path = self._workspace.history, form.get("path", "")
        if change := form.get("change", ""):
            view = history.show(change)
            found = [self._file_of(one) for one in view.entries if one.ok and one.change.path == path]
            return _only(found), f"change {view.id}"
        session = form.get("session", "")
        done = [one for one in history.select_done(Selectors(session=session)) if one.call.operation not in _SWITCHES]
        net = _only([one for one in net_diff(self._workspace, done) if one.key == path])
        if (net.before.sha256, net.after.sha256) != (form.get("before", ""), form.get("after", "")):
            action = "Look at the conversation again, then undo the part that is meant."
            raise StaleFile("The file was changed since this page was made.", path=path, action=action)
        return net, f"session {session}"

    def changes(self, wanted: ChangeFilter) -> str:
        history = self._workspace.history
        words = Selectors(agent=wanted.agent, since=wanted.since, paths=(wanted.path,) if wanted.path else ())
        outside = not (wanted.agent or wanted.since)
        entries = history.iterate(history.select(words), ok_only=False, outside=outside)
        older = (entry for entry in entries if not wanted.before or entry.seq < wanted.before)
        scanned, found, more = 0, list[ChangeView](), ""
        for view in history.group_changes(older):
            scanned += 1
            if _matches(view, wanted):
                found.append(view)
            if len(found) == PAGE_CHANGES or scanned == _MAX_SCANNED_CHANGES:
                more = str(view.entries[0].seq)
                break
        is_partial = scanned == _MAX_SCANNED_CHANGES
        note = f"Only {scanned:,} changes were looked through; the older ones were not." if is_partial else ""
        return markup.render_change_list(found, wanted, more=more, note=note)

    def file(self, path: str, first_line: int = 0) -> str:
        key = self._workspace.target(path).key
        history = self._workspace.history
        try:
            words = Selectors(paths=(key,))
            entries = [*islice(history.iterate(history.select(words), ok_only=False, outside=True), PAGE_CHANGES)]
        except SureholdError:  # the history does not know it
            entries = []
        views, more = list(self._workspace.history.group_changes(entries)), len(entries) == PAGE_CHANGES
        try:
            lines, problem = blame_file(self._workspace, key), ""
        except SureholdError as error:
            lines, problem = [], error.message
        shown = lines[first_line : first_line + markup.SHOWN_LINES]
        blame = markup.BlamePart(lines=shown, first=first_line, count=len(lines))
        return markup.render_file_history(key, views, blame, problem=problem, more=more)

    def trash(self, after: str = "") -> str:
        found = self._workspace.history.trash(TrashQuery(after=after, limit=PAGE_CHANGES + 1))
        return markup.render_trash(found[:PAGE_CHANGES], more=len(found) > PAGE_CHANGES)

    def restore(self, item: str) -> str:
        """Restore a file; return the change."""
        return self._workspace.history.restore(item, author=CallAuthor(agent=REVIEWER_NAME)).change_id

    def undo(self, form: dict[str, str]) -> str:
        """Undo what a form names, as one change; return that change, empty if nothing had to be written."""
        history = self._workspace.history
        words = {name: form.get(name, "") for name in _UNDO_WORDS}
        selectors = Selectors(
            session=words["session"], turn=words["turn"], paths=(words["path"],) if words["path"] else ()
        )
        entries = history.select_done(selectors)
        if words["after"]:
            last = max(entry.seq for entry in history.show(words["after"]).entries)
            entries = [entry for entry in entries if entry.seq > last]
            if not entries:
                raise NotFound("Nothing came after it.", reason="no_changes", action="There is nothing to undo.")
        receipt = history.switch_entries(
            entries, "undo", author=CallAuthor(agent=REVIEWER_NAME), partial=bool(form.get("partial"))
        )
        return receipt.change_id

    def refused_undo(self, form: dict[str, str], error: SureholdError) -> str:
        """Return the page that says why, and offers what can be undone."""
        words = {name: form.get(name, "") for name in _UNDO_WORDS}
        if not isinstance(error, UndoConflict) or form.get("partial"):
            return ""
        return markup.render_conflict(f"Nothing was written. {error}", words)


def _only(found: list[FileNetDiff]) -> FileNetDiff:
    if len(found) != 1:
        action = "Open the page again; it may be undone as a whole."
        raise NotFound("There is no such part.", reason="no_such_part", action=action)
    return found[0]


def _matches(view: ChangeView, wanted: ChangeFilter) -> bool:
    if wanted.refused and view.entries[0].ok:
        return False
    text = wanted.text.casefold()
    return not text or any(
        text in one.casefold()
        for entry in view.entries
        for one in (entry.change.diff, entry.call.reason, entry.change.path, entry.change.to_path, entry.message)
    )
