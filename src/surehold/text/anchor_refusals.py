"""The words for each kind of problem that a line edit can meet."""

from collections.abc import Sequence

from surehold.errors import (
    AnchorAmbiguous,
    AnchorContextAmbiguous,
    AnchorLowEntropy,
    AnchorStale,
    InvalidRangeOrder,
    OverlappingOperations,
    RangeUnseen,
    SchemaInvalid,
)
from surehold.text.anchor_index import IndexedVersion
from surehold.text.anchor_reading import Pointer
from surehold.text.anchor_trouble import Problem, preview, spans_of_lines
from surehold.text.hashing import DIGEST_DIGITS
from surehold.text.line_operations import OnLine, OnRange, Operation
from surehold.text.line_regions import LineChange
from surehold.text.resolve import Ambiguous, Found, Home, Missing

_AROUND = 3
_MOST_FRESH = 40
_FROM_THE_TOP = 20
_LANDMARKS = 40
_MOST_UNSEEN = 400
"""So many lines are shown of a range that was not seen; a longer one takes another call."""
_CHANGED_LISTED = 10
_LOST = {
    "changed": "changed since it was shown",
    "ambiguous": "cannot be told from others like it, now that the file has changed",
    "disagree": "was moved to another place since it was shown",
}


def bad_field(index: int, op: Operation, error: SchemaInvalid) -> Problem:
    """Tell of a field that cannot be read."""
    message = error.message.rstrip(".?")
    return Problem(
        error=SchemaInvalid,
        index=index,
        op=op.op,
        message=message,
        reason=error.reason,
        action=error.action,
        facts=error.details,
    )


def unfit(index: int, op: Operation, message: str, action: str, **facts: object) -> Problem:
    """Tell of a value that this operation does not take."""
    return Problem(error=SchemaInvalid, index=index, op=op.op, message=message, action=action, facts=facts)


def stale(index: int, op: Operation, missing: Missing, live: IndexedVersion) -> Problem:
    """Tell of a line that is gone, with the lines that are there now."""
    pointer, hash_ = missing.pointer, missing.pointer.anchor.hash
    facts: dict[str, object] = {"hash": hash_, "field": pointer.field}
    if missing.was is None:
        fresh = _around(pointer, live)
        shown = "; it was never shown in this session"
    else:
        version, line = missing.was
        facts["was"] = {"line": line + 1, "text": preview(version.text(line))}
        shown = f"; it was {_named(version, line)}"
        here = _place(version, line, live)
        fresh = _window(here, live)
        if drift := _drift(version.text(line), live.text(here) if here < len(live) else ""):
            facts["drift"] = drift
            shown += f", and only its {drift} changed"
    if len(hash_) > DIGEST_DIGITS:
        shown += f"; the hash of a line has at most {DIGEST_DIGITS} digits"
    return Problem(
        error=AnchorStale,
        index=index,
        op=op.op,
        message=_stale_message(missing) + shown,
        reason=missing.reason,
        facts=facts,
        fresh=fresh,
    )


def range_changed(index: int, op: OnRange, missing: Missing, home: Home, live: IndexedVersion) -> Problem:
    """Tell which lines of a range are not as they were shown."""
    version, block = home.version, home.block
    old = version.snapshot.lines.raw
    changed = [line for line in range(block.start, block.end) if old[line] not in live.only_places]
    named = f"{_named(version, changed[0])} is different now" if changed else ""
    why = named or "they cannot be told from others like them, since what stands around them changed"
    start, end = _place(version, block.start, live), _place(version, block.end - 1, live)
    return Problem(
        error=AnchorStale,
        index=index,
        op=op.op,
        message=f"lines {block.start + 1} to {block.end} cannot be found as they were shown: {why}",
        reason=missing.reason,
        facts={
            "hash": missing.pointer.anchor.hash,
            "field": missing.pointer.field,
            "was": {"start_line": block.start + 1, "end_line": block.end},
            "changed_lines": [
                {"line": line + 1, "text": preview(version.text(line))} for line in changed[:_CHANGED_LISTED]
            ],
        },
        fresh=_both_ends(_window(start, live, end)),
    )


def _both_ends(lines: range) -> Sequence[int]:
    """Return lines, of very many only the first and the last: the next call needs both ends."""
    if len(lines) <= _MOST_FRESH:
        return lines
    return [*lines[: _MOST_FRESH // 2], *lines[-_MOST_FRESH // 2 :]]


def ambiguous(index: int, op: Operation, found: Ambiguous, live: IndexedVersion) -> Problem:
    """Tell of several lines that could be meant, each with an anchor that says which."""
    pointer, lines = found.pointer, found.lines
    is_range = isinstance(op, OnRange)
    same = is_range or not live.told_apart_by_context(lines)
    facts: dict[str, object] = {"hash": pointer.anchor.hash, "field": pointer.field}
    if is_range:
        facts["which"] = pointer.field
    nth, action = pointer.occurrence, None
    error = AnchorContextAmbiguous if same else AnchorAmbiguous
    if found.reason == "occurrence_out_of_range":
        error = AnchorContextAmbiguous if is_range else AnchorAmbiguous
        facts |= {"given": nth, "available": len(lines)}
        message = f"there is no occurrence {nth} of `{pointer.anchor.hash}`, only {len(lines)}"
    elif found.reason == "contradiction":
        error = AnchorContextAmbiguous if is_range else AnchorAmbiguous
        message = f"occurrence {nth} of `{pointer.anchor.hash}` is not line {pointer.number}"
    elif found.reason == "versions_disagree":
        message = f"`{pointer.anchor.hash}` names one line in the file as it is now and another in an earlier version"
        action = "Send the edit again with `expected_sha256`, the sha256 of the version that you mean."
    else:
        message = f"`{pointer.anchor.hash}` in `{pointer.field}` matches {len(lines)} lines"
    every = live.candidates(pointer.anchor.hash)
    return Problem(
        error=error,
        index=index,
        op=op.op,
        message=message,
        reason=found.reason,
        action=action,
        facts=facts,
        candidates=every or lines,
        listed=lines if found.reason == "versions_disagree" else None,
    )


def low_entropy(index: int, op: OnLine, pointer: Pointer, lines: Sequence[int], live: IndexedVersion) -> Problem:
    """Tell of a bare hash that names a line such as `}`, with better lines near it."""
    line = lines[0]
    text = live.text(line)
    more = len(lines) - 1
    every = (
        "" if not more else ", and 1 more line is the same" if more == 1 else f", and {more} more lines are the same"
    )
    return Problem(
        error=AnchorLowEntropy,
        index=index,
        op=op.op,
        message=f"`{pointer.anchor.hash}` names {_named(live, line)}, which is too common to be named by its hash alone{every}",
        facts={
            "hash": pointer.anchor.hash,
            "line": line + 1,
            "content": preview(text),
            "unique": len(lines) == 1,
        },
        candidates=lines,
        low=line,
        operation=op.as_sent(hash="", occurrence=None, line=None) | {"hash": None} if len(lines) == 1 else None,
    )


def unseen(index: int, op: OnRange, lines: Sequence[int]) -> Problem:
    """Tell of lines that were never shown, and show them."""
    count = f"{len(lines)} lines that were" if len(lines) > 1 else "a line that was"
    return Problem(
        error=RangeUnseen,
        index=index,
        op=op.op,
        message=f"the range covers {count} never shown in this session, from line {lines[0] + 1} on",
        facts={"unseen": spans_of_lines(lines), "unseen_count": len(lines)},
        fresh=lines[:_MOST_UNSEEN],
    )


def same_line(index: int, op: OnRange, line: int) -> Problem:
    """Tell of a range whose ends are one line."""
    single = op.as_sent(start_hash=None, end_hash=None, start_line=None, end_line=None)
    single |= {"op": "replace_line" if op.op == "replace_range" else "delete_line", "hash": None}
    return Problem(
        error=InvalidRangeOrder,
        index=index,
        op=op.op,
        message=f"the range is a no-op, since start equals end: both hashes name line {line + 1}",
        reason="same_line",
        facts={"line": line + 1},
        candidates=(line,),
        operation=single,
    )


def reversed_range(index: int, op: OnRange, found: Found) -> Problem:
    """Tell of a range from bottom to top that must not be turned around."""
    start, end = (target + 1 for target in found.targets)
    why = "the file changed since it was read" if found.carried else "`strict_order` is set"
    return Problem(
        error=InvalidRangeOrder,
        index=index,
        op=op.op,
        message=f"start_line ({start}) is after end_line ({end}), and {why}",
        reason="reversed",
        action="Swap the two hashes if you mean the lines between them.",
        facts={"start_line": start, "end_line": end},
        operation=op.as_sent(
            start_hash=op.end_hash, end_hash=op.start_hash, start_line=op.end_line, end_line=op.start_line
        ),
    )


def overlap(one: LineChange, other: LineChange, op: Operation) -> Problem:
    """Tell of two operations that want the same lines."""
    pair = sorted((one.index, other.index))
    inside = other.is_gap
    lines = (max(one.start, other.start) + 1, min(one.end, max(other.end, other.start + 1)))
    wants = "goes into the middle of" if inside else "wants the same lines as"
    return Problem(
        error=OverlappingOperations,
        index=other.index,
        op=op.op,
        message=f"it {wants} operation {one.index}, at line {lines[0]}",
        reason="inside" if inside else "same_lines",
        facts={"operation_indices": pair, "lines": list(lines)},
    )


def _named(version: IndexedVersion, line: int) -> str:
    text = version.text(line)
    return f"line {line + 1} `{preview(text)}`" if text.strip() else f"the blank line {line + 1}"


def _stale_message(missing: Missing) -> str:
    hash_, anchor = missing.pointer.anchor.hash, missing.pointer.anchor
    match missing.reason:
        case "gone":
            return f"no line has the hash `{hash_}`"
        case "text":
            return f"the line with the hash `{hash_}` does not read `{preview(anchor.tail or '')}`"
        case "offset":
            return f"`{hash_}{anchor.offset:+d}` cannot be verified, since line {missing.pointer.number} is another one now"
        case "versions":
            return f"the ends of the range, from `{hash_}` on, were never shown together"
        case lost:
            return f"the line with the hash `{hash_}` {_LOST[lost]}"


def _around(pointer: Pointer, live: IndexedVersion) -> range:
    if pointer.number is None:
        return range(min(_FROM_THE_TOP, len(live)))
    return _window(pointer.number - 1, live)


def _window(start: int, live: IndexedVersion, end: int | None = None) -> range:
    """Return the lines around one line, or around several."""
    first, last = sorted((start, start if end is None else end))
    first, last = min(first, len(live) - 1), min(last, len(live) - 1)
    return range(max(0, first - _AROUND), min(len(live), last + _AROUND + 1))


def _drift(was: str, now: str) -> str:
    """Name what changed if it is only blanks."""
    if was == now or not was.strip() or was.split() != now.split():
        return ""
    if was.rstrip() == now.rstrip():
        return "trailing blanks or line ending"
    return "indentation" if was.strip() == now.strip() else "blanks"


def _place(version: IndexedVersion, line: int, live: IndexedVersion) -> int:
    """Return where a line of an earlier version would be now, by the nearest line that is still there once."""
    old, places = version.snapshot.lines.raw, live.only_places
    for step in range(_LANDMARKS):
        for number in (line - step, line + step):
            here = places.get(old[number], -1) if 0 <= number < len(old) else -1
            if here >= 0:
                return max(0, here + line - number)
    return line
