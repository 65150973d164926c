"""Why a quoted text is not in a file, and what stands there instead. Nothing is ever applied by nearness.

The first cause that holds is named: line numbers were copied, the file has no final line break, line breaks are spelled
as escapes, the edit was made before, only blanks differ, characters only look alike, other lines are close.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from surehold.errors import NotEncodable, OldTextNotFound
from surehold.text.encoding import Encoding
from surehold.text.matching import Haystack
from surehold.text.nearest import Near, compared, look, looking_alike, nearest, without_numbers
from surehold.text.quotes import places_of, straight
from surehold.text.snapshot import Snapshot
from surehold.text.visible import safe

_SHOWN = 80
_TELLING = 4
"""A shorter text stands somewhere by chance."""
_MOST_SIGNS = 8
_EDGES = re.compile(r"^[ \t]+|[ \t]+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cause:
    """Why a text is not there."""

    reason: str
    why: str
    """Completes the sentence `old_string is not in the file`."""
    action: str


def not_found(snapshot: Snapshot, old: str, new: str, haystack: Haystack) -> OldTextNotFound:
    """Return the refusal of an edit whose old text stands nowhere."""
    search = _Search(snapshot, haystack)
    near = _near(snapshot, old)
    cause = _cause(search, old, new, near)
    difference = _first_difference(near[0], old) if near else None
    return OldTextNotFound(
        f"`old_string` is not in the file: {cause.why}.",
        reason=cause.reason,
        action=cause.action,
        closest=[place.as_dict() for place in near],
        first_difference=difference or {},
        already_applied=cause.reason == "already_applied",
    )


@dataclass(frozen=True, slots=True)
class _Search:
    """Looks for variants of a text."""

    snapshot: Snapshot
    haystack: Haystack

    def has(self, text: str | None) -> bool:
        """Tell whether a variant stands in the file."""
        return bool(text) and bool(places_of(self.snapshot, text or "", haystack=self.haystack).matches)

    def has_once(self, text: str) -> bool:
        """Tell whether a variant stands exactly once in the file."""
        return bool(text) and places_of(self.snapshot, text, haystack=self.haystack).count == 1


def _cause(search: _Search, old: str, new: str, near: tuple[Near, ...]) -> _Cause:
    for guess in (_numbers, _line_breaks, _escapes):
        if cause := guess(search, old):
            return cause
    if len(new.strip()) >= _TELLING and search.has_once(new):
        return _Cause(
            reason="already_applied",
            why="the new text is there already",
            action="Leave this edit out if it was made before.",
        )
    if alien := _unencodable(search.snapshot.encoding, old):
        return _Cause(
            reason="not_encodable",
            why=f"its encoding ({search.snapshot.encoding.name}) cannot hold {alien}",
            action="Copy the text exactly as it stands in `closest`.",
        )
    return _by_nearness(near, old, search.snapshot)


def _numbers(search: _Search, old: str) -> _Cause | None:
    if not search.has(without_numbers(old)):
        return None
    return _Cause(
        reason="line_numbers_copied",
        why="its line numbers are not part of the file",
        action="Leave the line numbers and the arrow out.",
    )


def _line_breaks(search: _Search, old: str) -> _Cause | None:
    """Notice a line break that is asked for where the file begins or ends without one."""
    bare = re.sub(r"\r\n|\r", "\n", old)
    if not bare.strip("\n") or bare == bare.strip("\n"):
        return None
    encoding, data = search.snapshot.encoding, search.snapshot.data
    text = re.sub(r"\r\n|\r", "\n", encoding.decode(data[len(encoding.bom) :][-4 * len(bare) - 8 :]))
    if bare[-1] == "\n" and text.endswith(bare.strip("\n")):
        why, action = "the file's last line has no line break", "Leave the line break at the end out."
        return _Cause(reason="line_breaks", why=why, action=action)
    if text.endswith(bare.strip("\n") + "\n"):
        why, action = "the file has fewer blank lines there", "Leave the blank lines out."
        return _Cause(reason="line_breaks", why=why, action=action)
    return None


def _escapes(search: _Search, old: str) -> _Cause | None:
    spelled = old.replace("\\r\\n", "\n").replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    if spelled != old and search.has(spelled):
        return _Cause(
            reason="escaped",
            why="it spells line breaks, tabs or quotes as escapes",
            action="Send real line breaks, tabs and quotes.",
        )
    escaped = old.replace("\n", "\\n").replace("\t", "\\t")
    if escaped != old and search.has(escaped):
        return _Cause(
            reason="unescaped",
            why="the file has the escape (a backslash and a letter) where it has a real line break or tab",
            action="Send the backslash and the letter.",
        )
    return None


def _unencodable(encoding: Encoding, old: str) -> str:
    try:
        encoding.encode(straight(old))
    except NotEncodable as error:
        return ", ".join(error.details["characters"][:_MOST_SIGNS])
    return ""


def _by_nearness(near: tuple[Near, ...], old: str, snapshot: Snapshot) -> _Cause:
    copy = "Copy the text exactly as it stands in `closest`."
    if not near:
        lines = compared(snapshot)
        among = f"among its first {lines:,} lines" if snapshot.line_count > lines else "there"
        action = "Read the file again, and quote what it says."
        return _Cause(reason="no_match", why=f"nothing like it is {among}", action=action)
    best, line = near[0], near[0].line
    rows, quoted = best.text.split("\n"), old.split("\n")
    if not best.differing and _is_blanks(rows, quoted):
        return _Cause(reason="blanks", why=f"line {line} differs in blanks only{_tabs(rows, quoted)}", action=copy)
    if signs := _look_alikes(rows, quoted):
        return _Cause(reason="look_alikes", why=f"line {line} only looks the same ({signs})", action=copy)
    return _Cause(reason="no_match", why=f"the closest lines begin at line {line}", action=copy)


def _is_blanks(rows: list[str], quoted: list[str]) -> bool:
    """Tell whether rows are the same but for blanks and tabs at their edges."""
    return all(one.strip(" \t\r") == other.strip(" \t\r") for one, other in zip(rows, quoted, strict=False))


def _tabs(rows: list[str], quoted: list[str]) -> str:
    for one, other in zip(rows, quoted, strict=False):
        file_edge, sent_edge = one[: len(one) - len(one.lstrip())], other[: len(other) - len(other.lstrip())]
        if file_edge != sent_edge and ("\t" in file_edge) != ("\t" in sent_edge):
            has, sent = ("tabs", "spaces") if "\t" in file_edge else ("spaces", "tabs")
            return f": the file has {has} where you sent {sent}"
    return ""


def _look_alikes(rows: list[str], quoted: list[str]) -> str:
    """Name the code points of the file's lines that differ from what they look like; nothing when words differ."""
    pairs = list(zip(rows, quoted, strict=False))
    if not all(look(other) in look(one) for one, other in pairs):
        return ""
    strange = dict.fromkeys(sign for one, other in pairs for sign in _only_in(one, other) if _is_meant(sign, other))
    sent = dict.fromkeys(sign for one, other in pairs for sign in _only_in(other, one))
    parts = [f"the file has {_named(strange)}"] if strange else []
    return " where ".join([*parts, *([f"you sent {_named(sent)}"] if sent else [])])


def _only_in(one: str, other: str) -> Iterator[str]:
    known = set(other)
    return (sign for sign in one if sign not in known and (not sign.isascii() or unicodedata.combining(sign)))


def _is_meant(sign: str, other: str) -> bool:
    """Tell whether a character of the file may be what the other line spells differently."""
    apart = unicodedata.normalize("NFD", sign)
    return _is_strange(sign) or (apart != sign and apart in other)


def _is_strange(sign: str) -> bool:
    """Tell whether a character looks like others, or like nothing."""
    return look(f"x{sign}x") != f"x{sign}x" or bool(unicodedata.combining(sign))


def _named(signs: dict[str, None]) -> str:
    return ", ".join(f"U+{ord(sign):04X}" for sign in list(signs)[:_MOST_SIGNS])


def _near(snapshot: Snapshot, old: str) -> tuple[Near, ...]:
    near = nearest(snapshot, old)
    if near and not near[0].differing:
        return near
    alike = looking_alike(snapshot, old)
    return (alike,) if alike else near


def _first_difference(near: Near, old: str) -> dict[str, object] | None:
    """Show the first line that differs, the file's and the caller's, with their blanks visible."""
    for index, (one, other) in enumerate(zip(near.text.split("\n"), old.split("\n"), strict=False)):
        if one.rstrip("\r") != other.rstrip("\r"):
            return {"line": near.line + index, "in_file": _visible(one), "in_old_string": _visible(other)}
    return None


def _visible(row: str) -> str:
    """Return a row with the blanks at its edges and everything that looks like something else spelled out."""
    cut = row if len(row) <= _SHOWN else row[:_SHOWN] + "…"
    edges = _EDGES.sub(lambda match: match[0].replace(" ", "·").replace("\t", "\\t"), cut)
    return "".join(_sign(sign) for sign in edges)


def _sign(sign: str) -> str:
    if sign.isascii() or sign in "·…":
        return "\\t" if sign == "\t" else safe(sign)
    return f"<U+{ord(sign):04X}>" if _is_strange(sign) else sign
