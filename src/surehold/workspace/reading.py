"""Whether a session has seen enough of a file to change it. Truth are the bytes; times never decide.

1. The version that is there must have been shown to the session: all lines that an edit touches, or the whole file. Lines
   of versions that were shown earlier count where they are still the same, byte for byte.
2. A file that changed since is refused, with the difference. What a refusal shows counts as shown, so a plain retry works.
3. An edit goes on without that refusal when the session itself wrote the version before and an outside program, such as a
   formatter, changed it since: but only where it would have changed the very same lines before, which were shown and are
   provably where they are now. `rebase` allows this whoever changed the file.
"""

from collections.abc import Sequence
from typing import Any, Literal

from surehold.errors import BinaryFile, NotFound, StaleFile, SureholdError
from surehold.stores.base import Query, Sighting, Store
from surehold.text.excerpt import excerpt
from surehold.text.plan import Edit, EditPlan
from surehold.text.since import since
from surehold.text.snapshot import ABSENT, Snapshot
from surehold.workspace.gate import Gate
from surehold.workspace.known import Known, relocated
from surehold.workspace.sightings import LineSpans, after_write, lacking, merged

Needs = Literal["lines", "whole", "version"]

_ROOM = 1_900
"""How many characters of lines or of a difference a refusal shows."""
_MOST_RANGES = 8
_LISTED_RANGES = 50
"""So many are told to programs; a longer list would push out what the refusal shows."""
_PAGE = 2_000
"""How many lines Read shows at once."""


class Reading:
    """What a session saw of the file that it wants to change: a proof before the plan, and a check of the plan.

    The proof looks under the lock, so it also sees what other calls of the session did meanwhile. It is asked again for
    every attempt, and keeps what it found for the check that follows.
    """

    def __init__(self, store: Store, session: str, edit: Edit, *, needs: Needs, gate: Gate | None = None) -> None:
        self.shows: Sighting | None = None
        """What the refusal that was raised shows."""
        self._store, self._session = store, session
        self._edit, self._needs, self._gate = edit, needs, gate or Gate()
        self._case: Known | None = None
        self._free = False

    @property
    def current(self) -> Snapshot:
        """The file as it was when it was looked at."""
        return self._case.current if self._case else ABSENT

    @property
    def was_read(self) -> bool:
        """Whether the session had seen anything of the file."""
        return self._case is not None and bool(self._case.seen)

    def check(self, path: str, current: Snapshot, seen: Sequence[Sighting]) -> None:
        """Refuse a file that was not read, changed since, or was seen too little of."""
        self.shows, self._free = None, False
        self._case = case = Known(self._store, path, current, tuple(seen))
        if not current.exists:
            self._check_absent(case)
        elif self._gate.require_read == "off":
            self._free = True
        else:
            _refuse_binary(path, current)
            self._check_present(case)

    def __call__(self, plan: EditPlan) -> tuple[str, ...]:
        """Refuse a plan that touches lines which were never shown."""
        case = self._case
        if case is None or self._free or self._needs != "lines" or not case.current.exists:
            return ()
        if self._gate.require_read == "matched" and _is_certain(plan):
            return ()
        if not case.seen:
            raise _not_read(case.path)
        touched = _touched(plan)
        unseen = lacking(touched, case.spans) and lacking(touched, case.known)
        if unseen:
            raise self._unseen_lines(case, unseen)
        return ()

    def remember(self, plan: EditPlan) -> Sighting | None:
        """Return what the session has seen after its change, when earlier versions had a part in that."""
        case = self._case
        if case is None or not case.carries or not plan.changes_bytes or plan.before.sha256 != case.current.sha256:
            return None
        before = case.sighting(self._session, case.known)
        return after_write(plan, session=self._session, path=case.path, seen=(before,))

    def _check_absent(self, case: Known) -> None:
        if self._needs != "whole":
            raise NotFound(f"`{case.path}` does not exist.", path=case.path)
        if self._gate.require_read == "off" or not case.seen or not case.seen[0].sha256 or self._removed_it(case.path):
            return
        self.shows = case.sighting(self._session, ())
        raise StaleFile(
            f"`{case.path}` was deleted since this session read it.",
            path=case.path,
            reason="deleted",
            action="If it should exist again, send the same call again.",
            expected_sha256=case.seen[0].sha256,
        )

    def _check_present(self, case: Known) -> None:
        if case.known_version:
            if self._needs == "whole" and not case.whole and not self._changes_nothing(case.current):
                raise self._unseen_rest(case)
        elif not case.seen:
            if not (self._needs == "lines" and self._gate.require_read == "matched") and not self._is_known(case):
                raise _not_read(case.path)
        elif not self._is_known(case) and not self._goes_on(case):
            raise self._stale(case)

    def _is_known(self, case: Known) -> bool:
        """Tell whether the caller sends the very content that is there: then nothing can be lost."""
        self._free = self._needs == "whole" and self._changes_nothing(case.current)
        return self._free

    def _changes_nothing(self, current: Snapshot) -> bool:
        try:
            return not self._edit.plan(current).changes_bytes
        except SureholdError:
            return False

    def _goes_on(self, case: Known) -> bool:
        """Tell whether an edit of a file that changed since stays within lines that are provably the same."""
        if self._needs != "lines" or not (self._gate.on_stale == "rebase" or self._wrote_it(case)):
            return False
        touched = self._touches(case.current)
        self._free = bool(touched) and any(
            self._touches(base) == found
            for base, spans in case.kept
            if (found := relocated(touched, case.current, base)) and not lacking(found, spans)
        )
        return self._free and bool(case.known)

    def _touches(self, version: Snapshot) -> LineSpans:
        """Return the lines of a version that the edit would touch; none where it cannot be made."""
        try:
            return _touched(self._edit.plan(version))
        except SureholdError:
            return ()

    def _wrote_it(self, case: Known) -> bool:
        """Tell whether the newest version that the session knows is its own, and no other call changed the file since."""
        newest = self._store.entries(Query(path=case.path, ok_only=True, limit=1))
        if not newest or newest[0].call.session != self._session:
            return False
        after = newest[0].change.after
        return after is not None and after.sha256 == case.seen[0].sha256

    def _removed_it(self, path: str) -> bool:
        newest = self._store.entries(Query(path=path, ok_only=True, limit=1))
        if not newest or newest[0].call.session != self._session:
            return False
        return any(name == path and after is None for name, _, after in newest[0].change.transitions())

    def _stale(self, case: Known) -> StaleFile:
        facts = {"expected_sha256": case.seen[0].sha256, "sha256": case.current.sha256}
        base = next(iter(case.kept), None)
        if base is None:
            return StaleFile(
                f"`{case.path}` changed since this session read it.",
                path=case.path,
                reason="changed_since",
                action="Read it again, then make the change.",
                **facts,
            )
        change = since(base[0], case.current, room=_ROOM)
        known = merged([*case.known, *change.shown])
        self.shows = case.sighting(self._session, known)
        unseen = lacking(case.everything, known)
        enough = "Look at `changes_since`; if the change is still right, send it again."
        more = f"Look at `changes_since`, and {_read_call(unseen)} before you change lines there; then send it again."
        return StaleFile(
            f"`{case.path}` changed since this session read it.",
            path=case.path,
            reason="changed_since",
            action=more if change.truncated or (unseen and self._needs == "whole") else enough,
            changes_since=change.text,
            changes_since_truncated=change.truncated,
            **facts,
        )

    def _unseen_lines(self, case: Known, unseen: LineSpans) -> StaleFile:
        page = excerpt(case.current, unseen, room=_ROOM)
        self.shows = case.sighting(self._session, merged([*case.known, *page.shown]))
        rest = lacking(unseen, merged(page.shown))
        return StaleFile(
            f"The edit touches lines of `{case.path}` that were not shown in this session: {_ranges(unseen)}.",
            path=case.path,
            reason="partially_read",
            action=f"First {_read_call(rest)}, then send the edit again."
            if rest
            else "Look at `lines`; if they are to change, send the same edit again.",
            **_unseen(unseen),
            lines=page.text,
            sha256=case.current.sha256,
        )

    def _unseen_rest(self, case: Known) -> StaleFile:
        unseen = lacking(case.everything, case.known)
        return StaleFile(
            f"`{case.path}` would be overwritten, and lines of it were not shown in this session: {_ranges(unseen)}.",
            path=case.path,
            reason="partially_read",
            action=f"First {_read_call(unseen)}, then write; or change a part of the file with Edit.",
            **_unseen(unseen),
            sha256=case.current.sha256,
        )


def _refuse_binary(path: str, current: Snapshot) -> None:
    if not current.is_text:
        raise BinaryFile(
            f"`{path}` is a binary file.", path=path, action="Leave it to a program that knows its format."
        )


def _is_certain(plan: EditPlan) -> bool:
    return len(plan.applied) == 1 and plan.applied[0].tier == "exact" and plan.applied[0].occurrences == 1


def _touched(plan: EditPlan) -> LineSpans:
    """Return the lines that a plan replaces, or stands between."""
    return merged([(one.start_line, one.end_line) for edit in plan.applied for one in edit.ranges])


def _not_read(path: str) -> StaleFile:
    return StaleFile(
        f"`{path}` was not read in this session.",
        path=path,
        reason="not_read",
        action="Read it first, then send the same call again.",
    )


def _unseen(spans: LineSpans) -> dict[str, Any]:
    """Return the lines as details, and how many ranges they are where not all are told."""
    rows: dict[str, Any] = {"unseen_lines": _listed(spans[:_LISTED_RANGES])}
    return {**rows, "unseen_ranges": len(spans)} if len(spans) > _LISTED_RANGES else rows


def _ranges(spans: LineSpans) -> str:
    shown = ", ".join(_listed(spans[:_MOST_RANGES]))
    return f"{shown} and more" if len(spans) > _MOST_RANGES else shown


def _listed(spans: LineSpans) -> list[str]:
    return [f"{first}-{last}" if last > first else str(first) for first, last in spans]


def _read_call(unseen: LineSpans) -> str:
    if not unseen:
        return "read the file again"
    first, last = unseen[0]
    if len(unseen) > _MOST_RANGES:  # one call for many of them
        last = max([last, *(end for _, end in unseen if end < first + _PAGE)])
    more = f" (unseen are {_ranges(unseen)})" if len(unseen) > 1 else ""
    return f"Read with offset={first}, limit={last - first + 1}{more}"
