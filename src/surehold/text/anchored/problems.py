"""What can be wrong with one operation of a line edit: each problem in words, with the lines that should be shown for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from surehold.errors import (
    AnchorAmbiguous,
    AnchorContextAmbiguous,
    AnchorLowEntropy,
    AnchorStale,
    InvalidRangeOrder,
    LineEditError,
    OverlappingOperations,
    RangeUnseen,
    SchemaInvalid,
)
from surehold.text.anchored.anchor import LinePointer
from surehold.text.anchored.lines import IndexedVersion
from surehold.text.anchored.operations import LineChange, RangeOperation, SingleLineOperation
from surehold.text.anchored.resolve import FoundLines, HomeVersion, UnclearLine
from surehold.text.escape import preview_text, quote_line
from surehold.text.snapshot import DIGEST_DIGITS, merge_ranges

PREVIEW_CHARS = 80
_CONTEXT_LINES = 3
_MAX_FRESH_LINES = 40
_TOP_LINES = 20
_MAX_UNSEEN_LINES = 400
"""So many lines are shown of a range that was not seen; a longer one takes another call."""
_MAX_CHANGED_LINES = 10
_LOST_REASONS = {
    "changed": "changed since it was shown",
    "ambiguous": "cannot be told from others like it, now that the file has changed",
    "disagree": "was moved to another place since it was shown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationProblem:
    """Why one operation cannot be done. Lines are 0-based lines of the file as it is now."""

    error: type[LineEditError]
    message: str
    """The rest of a sentence that begins with the operation's index; without a full stop."""
    index: int = 0
    """Which operation of the call it is; the call knows."""
    op: str = ""
    reason: str | None = None
    action: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    candidates: Sequence[int] = ()
    """All lines that could be meant; occurrences count them."""
    listed: Sequence[int] | None = None
    """Those that are offered, if not all."""
    fresh: Sequence[int] = ()
    """Lines that are shown as they are now, ascending."""
    low: int | None = None
    """A low line, for which neighbours are offered."""
    operation: Mapping[str, Any] | None = None
    """The operation to send instead; a field that is None gets the anchor of the first candidate."""


def unfit_value(message: str, action: str | None, facts: Mapping[str, Any], reason: str = "") -> OperationProblem:
    """Tell of a value that an operation does not take."""
    return OperationProblem(error=SchemaInvalid, message=message, reason=reason, action=action, facts=facts)


def stale_anchor(missing: UnclearLine, live: IndexedVersion) -> OperationProblem:
    """Tell of a line that is gone, with the lines that are there now."""
    pointer, hash_ = missing.pointer, missing.pointer.anchor.hash
    facts: dict[str, object] = {"hash": hash_, "field": pointer.field}
    if missing.was is None and missing.reason == "text" and (alike := live.lines_with_hash(hash_)):
        fresh = _line_window(alike[0], live)
        shown = f"; it is {_describe_line(live, alike[0])}"
    elif missing.was is None:
        at = pointer.number
        offset = pointer.anchor.offset
        fresh = range(min(_TOP_LINES, len(live))) if at is None else _line_window(at - 1, live, at - 1 + offset)
        shown = "; it was never shown in this session"
    else:
        version, line = missing.was
        facts["was"] = _line_facts(version, line)
        shown = f"; it was {_describe_line(version, line)}"
        here = version.estimate_place(line, live)
        fresh = _line_window(here, live)
        if drift := _describe_drift(version.line_text(line), live.line_text(here) if here < len(live) else ""):
            facts["drift"] = drift
            shown += f", and only its {drift} changed"
    if len(hash_) > DIGEST_DIGITS:
        shown += f"; the hash of a line has at most {DIGEST_DIGITS} digits"
    message = _stale_message(missing) + shown
    return OperationProblem(error=AnchorStale, message=message, reason=missing.reason, facts=facts, fresh=fresh)


def range_changed(missing: UnclearLine, home: HomeVersion, live: IndexedVersion) -> OperationProblem:
    """Tell which lines of a range are not as they were shown."""
    version, block, old = home.version, home.block, home.version.snapshot.lines.raw
    changed = [line for line in range(block.start, block.end) if old[line] not in live.unique_lines]
    named = f"{_describe_line(version, changed[0])} is different now" if changed else ""
    why = named or "they cannot be told from others like them, since what is around them changed"
    start, end = version.estimate_place(block.start, live), version.estimate_place(block.end - 1, live)
    return OperationProblem(
        error=AnchorStale,
        message=f"lines {block.start + 1} to {block.end} cannot be found as they were shown: {why}",
        reason=missing.reason,
        facts={
            "hash": missing.pointer.anchor.hash,
            "field": missing.pointer.field,
            "was": {"start_line": block.start + 1, "end_line": block.end},
            "changed_lines": [_line_facts(version, line) for line in changed[:_MAX_CHANGED_LINES]],
        },
        fresh=_line_window(start, live, end),
    )


def ambiguous_anchor(found: UnclearLine, live: IndexedVersion, *, is_range: bool) -> OperationProblem:
    """Tell of several lines that could be meant, each with an anchor that says which."""
    pointer, lines, hash_ = found.pointer, found.lines, found.pointer.anchor.hash
    facts: dict[str, object] = {"hash": hash_, "field": pointer.field}
    if is_range:
        facts["which"] = pointer.field
    nth, action, same = pointer.occurrence, None, is_range
    fresh = list[int]()
    if found.reason == "occurrence_out_of_range":
        facts |= {"given": nth, "available": len(lines)}
        message = f"there is no occurrence {nth} of `{hash_}`, only {len(lines)}"
    elif found.reason == "contradiction":
        message = f"occurrence {nth} of `{hash_}` is not line {pointer.number}"
    else:
        same = is_range or not live.differ_in_context(lines)
        message = f"`{hash_}` in `{pointer.field}` matches {len(lines)} lines"
    if found.reason == "not_shown":
        message += ", none of which was shown in this session, so that its number or occurrence does not say which"
        action = "Copy the anchor of the line that you mean from `fresh_rows`; if it is not there, read the file again."
        fresh = sorted({line for each in lines for line in _line_window(each, live)})[:_MAX_FRESH_LINES]
    elif found.reason == "versions_disagree":
        message = f"`{hash_}` names one line in the file as it is now and another in an earlier version"
        action = "Send the edit again with `expected_sha256`, the sha256 of the version that you mean."
    every = live.lines_with_hash(hash_)
    return OperationProblem(
        error=AnchorContextAmbiguous if same else AnchorAmbiguous,
        message=message,
        reason=found.reason,
        action=action,
        facts=facts,
        candidates=every or lines,
        fresh=fresh,
        listed=lines if found.reason == "versions_disagree" else None,
    )


def low_entropy(
    op: SingleLineOperation, pointer: LinePointer, lines: Sequence[int], live: IndexedVersion
) -> OperationProblem:
    """Tell of a bare hash that names a line such as `}`, with better lines near it."""
    line, more = lines[0], len(lines) - 1
    text = preview_text(live.line_text(line), PREVIEW_CHARS)
    every = ", and 1 more line is the same" if more == 1 else f", and {more} more lines are the same" if more else ""
    return OperationProblem(
        error=AnchorLowEntropy,
        message=f"`{pointer.anchor.hash}` names {_describe_line(live, line)}, which is too common to be named by its hash alone{every}",
        facts={"hash": pointer.anchor.hash, "line": line + 1, "content": text, "unique": not more},
        candidates=lines,
        low=line,
        operation=None if more else op.as_sent(hash="", occurrence=None, line=None) | {"hash": None},
    )


def unseen_lines(lines: Sequence[int]) -> OperationProblem:
    """Tell of lines that were never shown, and show them."""
    count = f"{len(lines)} lines that were" if len(lines) > 1 else "a line that was"
    message = f"the range covers {count} never shown in this session, from line {lines[0] + 1} on"
    facts = {"unseen": group_lines(lines), "unseen_count": len(lines)}
    return OperationProblem(error=RangeUnseen, message=message, facts=facts, fresh=lines[:_MAX_UNSEEN_LINES])


def same_line(op: RangeOperation, line: int) -> OperationProblem:
    single = op.as_sent(start_hash=None, end_hash=None, start_line=None, end_line=None)
    single |= {"op": "replace_line" if op.op == "replace_range" else "delete_line", "hash": None}
    return OperationProblem(
        error=InvalidRangeOrder,
        message=f"the range is a no-op, since start equals end: both hashes name line {line + 1}",
        reason="same_line",
        facts={"line": line + 1},
        candidates=(line,),
        operation=single,
    )


def reversed_range(op: RangeOperation, found: FoundLines) -> OperationProblem:
    """Tell of a range from bottom to top that must not be turned around."""
    start, end = (target + 1 for target in found.targets)
    why = "the file changed since it was read" if found.carried else "`strict_order` is set"
    ends = {"start_hash": op.end_hash, "end_hash": op.start_hash, "start_line": op.end_line, "end_line": op.start_line}
    return OperationProblem(
        error=InvalidRangeOrder,
        message=f"start_line ({start}) is after end_line ({end}), and {why}",
        reason="reversed",
        action="Swap the two hashes if you mean the lines between them.",
        facts={"start_line": start, "end_line": end},
        operation=op.as_sent(**ends),
    )


def overlapping_changes(one: LineChange, other: LineChange) -> OperationProblem:
    lines = [max(one.start, other.start) + 1, min(one.end, max(other.end, other.start + 1))]
    wants = "goes into the middle of" if other.is_gap else "wants the same lines as"
    message = f"it {wants} operation {one.index}, at line {lines[0]}"
    reason = "inside" if other.is_gap else "same_lines"
    facts = {"operation_indices": sorted((one.index, other.index)), "lines": lines}
    return OperationProblem(error=OverlappingOperations, message=message, reason=reason, facts=facts)


def _line_facts(version: IndexedVersion, line: int) -> dict[str, Any]:
    return {"line": line + 1, "text": preview_text(version.line_text(line), PREVIEW_CHARS)}


def _describe_line(version: IndexedVersion, line: int) -> str:
    text = version.line_text(line)
    return f"line {line + 1} {quote_line(text, PREVIEW_CHARS)}" if text.strip() else f"the blank line {line + 1}"


def _stale_message(missing: UnclearLine) -> str:
    hash_, anchor = missing.pointer.anchor.hash, missing.pointer.anchor
    match missing.reason:
        case "gone":
            return f"no line has the hash `{hash_}`"
        case "text":
            return f"the line with the hash `{hash_}` does not read {quote_line(anchor.tail or '', PREVIEW_CHARS)}"
        case "offset":
            return f"`{hash_}{anchor.offset:+d}` cannot be verified, since line {missing.pointer.number} is another one now"
        case "uncounted":
            return f"`{hash_}{anchor.offset:+d}` cannot be counted from line {missing.pointer.number}"
        case "versions":
            return f"the ends of the range, from `{hash_}` on, were never shown together"
        case lost:
            return f"the line with the hash `{hash_}` {_LOST_REASONS[lost]}"


def _line_window(start: int, live: IndexedVersion, end: int | None = None) -> Sequence[int]:
    """Return the lines around one line, or around several; of very many both ends, which the next call needs."""
    first, last = sorted(min(line, len(live) - 1) for line in (start, start if end is None else end))
    lines = range(max(0, first - _CONTEXT_LINES), min(len(live), last + _CONTEXT_LINES + 1))
    half = _MAX_FRESH_LINES // 2
    return lines if len(lines) <= _MAX_FRESH_LINES else [*lines[:half], *lines[-half:]]


def _describe_drift(was: str, now: str) -> str:
    """Name what changed if it is only blanks."""
    if was == now or not was.strip() or was.split() != now.split():
        return ""
    if was.rstrip() == now.rstrip():
        return "trailing blanks or line ending"
    return "indentation" if was.strip() == now.strip() else "blanks"


def group_lines(lines: Sequence[int]) -> list[list[int]]:
    """Return 0-based lines as 1-based, inclusive pairs."""
    return [[first, last] for first, last in merge_ranges((line + 1, line + 1) for line in lines)]
