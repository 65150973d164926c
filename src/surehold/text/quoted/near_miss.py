"""Why a quoted text is not in a file, and what is there instead. Nothing is ever applied by similarity.

The first cause that applies is named: line numbers were copied, the file has no final line break, line breaks are
written as escapes, the edit was already made, only blanks differ, characters only look alike, other lines are similar.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from surehold.errors import NotEncodable
from surehold.text.encoding import NAME_THE_ENCODING, Encoding
from surehold.text.escape import escape_text, preview_text
from surehold.text.quoted.matching import Haystack, straighten_quotes
from surehold.text.quoted.nearest import (
    SimilarLines,
    compared_line_count,
    find_look_alike,
    find_nearest,
    normalize_look,
)
from surehold.text.snapshot import LineRanges, Snapshot, merge_ranges

_PREVIEW_CHARS = 80
_MIN_TELLING_CHARS = 4
"""A shorter text may occur by chance."""
_MAX_CODE_POINTS = 8
_COPY = "Copy the text exactly as shown in `closest`."
_EDGE_BLANKS = re.compile(r"^[ \t]+|[ \t]+$")
_COMPARED_CHARS = 8_000
_LINE_NUMBER_PREFIX = re.compile(r"^[ \t]*\d+(?:#[0-9a-f]{4,}(?:\.\d+)?[!~]?\||\t|→|\|| ?: ?)")


def strip_line_numbers(old: str) -> str | None:
    """Return a quotation without the line numbers that a reader shows in front of each line; None when it has none."""
    rows = old.split("\n")
    filled = [row for row in rows if row]
    if not filled or not all(_LINE_NUMBER_PREFIX.match(row) for row in filled):
        return None
    return "\n".join(_LINE_NUMBER_PREFIX.sub("", row) for row in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """Why a text is not there, and what is there instead."""

    reason: str
    why: str
    """Completes the sentence `old_string is not in the file`."""
    action: str
    closest: tuple[dict[str, Any], ...] = ()
    """The lines that are most like it."""
    shown: LineRanges = ()
    """Those of them that are shown whole."""
    first_difference: dict[str, object] = field(default_factory=dict[str, object])


def explain_miss(haystack: Haystack, old: str, new: str) -> NearMiss:
    bare = strip_line_numbers(old)
    compared = _cut_for_comparison((bare if _count_variant(haystack, bare) else None) or _without_blank_start(old))
    near = _find_similar(haystack.snapshot, compared)
    return replace(
        _find_cause(haystack, old, new, near),
        closest=tuple(place.as_dict() for place in near),
        shown=merge_ranges(place.span for place in near if place.span[0] <= place.span[1]),
        first_difference=_first_difference(near[0], _without_blank_start(old)) if near else {},
    )


def _without_blank_start(text: str) -> str:
    """Return a quotation without the blank lines that it begins with."""
    return text[text.rfind("\n", 0, len(text) - len(text.lstrip())) + 1 :]


def _cut_for_comparison(text: str) -> str:
    """Return as many whole lines as are worth being compared with others."""
    if len(text) <= _COMPARED_CHARS:
        return text
    return text[:_COMPARED_CHARS].rpartition("\n")[0] or text[:_COMPARED_CHARS]


def _count_variant(haystack: Haystack, text: str | None) -> int:
    try:
        return haystack.find(text).count if text else 0
    except NotEncodable:
        return 0


def _find_cause(haystack: Haystack, old: str, new: str, near: tuple[SimilarLines, ...]) -> NearMiss:
    if _count_variant(haystack, strip_line_numbers(old)):
        why, action = "its line numbers are not part of the file", "Leave the line numbers and the arrow out."
        return NearMiss(reason="line_numbers_copied", why=why, action=action)
    if cause := _line_break_cause(haystack.snapshot, old) or _escape_cause(haystack, old):
        return cause
    if len(new.strip()) >= _MIN_TELLING_CHARS and _count_variant(haystack, new) == 1:
        why, action = "the new text is already there", "Leave this edit out if it was already made."
        return NearMiss(reason="already_applied", why=why, action=action)
    encoding = haystack.snapshot.encoding
    if alien := _unencodable_characters(encoding, old):
        why = f"its encoding ({encoding.name}) cannot hold {alien}"
        return NearMiss(reason="not_encodable", why=why, action=NAME_THE_ENCODING if encoding.is_raw else _COPY)
    return _similarity_cause(near, _without_blank_start(old), haystack.snapshot)


def _line_break_cause(snapshot: Snapshot, old: str) -> NearMiss | None:
    """Notice a line break that is asked for where the file begins or ends without one."""
    bare = re.sub(r"\r\n|\r", "\n", old)
    words = bare.strip("\n")
    if not words or bare == words:
        return None
    encoding, data = snapshot.encoding, snapshot.data
    text = re.sub(r"\r\n|\r", "\n", encoding.decode(data[len(encoding.bom) :][-4 * len(bare) - 8 :]))
    if bare[-1] == "\n" and text.endswith(words):
        why, action = "the file's last line has no line break", "Leave the line break at the end out."
        return NearMiss(reason="line_breaks", why=why, action=action)
    if text.endswith(f"{words}\n"):
        why, action = "the file has fewer blank lines there", "Leave the blank lines out."
        return NearMiss(reason="line_breaks", why=why, action=action)
    return None


def _escape_cause(haystack: Haystack, old: str) -> NearMiss | None:
    spelled = old.replace("\\r\\n", "\n").replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    if spelled != old and _count_variant(haystack, spelled):
        why, action = "it spells line breaks, tabs or quotes as escapes", "Send real line breaks, tabs and quotes."
        return NearMiss(reason="escaped", why=why, action=action)
    escaped = old.replace("\n", "\\n").replace("\t", "\\t")
    if escaped != old and _count_variant(haystack, escaped):
        why = r"the file contains `\n` or `\t` literally, where it has a real newline or tab"
        return NearMiss(reason="unescaped", why=why, action="Send the backslash and the letter.")
    return None


def _unencodable_characters(encoding: Encoding, old: str) -> str:
    try:
        encoding.encode(straighten_quotes(old))
    except NotEncodable as error:
        return ", ".join(error.details["characters"][:_MAX_CODE_POINTS])
    return ""


def _similarity_cause(near: tuple[SimilarLines, ...], old: str, snapshot: Snapshot) -> NearMiss:
    if not near:
        lines = compared_line_count(snapshot)
        among = f"among its first {lines:,} lines" if snapshot.line_count > lines else "there"
        action = "Read the file again and quote what it contains."
        return NearMiss(reason="no_match", why=f"nothing like it is {among}", action=action)
    best, line = near[0], near[0].line
    rows, quoted = best.text.split("\n"), old.split("\n")
    same_words = all(one.strip(" \t\r") == other.strip(" \t\r") for one, other in zip(rows, quoted, strict=False))
    if not best.differing and same_words and rows != quoted[: len(rows)]:  # a long text is compared only in part
        why = f"line {line} differs in blanks only{_describe_tabs(rows, quoted)}"
        return NearMiss(reason="blanks", why=why, action=_COPY)
    if signs := describe_look_alikes(rows, quoted):
        return NearMiss(reason="look_alikes", why=f"line {line} only looks the same ({signs})", action=_COPY)
    return NearMiss(reason="no_match", why=f"the closest lines begin at line {line}", action=_COPY)


def _describe_tabs(rows: list[str], quoted: list[str]) -> str:
    for one, other in zip(rows, quoted, strict=False):
        file_edge, sent_edge = one[: len(one) - len(one.lstrip())], other[: len(other) - len(other.lstrip())]
        if file_edge != sent_edge and ("\t" in file_edge) != ("\t" in sent_edge):
            has, sent = ("tabs", "spaces") if "\t" in file_edge else ("spaces", "tabs")
            return f": the file has {has} where you sent {sent}"
    return ""


def describe_look_alikes(rows: Sequence[str], quoted: Sequence[str]) -> str:
    """Name the code points of the file's lines that differ from what they look like; nothing when words differ."""
    pairs = list(zip(rows, quoted, strict=False))
    if not all(normalize_look(other) in normalize_look(one) for one, other in pairs):
        return ""
    strange = dict.fromkeys(
        sign for one, other in pairs for sign in _characters_only_in(one, other) if _may_be_meant(sign, other)
    )
    sent = dict.fromkeys(sign for one, other in pairs for sign in _characters_only_in(other, one))
    parts = [f"the file has {_name_code_points(strange)}"] if strange else []
    return " where ".join([*parts, *([f"you sent {_name_code_points(sent)}"] if sent else [])])


def _characters_only_in(one: str, other: str) -> Iterator[str]:
    known = set(other)
    return (sign for sign in one if sign not in known and (not sign.isascii() or unicodedata.combining(sign)))


def _may_be_meant(sign: str, other: str) -> bool:
    """Tell whether a character of the file may be what the other line spells differently."""
    apart = unicodedata.normalize("NFD", sign)
    return _is_strange(sign) or (apart != sign and apart in other)


def _is_strange(sign: str) -> bool:
    """Tell whether a character looks like others, or like nothing."""
    return normalize_look(f"x{sign}x") != f"x{sign}x" or bool(unicodedata.combining(sign))


def _name_code_points(signs: dict[str, None]) -> str:
    return ", ".join(f"U+{ord(sign):04X}" for sign in list(signs)[:_MAX_CODE_POINTS])


def _find_similar(snapshot: Snapshot, old: str) -> tuple[SimilarLines, ...]:
    near = find_nearest(snapshot, old)
    if near and not near[0].differing:
        return near
    alike = find_look_alike(snapshot, old)
    return (alike,) if alike else near


def _first_difference(near: SimilarLines, old: str) -> dict[str, object]:
    """Show the first line that differs, the file's and the caller's, with their blanks visible."""
    for index, (one, other) in enumerate(zip(near.text.split("\n"), old.split("\n"), strict=False)):
        if one.rstrip("\r") != other.rstrip("\r"):
            return {"line": near.line + index, "in_file": _make_visible(one), "in_old_string": _make_visible(other)}
    return {}


def _make_visible(row: str) -> str:
    """Return a row with the blanks at its edges and everything that looks like something else spelled out."""
    shown = preview_text(row, _PREVIEW_CHARS)
    edges = _EDGE_BLANKS.sub(lambda match: match[0].replace(" ", "·").replace("\t", "\\t"), shown)
    return "".join(_visible_character(sign) for sign in edges)


def _visible_character(sign: str) -> str:
    if sign.isascii() or sign in "·…":
        return "\\t" if sign == "\t" else escape_text(sign)
    return f"<U+{ord(sign):04X}>" if _is_strange(sign) else sign
