"""Anchors as callers send them back.

5da3f1              the beginning of a line's digest, 4 to 64 hex digits in any case
5da3f1.7            the seventh of several equal lines
118#5da3f1.7        with the line number that was printed before it
118#5da3f1.7~|text  a copied row; the text must be that of the line
119#c812f1+2        two lines below the line that is named: a verified offset
5da3f1@cafebabe     with the context id that an earlier refusal offered
BOF, EOF            the edges of the file, for inserts
"""

import re
from dataclasses import dataclass
from typing import Literal

from surehold.errors import SchemaInvalid

Edge = Literal["BOF", "EOF"]

_SPELLING = re.compile(
    r"""(?:(?P<line>\d{1,9})\#)? (?P<hash>[0-9a-f]{4,64}) (?:\.(?P<occurrence>\d{1,9}))?
        (?:@(?P<context>[0-9a-f]{8}))? (?P<offset>[+-]\d{1,9})? [!~]? (?:\|(?P<tail>.*))?""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_NEARLY = re.compile(r"(?<![0-9a-z])(\d{1,9})\s*[#:@|→,-]\s*\#?([0-9a-f]{4,64})(\.\d{1,9})?(?![0-9a-z])", re.IGNORECASE)
_HEX = re.compile(r"(?<![0-9a-z])(?:0x)?([0-9a-f]{4,64})(\.\d{1,9})?(?![0-9a-z])", re.IGNORECASE)
_ACCEPTED = ("5da3f1", "5da3f1.7", "118#5da3f1", "118#5da3f1.7", "a copied row with its `|text`")
_SHOWN = 80


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
    """What was copied behind the bar: the text of the line that is meant."""
    edge: Edge | None = None


def parse_anchor(text: str, *, field: str) -> Anchor:
    """Read any spelling of an anchor, or refuse with the one that was probably meant."""
    bare = text.strip()
    if bare.upper() in ("BOF", "EOF"):
        return Anchor(hash="", edge="BOF" if bare.upper() == "BOF" else "EOF")
    match = _SPELLING.fullmatch(text.lstrip() if "|" in text else bare)
    tail = _tail(match["tail"]) if match else None
    if match is None or "\n" in (tail or "") or match["line"] == "0":
        raise _refusal(text, field)
    return Anchor(
        hash=match["hash"].lower(),
        line=int(match["line"]) if match["line"] else None,
        occurrence=int(match["occurrence"]) if match["occurrence"] else None,
        context=match["context"].lower() if match["context"] else None,
        offset=int(match["offset"] or 0),
        tail=tail,
    )


def _tail(text: str | None) -> str | None:
    """Return a copied text without the terminator that came along."""
    return None if text is None else re.sub(r"\r?\n\Z", "", text)


def _refusal(text: str, field: str) -> SchemaInvalid:
    meant = _probably_meant(text)
    shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
    hint = f"; did you mean `{meant}`?" if meant else _reason(text.strip()) + "."
    return SchemaInvalid(
        f"`{field}` is not an anchor: `{shown}`" + hint,
        reason="bad_anchor",
        action=f"Send `{meant}`." if meant else "Copy an anchor as it was printed before the `|`, such as 118#5da3f1.",
        field=field,
        given=shown,
        did_you_mean=meant,
        accepted=list(_ACCEPTED),
    )


def _reason(text: str) -> str:
    if not text:
        return ", it is empty"
    if re.fullmatch(r"\d+#?", text):
        return ", a line number needs the hash behind it"
    if re.fullmatch(r"(?:\d+#)?[0-9a-fA-F]{1,3}", text):
        return ", a hash has at least 4 digits"
    return ""


def _probably_meant(text: str) -> str | None:
    """Find the one anchor inside of what was sent."""
    numbered = {f"{int(line)}#{hash_.lower()}{nth or ''}" for line, hash_, nth in _NEARLY.findall(text) if int(line)}
    if numbered:
        return numbered.pop() if len(numbered) == 1 else None
    # A word such as `added` is hex as well, so it counts only when it has a digit.
    bare = {hash_.lower() + nth for hash_, nth in _HEX.findall(text) if re.search(r"\d", hash_)}
    return bare.pop() if len(bare) == 1 else None
