"""Whether a session has seen enough of a file to change it. Compares content, never timestamps.

1. The current version must have been shown to the session: all lines that an edit touches, or the whole file. Lines of
   versions that were shown earlier count where they are still the same, byte for byte.
2. A file that changed since then is refused, with the difference. What a refusal shows counts as shown, so a plain retry
   works.
3. An edit proceeds without that refusal when the session itself wrote the previous version and an outside program, such
   as a formatter, changed it since: but only if the edit would have changed the very same lines before, and those lines
   were shown and are provably where they are now; the result says so. `rebase` allows this no matter who changed the file.
"""

from typing import Any, Literal

from surehold.errors import BinaryFile, NotFound, StaleFile, SureholdError
from surehold.text.excerpt import excerpt_changes, excerpt_lines
from surehold.text.plan import Edit, EditPlan
from surehold.text.relocate import LineBlock, MovedLines, relocate_lines
from surehold.text.snapshot import LineRanges, Snapshot, merge_ranges
from surehold.workspace.access.seen_lines import KnownFile, subtract_spans
from surehold.workspace.settings import ReadGateSettings

Needs = Literal["lines", "whole", "version"]

_REFUSAL_CHARS = 1_900
"""How many characters of lines or of a difference a refusal shows."""
_MAX_NAMED_RANGES = 8
_MAX_LISTED_RANGES = 50
"""How many ranges are listed for programs; a longer list would push out what the refusal shows."""
_READ_PAGE_LINES = 2_000
"""How many lines Read shows at once."""


class ReadGate:
    """What a session saw of the file that it wants to change: a proof before the plan, and a check of the plan.

    The proof looks under the lock, so it also sees what other calls of the session did in the meantime. It is asked again for
    every attempt, and keeps what it found for the check that follows.
    """

    def __init__(self, edit: Edit, *, needs: Needs, settings: ReadGateSettings) -> None:
        self._edit, self._needs, self._gate = edit, needs, settings
        self._case: KnownFile | None = None
        self._free = False
        self._cautions: tuple[str, ...] = ()

    def check(self, file: KnownFile) -> None:
        """Refuse a file that was not read, changed since, or was seen too little of."""
        self._case, self._free, self._cautions = file, False, ()
        if not file.current.exists:
            self._check_absent(file)
        elif self._gate.require_read == "off":
            self._free = True
        else:
            if not file.current.is_text:
                action = "Leave it to a program that knows its format."
                raise BinaryFile(f"`{file.path}` is a binary file.", path=file.path, action=action)
            self._check_present(file)

    def __call__(self, plan: EditPlan) -> tuple[str, ...]:
        """Refuse a plan that touches lines which were never shown."""
        case = self._case
        if case is None or self._free or self._needs != "lines":
            return self._cautions
        if self._gate.require_read == "matched" and _is_single_exact_match(plan):
            return ()
        if not case.seen:
            raise self._not_read_error(case)
        touched = _touched_lines(plan)
        unseen = subtract_spans(touched, case.spans) and subtract_spans(touched, case.known)
        if unseen:
            raise self._unseen_lines_error(case, unseen)
        return ()

    def _check_absent(self, case: KnownFile) -> None:
        if self._needs != "whole":
            raise NotFound(f"`{case.path}` does not exist.", path=case.path)
        if self._gate.require_read == "off" or not case.seen or not case.seen[0].sha256 or _removed_it(case):
            return
        raise StaleFile(
            f"`{case.path}` was deleted since this session read it.",
            path=case.path,
            reason="deleted",
            action="If it should exist again, send the same call again.",
            shown=(),
            expected_sha256=case.seen[0].sha256,
        )

    def _check_present(self, case: KnownFile) -> None:
        if case.shown is not None:
            if self._needs == "whole" and not case.is_fully_known and not self._changes_nothing(case.current):
                raise self._unseen_rest_error(case)
        elif not case.seen:
            may_match = self._needs == "lines" and self._gate.require_read == "matched"
            if not may_match and not self._sends_same_content(case):
                raise self._not_read_error(case)
        elif not self._sends_same_content(case):
            if not self._may_proceed(case):
                raise self._stale_error(case)
            self._cautions = (
                "The file was changed by another program since this session read it, but not the lines of this edit.",
            )

    def _sends_same_content(self, case: KnownFile) -> bool:
        """Tell whether the caller sends the very content that is there: then nothing can be lost."""
        self._free = self._needs == "whole" and self._changes_nothing(case.current)
        return self._free

    def _changes_nothing(self, current: Snapshot) -> bool:
        try:
            return not self._edit.plan(current).changes_bytes
        except SureholdError:
            return False

    def _may_proceed(self, case: KnownFile) -> bool:
        """Tell whether an edit of a file that changed since stays within lines that are provably the same."""
        if self._needs != "lines" or not (self._gate.on_stale == "rebase" or _wrote_it(case)):
            return False
        touched = self._lines_touched_in(case.current)
        self._free = bool(touched) and any(
            self._lines_touched_in(base) == found
            for base, spans in case.earlier_versions
            if (found := find_in_earlier_version(touched, case.current, base)) and not subtract_spans(found, spans)
        )
        return self._free and bool(case.known)

    def _lines_touched_in(self, version: Snapshot) -> LineRanges:
        """Return the lines of a version that the edit would touch; none where it cannot be made."""
        try:
            return _touched_lines(self._edit.plan(version))
        except SureholdError:
            return ()

    def _not_read_error(self, case: KnownFile) -> StaleFile:
        return StaleFile(
            f"`{case.path}` was not read in this session.",
            path=case.path,
            reason="not_read",
            action=" ".join(filter(None, ("Read it first, then send the same call again.", self._gate.if_not_read))),
        )

    def _stale_error(self, case: KnownFile) -> StaleFile:
        stale = StaleFile(
            f"`{case.path}` changed since this session read it.",
            path=case.path,
            reason="changed_since",
            action="Read it again, then make the change.",
            expected_sha256=case.seen[0].sha256,
            sha256=case.current.sha256,
        )
        if not case.earlier_versions:
            return stale
        change = excerpt_changes(case.earlier_versions[0][0], case.current, room=_REFUSAL_CHARS)
        known = merge_ranges([*case.known, *change.shown])
        unseen = subtract_spans(case.all_lines, known)
        enough = "Look at `changes_since`; if the change is still right, send it again."
        more = f"Look at `changes_since`, and {_read_call(unseen)} before you change lines there; then send it again."
        stale.action = more if change.truncated or (unseen and self._needs == "whole") else enough
        stale.shown = known
        difference = {"changes_since": change.text, "changes_since_truncated": change.truncated}
        stale.details = {**difference, **stale.details}
        return stale

    def _unseen_lines_error(self, case: KnownFile, unseen: LineRanges) -> StaleFile:
        page = excerpt_lines(case.current, unseen, room=_REFUSAL_CHARS)
        rest = subtract_spans(unseen, merge_ranges(page.shown))
        return StaleFile(
            f"The edit touches lines of `{case.path}` that were not shown in this session: {_format_ranges(unseen)}.",
            path=case.path,
            reason="partially_read",
            action=f"First {_read_call(rest)}, then send the edit again."
            if rest
            else "Look at `lines`; if they are to change, send the same edit again.",
            **_unseen_details(unseen),
            lines=page.text,
            shown=merge_ranges([*case.known, *page.shown]),
            sha256=case.current.sha256,
        )

    def _unseen_rest_error(self, case: KnownFile) -> StaleFile:
        unseen = subtract_spans(case.all_lines, case.known)
        return StaleFile(
            f"`{case.path}` would be overwritten, and lines of it were not shown in this session: {_format_ranges(unseen)}.",
            path=case.path,
            reason="partially_read",
            action=f"First {_read_call(unseen)}, then write; or change a part of the file with Edit.",
            **_unseen_details(unseen),
            sha256=case.current.sha256,
        )


def find_in_earlier_version(touched: LineRanges, current: Snapshot, base: Snapshot) -> LineRanges:
    """Return where lines were in an earlier version; none when that is not proven for all of them."""
    ranges = [LineBlock(start=first - 1, end=last) for first, last in touched]
    places = relocate_lines(current.lines.raw, base.lines.raw, ranges)
    found = [(place.start + 1, place.end) for place in places if isinstance(place, MovedLines)]
    return merge_ranges(found) if len(found) == len(places) else ()


def _wrote_it(case: KnownFile) -> bool:
    """Tell whether the newest version that the session knows is its own, and no other call changed the file since."""
    newest = case.newest_own_entry()
    after = newest.change.after if newest else None
    return after is not None and after.sha256 == case.seen[0].sha256


def _removed_it(case: KnownFile) -> bool:
    newest = case.newest_own_entry()
    gone = newest.change.transitions() if newest else ()
    return any(name == case.path and after is None for name, _, after in gone)


def _is_single_exact_match(plan: EditPlan) -> bool:
    return len(plan.applied) == 1 and plan.applied[0].tier == "exact" and plan.applied[0].occurrences == 1


def _touched_lines(plan: EditPlan) -> LineRanges:
    """Return the lines that a plan replaces, or inserts between."""
    return merge_ranges([(one.start_line, one.end_line) for edit in plan.applied for one in edit.ranges])


def _unseen_details(spans: LineRanges) -> dict[str, Any]:
    """Return the lines as details, and how many ranges they are where not all are told."""
    rows: dict[str, Any] = {"unseen_lines": _range_list(spans[:_MAX_LISTED_RANGES])}
    return {**rows, "unseen_ranges": len(spans)} if len(spans) > _MAX_LISTED_RANGES else rows


def _format_ranges(spans: LineRanges) -> str:
    shown = ", ".join(_range_list(spans[:_MAX_NAMED_RANGES]))
    return f"{shown} and more" if len(spans) > _MAX_NAMED_RANGES else shown


def _range_list(spans: LineRanges) -> list[str]:
    return [f"{first}-{last}" if last > first else str(first) for first, last in spans]


def _read_call(unseen: LineRanges) -> str:
    if not unseen:
        return "read the file again"
    first, last = unseen[0]
    if len(unseen) > _MAX_NAMED_RANGES:  # one call for many of them
        last = max([last, *(end for _, end in unseen if end < first + _READ_PAGE_LINES)])
    more = f" (unseen are {_format_ranges(unseen)})" if len(unseen) > 1 else ""
    return f"Read with offset={first}, limit={last - first + 1}{more}"
