"""Which changes are meant: the selectors of the command line, the page, the library and MCP, as one value.

1. `Selectors` are words, as they were given. `resolve_selectors` looks them up once; what comes out is exact.
2. A session is named by a unique beginning or end of its id, or `last`, which is the last of what else is selected; an agent by the beginning of its name; a turn by its
   id, or `last`. What names nothing, or several, is refused with what it could be.
3. Outside edits are meant only where `outside` is the agent, or where nothing but paths is named.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, tzinfo
from heapq import merge
from typing import Any

from surehold.errors import (
    LOG,
    RECOVER,
    SESSIONS,
    InvalidArgument,
    NotFound,
    SpelledText,
    SureholdError,
    spell,
    undo_command,
)
from surehold.stores.base import Entry, Intent, LedgerQuery, Store
from surehold.stores.ledger_entries import normalize_timestamp
from surehold.text.escape import escape_text
from surehold.workspace.past.moments import parse_moment

OUTSIDE_AGENT = "outside"
LAST = "last"
_PAGE_ENTRIES = 500
_PAGE_INTENTS = 100
MIN_END_CHARS = 4
"""A shorter word is the beginning of an id, never its end."""
_LISTED_NAMES = 10
SHOWN_ID_CHARS = 8
"""How many characters of the end of an id the tables show."""
SWITCHING = ("undo", "redo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selectors:
    """Which changes are meant, in the words of the caller; an empty word selects everything."""

    session: str = ""
    agent: str = ""
    turn: str = ""
    since: str = ""
    until: str = ""
    paths: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Tell whether anything is selected."""
        return any(getattr(self, field.name) for field in fields(self))

    def describe(self) -> str:
        """Return the selectors as one would type them."""
        words = [f"--{one.name} {value}" for one in fields(self)[:-1] if (value := getattr(self, one.name))]
        return " ".join((*words, *self.paths))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPlace:
    """A path that changes are looked up by: one file, or a directory with everything below it."""

    key: str
    is_directory: bool = False
    earlier: tuple["EarlierName", ...] = ()
    """What the file was called before it was moved here, newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierName:
    """A name that a file had before an entry of the ledger moved it."""

    key: str
    before_seq: int
    moved_at: str


def find_earlier_names(store: Store, key: str) -> tuple[EarlierName, ...]:
    """Follow a file back through the moves that gave it its name; newest first."""
    found, before = list[EarlierName](), 0
    while move := _find_move_to(store, key, before):
        key, before = move.change.path, move.seq
        found.append(EarlierName(key=key, before_seq=before, moved_at=move.timestamp))
    return tuple(found)


def _find_move_to(store: Store, key: str, before: int) -> Entry | None:
    """Return the entry that moved a file to a name; None if it was made there, or had the name from the beginning."""
    query = LedgerQuery(path=key, ok_only=True, before_seq=before, limit=_PAGE_ENTRIES)
    for number, entry in enumerate(read_pages(store, query)):
        change = entry.change
        if change.to_path == key:
            return entry
        left = number > 0 and bool(change.to_path)
        if left or (change.before is None and entry.call.operation not in (*SWITCHING, "restore")):
            return None
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSelection:
    """Selectors that were looked up: what they name is exact."""

    session: str = ""
    agent: str = ""
    turn: str | None = None
    """None for any; a session without turns has the empty one."""
    since: str = ""
    until: str = ""
    places: tuple[RecordedPlace, ...] = ()
    outside: bool = False
    """Only outside edits."""

    def iterate(self, store: Store, *, ok_only: bool = True, outside: bool = False) -> Iterator[Entry]:
        """Yield the entries that are meant, newest first; outside edits are among them only if that is said."""
        query = LedgerQuery(
            session=self.session,
            agent=self.agent,
            since=self.since,
            until=self.until,
            operation="external" if self.outside else "",
            ok_only=ok_only,
            limit=_PAGE_ENTRIES,
        )
        places = [replace(query, **row) for one in self.places for row in _place_conditions(one)] or [query]
        last, pages = 0, [read_pages(store, one) for one in places]
        for entry in merge(*pages, key=lambda one: -one.seq) if pages[1:] else pages[0]:
            is_outside = entry.call.operation == "external"
            if entry.seq != last and (self.turn is None or entry.call.turn == self.turn):
                last = entry.seq
                if self.outside or not is_outside or outside:
                    yield entry

    def find_open_runs(self, store: Store) -> list[Intent]:
        """Return the commands that still run and may do what is meant; nothing that they do has an entry yet."""
        return [busy.intent for busy in store.open_intents() if self._names_run(busy.intent)]

    def _names_run(self, intent: Intent) -> bool:
        call, began = intent.call, normalize_timestamp(intent.began)
        is_meant = call.session == (self.session or call.session) and call.agent.startswith(self.agent)
        in_time = not (self.until and began >= self.until)  # what it does now is after any beginning
        in_turn = self.turn is None or call.turn == self.turn
        return call.operation == "run" and is_meant and in_turn and in_time and not self.outside


def _place_conditions(place: RecordedPlace) -> list[dict[str, Any]]:
    below = [{"under": place.key}] if place.is_directory else []
    return [{"path": place.key}, *below, *({"path": one.key, "before_seq": one.before_seq} for one in place.earlier)]


def read_pages(store: Store, query: LedgerQuery) -> Iterator[Entry]:
    """Yield everything that a query names, newest first; its limit is that of one page."""
    while rows := store.list_entries(query):
        yield from rows
        if len(rows) < query.limit:
            return
        query = replace(query, before_seq=rows[-1].seq)


def resolve_selectors(
    words: Selectors,
    store: Store,
    *,
    now: datetime,
    zone: tzinfo | None = None,
    locate: Callable[[str], RecordedPlace | None],
) -> ChangeSelection:
    """Look up what the words name; `locate` finds a path, and returns None for the whole workspace."""
    since, until = (parse_moment(word, now=now, zone=zone) if word else "" for word in (words.since, words.until))
    if since and until and since >= until:
        message = f"`{words.since}` is not before `{words.until}`."
        raise InvalidArgument(
            message,
            reason="empty_period",
            action=spell("Name an earlier time with {}.", SpelledText("--since", "`since=`")),
        )
    if words.agent and words.agent != OUTSIDE_AGENT:
        _check_agent(store, words.agent)
    located = [locate(path) for path in words.paths]
    found = ChangeSelection(
        agent="" if words.agent == OUTSIDE_AGENT else words.agent,
        since=since,
        until=until,
        places=() if None in located else tuple(one for one in located if one),
        outside=words.agent == OUTSIDE_AGENT,
    )
    if words.session:
        found = replace(found, session=_find_session(store, words.session, found))
    if words.turn:
        session, turn = _find_turn(store, found, words.turn)
        found = replace(found, session=session, turn=turn)
    return found


def _session_entries(store: Store, among: ChangeSelection) -> Iterator[Entry]:
    """Yield what sessions did, newest first; undoing and redoing by hand do not count."""
    for entry in among.iterate(store):
        if entry.call.session and entry.call.operation not in SWITCHING:
            yield entry


def _find_session(store: Store, word: str, among: ChangeSelection) -> str:
    """Return the id of a session; the last one is that of what else is selected."""
    if word == LAST:
        newest = next(_session_entries(store, among), None)
        if newest is None:
            raise _no_last_session(among)
        return newest.call.session
    names = [row.id for row in store.list_sessions()]
    found = [name for name in names if name == word] or _find_names(names, word)
    if len(found) == 1:
        return found[0]
    if found:
        shown = ", ".join(found[:_LISTED_NAMES])
        message = f"`{word[:80]}` names {len(found)} sessions."
        raise InvalidArgument(
            message, reason="ambiguous_session", action=f"It could be {shown}.", candidates=found[:10]
        )
    action = spell("Look it up with {}; `last` is the newest.", SESSIONS)
    raise NotFound(f"No session is called `{word[:80]}`.", reason="no_such_session", action=action)


def _find_names(names: list[str], word: str) -> list[str]:
    if len(word) < MIN_END_CHARS:
        return [name for name in names if name.startswith(word)]
    return [name for name in names if matches_id(name, word)]


def matches_id(name: str, word: str) -> bool:
    """Tell whether a word is the beginning or the end of an id, or the beginning of the end that tables show."""
    return name.startswith(word) or name.endswith(word) or name[-SHOWN_ID_CHARS:].startswith(word)


def _check_agent(store: Store, word: str) -> None:
    if store.list_entries(LedgerQuery(agent=word, limit=1)):
        return
    names = sorted({escape_text(row.agent) for row in store.list_sessions() if row.agent})
    known = ", ".join(names[:_LISTED_NAMES])
    action = f"Known agents: {known}." if known else spell("Look at {}.", LOG)
    raise NotFound(f"No agent's name begins with `{word[:80]}`.", reason="no_such_agent", action=action)


def _find_turn(store: Store, among: ChangeSelection, word: str) -> tuple[str, str]:
    """Return the session and the id of a turn, of those in which something selected was done."""
    made = _session_entries(store, among)
    if word == LAST:
        newest = next(made, None)
        if newest is None:
            raise _no_last_session(among)
        return newest.call.session, newest.call.turn
    turns = dict.fromkeys((one.call.session, one.call.turn) for one in made if one.call.turn)
    found = [turn for turn in turns if turn[1] == word]
    if not found and word in _names_of_turns(store, among.session):
        return among.session, word  # nothing that is selected was changed in it
    if not found and len(word) >= MIN_END_CHARS:  # turns are often numbered: 1 is not the beginning of 12
        found = [turn for turn in turns if matches_id(turn[1], word)]
    if len(found) == 1:
        return found[0]
    if found:
        sessions = ", ".join(name for name, _ in found[:_LISTED_NAMES])
        message = f"`{word[:80]}` names a turn in {len(found)} sessions."
        action = spell("Add {}; it could be {}.", SpelledText("--session", "`session=`"), sessions)
        raise InvalidArgument(message, reason="ambiguous_turn", action=action)
    known = ", ".join(list(dict.fromkeys(turn for _, turn in turns))[:_LISTED_NAMES])
    action = f"Turns with changes: {known}." if known else "No turn was marked; select by session or time instead."
    raise NotFound(f"No turn is called `{word[:80]}`.", reason="no_such_turn", action=action)


def _names_of_turns(store: Store, session: str) -> Iterator[str]:
    """Yield the turns that were marked, and those in which anything was done."""
    yield from (turn.id for turn in store.list_turns(session))
    yield from (entry.call.turn for entry in _session_entries(store, ChangeSelection(session=session)))


def _no_last_session(among: ChangeSelection) -> NotFound:
    if among.session:
        return _changed_nothing(among.session)
    message = "No session has changed anything yet."
    if among != ChangeSelection():
        message = "No session has made a change like that."
    return NotFound(message, reason="no_such_session", action=spell("See {}.", SESSIONS))


def _changed_nothing(session: str) -> NotFound:
    message = f"Session `{session}` has changed nothing."
    return NotFound(message, reason="no_changes", action=spell("See {}.", SESSIONS))


def refuse_unrecorded(store: Store, change_id: str, what: str) -> None:
    """Refuse when the process that was to record a command has ended without it, as with a full disk."""
    tried = set[str]()
    while page := store.dead_intents(limit=_PAGE_INTENTS, skip=tried):
        found = {busy.intent.id for busy in page}
        if change_id in found:
            raise InvalidArgument(
                f"What {what} did is kept, and not in the history yet.",
                reason="not_recorded",
                action=spell("See what is in the way, and record it, with {}.", RECOVER),
            )
        tried |= found


def refuse_empty(selection: ChangeSelection, words: Selectors, running: Sequence[Intent] = ()) -> SureholdError:
    """Return the refusal for selectors that are right, and that no change matches; commands may still run."""
    if running:
        message = f"What is selected is done by `{' '.join(running[0].call.argv)}`, which still runs."
        action = spell("Wait until its last process has ended, then: {}", undo_command(running[0].id))
        return InvalidArgument(message, reason="still_running", action=action)
    if selection.session and words == Selectors(session=words.session):
        return _changed_nothing(selection.session)
    message = f"No change matches `{words.describe()[:200]}`."
    return NotFound(message, reason="no_changes", action=spell("See which there are with {}.", LOG))
