"""Takes away the empty directories that changes had made for their files, once those changes are taken back.

Rules:
1. Only an empty directory goes, and the operating system decides whether it is empty. A root never goes.
2. A directory belongs to the change that made it last. As long as any part of that is in effect, the directory stays.
3. What an undo or a redo had to make goes when that one is taken back itself.
4. It comes after the change, and nothing depends on it: a kill in between leaves an empty directory.
5. What was switched tells from where on the history has to be read, and that is read once for all directories.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial

from surehold.errors import SureholdError
from surehold.stores.base import Change, Entry, LedgerQuery, Store
from surehold.workspace.past.selectors import SWITCHING, read_pages
from surehold.workspace.proposal import Receipt
from surehold.workspace.undo.switch_board import SwitchBoard, load_board_of
from surehold.workspace.workspace import Workspace

_PAGE_ENTRIES = 1000
_MAX_ENTRIES = 10_000_000
_LOCK_SECONDS = 1.0


def remove_made_directories(workspace: Workspace, switched: Sequence[Entry], receipt: Receipt) -> Receipt:
    """Look at the directories that undoing or redoing some entries may have left without a purpose, the innermost first."""
    if not receipt.entries:
        return receipt
    store, disk = workspace.store, workspace.reader.disk
    makers = _DirectoryMakers(store, switched)
    made = {key for entry in switched for key in entry.change.makes}
    left = {key for entry in receipt.entries for key in _left_directories(entry.change)}
    for key in sorted(made | left, key=len, reverse=True):
        with suppress(SureholdError):  # what was asked for has happened
            disk.remove_empty(disk.locate(key), may_go=partial(makers.let_go, key), timeout=_LOCK_SECONDS)
    return receipt


def _left_directories(change: Change) -> Iterator[str]:
    """Yield the directories that a file has left, as the history names them."""
    for path, before, after in change.transitions():
        above = path.rpartition("/")[0] if before is not None and after is None else ""
        while above:
            yield above
            above = above.rpartition("/")[0]


class _DirectoryMakers:
    """Which change made each directory last, and whether some of that is in effect."""

    def __init__(self, store: Store, switched: Sequence[Entry]) -> None:
        self._store = store
        self._freely = {key for one in switched if one.call.operation in SWITCHING for key in one.change.makes}
        own = [one for one in switched if one.call.operation not in SWITCHING and _makes_any(one.change)]
        self._known = {key for one in own for key in _made_by(one.change)}
        self._start = min((one.seq - one.index for one in own), default=0)
        """Where the first of the changes begins that are known to have made a directory: no earlier one made it last."""

    def let_go(self, key: str) -> bool:
        """Tell whether an empty directory has no purpose any more."""
        if key in self._freely:
            return True
        if key in self._known:
            makers, board = self._since_start
            return not any(map(board.is_on, makers[key]))
        found = _find_makers(self._store, key)
        return bool(found) and not any(map(load_board_of(self._store, found[0].change_id).is_on, found))

    @cached_property
    def _since_start(self) -> tuple[dict[str, list[Entry]], SwitchBoard]:
        """Read who made each of the known directories last, and what was undone and redone since."""
        makers, switching = dict[str, list[Entry]](), list[Entry]()
        query = LedgerQuery(ok_only=True, after_seq=self._start - 1, limit=_PAGE_ENTRIES)
        for entry in read_pages(self._store, query):
            if entry.call.operation in SWITCHING:
                switching.append(entry)
            elif _makes_any(entry.change):
                for key in self._known.intersection(_made_by(entry.change)):
                    last = makers.setdefault(key, [entry])[0]
                    if entry.change_id == last.change_id and entry is not last:
                        makers[key].append(entry)
        return makers, SwitchBoard(switching)


def _made_by(change: Change) -> tuple[str, ...]:
    return (*change.makes, change.path) if _makes_directory(change) else change.makes


def _makes_any(change: Change) -> bool:
    return bool(change.makes) or _makes_directory(change)


def _find_makers(store: Store, key: str) -> list[Entry]:
    """Return the entries of the change that made a directory last, without those that undid or redid another one."""
    commands = store.list_entries(LedgerQuery(path=key, ok_only=True, limit=_MAX_ENTRIES))
    found = [row for row in commands if _makes_directory(row.change) and row.call.operation not in SWITCHING][:1]
    query, before = LedgerQuery(under=key, ok_only=True, limit=_PAGE_ENTRIES), 0
    while rows := store.list_entries(replace(query, before_seq=before)):
        makers = [row for row in rows if key in row.change.makes and row.call.operation not in SWITCHING]
        if makers and (not found or makers[0].seq > found[0].seq):
            own = LedgerQuery(change_id=makers[0].change_id, ok_only=True, limit=_MAX_ENTRIES)
            return [row for row in store.list_entries(own) if key in row.change.makes]
        if makers or len(rows) < _PAGE_ENTRIES:
            break
        before = rows[-1].seq
    return found


def _makes_directory(change: Change) -> bool:
    return change.before is None and change.after is not None and change.after.kind == "directory"
