"""Anchors as callers send them back, and which line each one means in one version of the file.

5da3f1              the beginning of a line's digest, 4 to 64 hex digits in any case
5da3f1.7            the seventh of several equal lines
118#5da3f1.7        with the line number that was printed before it
118#5da3f1.7~|text  a copied row; the text must be that of the line
119#c812f1+2        two lines below the named line: a verified offset
5da3f1@cafebabe     with the context id that an earlier refusal offered
cafebabe            that context id alone, at least 6 digits of it
BOF, EOF            the edges of the file, for inserts

An anchor is decided by the first of these that applies: the occurrence, a hash that only one line has, exactly the line
number that was sent, the only shown line with this hash. A line number never decides by being close. An explicit
context id replaces all of them.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal

from surehold.errors import SchemaInvalid
from surehold.text.anchored.lines import SHORT_HASH_DIGITS, IndexedVersion
from surehold.text.escape import preview_text, quote_line

Edge = Literal["BOF", "EOF"]

_ANCHOR_PATTERN = re.compile(
    r"""(?:(?P<line>\d{1,9})\#)? (?P<hash>[0-9a-f]{4,64}) (?:\.(?P<occurrence>\d{1,9}))?
        (?:@(?P<context>[0-9a-f]{8}))? (?P<offset>[+-]\d{1,9})? [!~]? (?:\|(?P<tail>.*))?""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_NUMBERED_HASH = re.compile(
    r"(?<![0-9a-z])(\d{1,9})\s*[#:@|→,-]\s*\#?([0-9a-f]{4,64})(\.\d{1,9})?(?![0-9a-z])", re.IGNORECASE
)
_BARE_HASH = re.compile(r"(?<![0-9a-z])(?:0x)?([0-9a-f]{4,64})(\.\d{1,9})?(?![0-9a-z])", re.IGNORECASE)
_ACCEPTED_EXAMPLES = ("5da3f1", "5da3f1.7", "118#5da3f1", "118#5da3f1.7", "a copied row with its `|text`")
_PREVIEW_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """One line, or an edge of the file, as a caller points at it."""

    hash: str
    """Hex digits in lower case; empty for an edge."""
    line: int | None = None
    occurrence: int | None = None
    context: str | None = None
    offset: int = 0
    tail: str | None = None
    """What was copied after the bar: the text of the line that is meant."""
    edge: Edge | None = None


def parse_anchor(text: str, *, field: str) -> Anchor:
    """Read any spelling of an anchor, or refuse with the one that was probably meant."""
    bare = text.strip()
    if bare.upper() in ("BOF", "EOF"):
        return Anchor(hash="", edge="BOF" if bare.upper() == "BOF" else "EOF")
    match = _ANCHOR_PATTERN.fullmatch(text.lstrip() if "|" in text else bare)
    tail = re.sub(r"\r?\n\Z", "", match["tail"]) if match and match["tail"] is not None else None
    if match is None or "\n" in (tail or "") or match["line"] == "0":
        raise _anchor_refusal(text, field)
    return Anchor(
        hash=match["hash"].lower(),
        line=int(match["line"]) if match["line"] else None,
        occurrence=int(match["occurrence"]) if match["occurrence"] else None,
        context=match["context"].lower() if match["context"] else None,
        offset=int(match["offset"] or 0),
        tail=tail,
    )


def _anchor_refusal(text: str, field: str) -> SchemaInvalid:
    meant = _guess_anchor(text)
    shown = preview_text(text, _PREVIEW_CHARS)
    hint = f"; did you mean `{meant}`?" if meant else _refusal_reason(text.strip()) + "."
    return SchemaInvalid(
        f"`{field}` is not an anchor: {quote_line(text, _PREVIEW_CHARS)}" + hint,
        reason="bad_anchor",
        action=f"Send `{meant}`." if meant else "Copy an anchor as it was printed before the `|`, such as 118#5da3f1.",
        field=field,
        given=shown,
        did_you_mean=meant,
        accepted=list(_ACCEPTED_EXAMPLES),
    )


def _refusal_reason(text: str) -> str:
    if not text:
        return ", it is empty"
    if re.fullmatch(r"\d+#?", text):
        return ", a line number needs the hash after it"
    if re.fullmatch(r"(?:\d+#)?[0-9a-fA-F]{1,3}", text):
        return ", a hash has at least 4 digits"
    return ""


def _guess_anchor(text: str) -> str | None:
    numbered = {
        f"{int(line)}#{hash_.lower()}{nth or ''}" for line, hash_, nth in _NUMBERED_HASH.findall(text) if int(line)
    }
    if numbered:
        return numbered.pop() if len(numbered) == 1 else None
    # A word such as `added` is hex as well, so it counts only when it has a digit.
    bare = {hash_.lower() + nth for hash_, nth in _BARE_HASH.findall(text) if re.search(r"\d", hash_)}
    return bare.pop() if len(bare) == 1 else None


ResolutionLevel = Literal["edge", "occurrence", "hash", "longer_hash", "line", "sighting", "context"]
"""What told which line is meant, from the surest on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePointer:
    """Everything that an operation says about one line."""

    field: str
    anchor: Anchor
    occurrence: int | None = None
    number: int | None = None
    """1-based; copied with the hash, or given beside it."""
    beside: int | None = None
    """Another number, which was given beside the copied one."""

    @property
    def is_bare(self) -> bool:
        return self.number is None and self.occurrence is None and self.anchor.context is None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnchorMeaning:
    """What a pointer means in one version: 0-based."""

    line: int
    """The line that has the hash."""
    target: int
    """The line that is meant, which an offset may put elsewhere."""
    level: ResolutionLevel
    exact: bool
    """All that was sent fits; else the hash fits and the copied number does not."""
    placed: bool
    """The position was said too, not only the hash."""


Doubt = Literal["unclear", "vague"]


def copied_text(pointer: LinePointer) -> str | None:
    """Return the copied text of the line that has the hash; after an offset it is that of another line."""
    return None if pointer.anchor.offset else pointer.anchor.tail


def named_lines(version: IndexedVersion, pointer: LinePointer) -> list[int]:
    """Return the 0-based lines of a version that have the hash, and the copied text."""
    return version.lines_with_hash(pointer.anchor.hash, copied_text(pointer))


def read_pointer(version: IndexedVersion, pointer: LinePointer, *, shown_only: bool) -> AnchorMeaning | Doubt | None:
    """Return what a pointer means in a version; None if it does not fit, unclear if it fits several shown lines.

    Vague if it would be unclear, were it not for a number that fits none of them: it may fit another version.
    """
    found = _pick_line(version, pointer, shown_only=shown_only)
    if not isinstance(found, AnchorMeaning):
        return found
    offset, tail = pointer.anchor.offset, pointer.anchor.tail
    if not offset:
        return found
    target = found.line + offset
    fits = 0 <= target < len(version) and (tail is None or version.line_says(target, tail))
    # An offset counts lines, so a number that does not fit means that it was counted elsewhere.
    return replace(found, target=target) if fits and found.exact else None


def _pick_line(version: IndexedVersion, pointer: LinePointer, *, shown_only: bool) -> AnchorMeaning | Doubt | None:
    hash_, tail = pointer.anchor.hash, copied_text(pointer)
    lines = named_lines(version, pointer)
    if pointer.anchor.context is not None:
        return _pick_by_context(version, pointer, lines)
    displayed = version.shown_lines_with_hash(hash_, tail) if shown_only else lines
    if not lines or not displayed:
        return None
    if pointer.occurrence is not None:
        found = _pick_by_occurrence(version, pointer, lines)
        if found is None or not shown_only or version.shows_anchor(found.line):
            return found
        # A caller who counted may mean a line that was not shown among others that were.
        counted = pointer.number is None and any(version.shows_anchor(line) for line in displayed)
        return found if counted else None
    at = None if pointer.number is None else pointer.number - 1
    if at is not None and version.line_has_hash(at, hash_, tail) and (not shown_only or version.shows_anchor(at)):
        if pointer.beside not in (None, at + 1) and version.line_has_hash(pointer.beside - 1, hash_, tail):
            return "unclear"  # each number names another of the equal lines
        return _make_meaning(at, _hash_level(version, hash_) if len(lines) == 1 else "line", placed=True)
    if len(lines) == 1:
        return _make_meaning(lines[0], _hash_level(version, hash_), exact=at is None)
    if pointer.anchor.line is None and shown_only and len(displayed) == 1:
        return _make_meaning(displayed[0], "sighting", exact=at is None)
    if not shown_only:
        return None
    return "unclear" if pointer.is_bare else "vague"


def _pick_by_context(version: IndexedVersion, pointer: LinePointer, lines: list[int]) -> AnchorMeaning | None:
    same = [line for line in lines if version.context_id(line) == pointer.anchor.context]
    nth = pointer.occurrence
    if nth is not None:
        same = [line for line in same if 1 <= nth <= len(lines) and lines[nth - 1] == line]
    if pointer.number is not None and len(same) > 1:
        same = [line for line in same if line == pointer.number - 1]
    return _make_meaning(same[0], "context", placed=True) if len(same) == 1 else None


def _pick_by_occurrence(version: IndexedVersion, pointer: LinePointer, lines: list[int]) -> AnchorMeaning | None:
    nth = pointer.occurrence or 0
    if not 1 <= nth <= len(lines):
        return None
    line, number = lines[nth - 1], pointer.number
    if number is not None and number - 1 != line:
        # Both were copied together, or the number names another of these lines: they contradict each other.
        copied = pointer.anchor.line is not None and pointer.anchor.occurrence is not None
        if copied or version.line_has_hash(number - 1, pointer.anchor.hash, copied_text(pointer)):
            return None
    return _make_meaning(line, "occurrence", placed=True)


def _hash_level(version: IndexedVersion, hash_: str) -> ResolutionLevel:
    is_longer = len(hash_) > SHORT_HASH_DIGITS and len(version.lines_with_hash(hash_[:SHORT_HASH_DIGITS])) > 1
    return "longer_hash" if is_longer else "hash"


def _make_meaning(line: int, level: ResolutionLevel, *, exact: bool = True, placed: bool = False) -> AnchorMeaning:
    return AnchorMeaning(line=line, target=line, level=level, exact=exact, placed=placed)
