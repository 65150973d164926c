"""File names as diffs write them: quoted, prefixed, dated, or /dev/null."""

import re

_OCTAL = re.compile(rb"[0-3][0-7]{2}")
_ESCAPED = {
    ord("a"): 7,
    ord("b"): 8,
    ord("t"): 9,
    ord("n"): 10,
    ord("v"): 11,
    ord("f"): 12,
    ord("r"): 13,
    ord('"'): 34,
    ord("\\"): 92,
}
_PREFIXES = frozenset({"ab", "ba", "iw", "wi", "ci", "ic", "cw", "wc", "ow", "wo"})
"""The pairs of letters that git sets before both names, also for a reversed diff."""
_DATE = re.compile(r"(19(?:69-12-31|70-01-01)) (\d\d):(\d\d):00(?:\.0+)?(?: ([+-])(\d\d)(\d\d))?")

NOWHERE = "/dev/null"


def read_name(text: str) -> tuple[str, str] | None:
    """Return the name at the beginning of a header and what stands behind it; None when a quote is broken."""
    if not text.startswith('"'):
        name, _, rest = text.partition("\t")
        return name, rest
    end = 1
    while end < len(text) and text[end] != '"':
        end += 2 if text[end] == "\\" else 1
    if end >= len(text):
        return None
    name = _unescape(text[1:end])
    return None if name is None else (name, text[end + 1 :])


def is_dead(name: str, date: str) -> bool:
    """Tell whether this side of a diff has no file: /dev/null, or a file that is as old as time."""
    if name == NOWHERE:
        return True
    match = _DATE.fullmatch(date.strip())
    if not match:
        return False
    day, hours, minutes, sign, zone_hours, zone_minutes = match.groups(default="")
    local = int(hours) * 60 + int(minutes) - (24 * 60 if day.startswith("1969") else 0)
    zone = int(f"{sign}{int(zone_hours or 0) * 60 + int(zone_minutes or 0)}") if sign else 0
    return local == zone


def without_prefixes(old: str, new: str) -> tuple[str, str]:
    """Drop `a/` and `b/` when both names carry them, or the only one there is."""
    if old == NOWHERE:
        return old, new.removeprefix("b/")
    if new == NOWHERE:
        return old.removeprefix("a/"), new
    both = old[:1] + new[:1] in _PREFIXES and old[1:2] == new[1:2] == "/"
    return (old[2:], new[2:]) if both else (old, new)


def split_pair(text: str) -> tuple[str, str] | None:
    """Return both names of a `diff --git` row; None when they cannot be told apart, as of a rename with blanks."""
    if text.startswith('"'):
        first = read_name(text)
        second = read_name(first[1][1:]) if first and first[1].startswith(" ") else None
        return (first[0], second[0]) if first and second and not second[1] else None
    if text.endswith('"') and ' "' in text:
        name, _, rest = text.partition(' "')
        second = read_name(f'"{rest}')
        return (name, second[0]) if second and not second[1] else None
    half, odd = divmod(len(text), 2)
    if odd and text[half] == " " and _same(text[:half], text[half + 1 :]):
        return text[:half], text[half + 1 :]  # both are equally long, except in a rename
    return _two_words(text)


def same_key(path: str) -> str:
    """Spell a path in one way, so that `./x` and `x` are seen to be the same."""
    parts = list[str]()
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return ("/" if path.startswith("/") else "") + "/".join(parts)


def _two_words(text: str) -> tuple[str, str] | None:
    words = text.split(" ")
    return (words[0], words[1]) if len(words) == 2 and all(words) else None  # noqa: PLR2004 - a pair


def _same(old: str, new: str) -> bool:
    first, second = without_prefixes(old, new)
    return first == second


def _unescape(text: str) -> str | None:
    """Undo C escapes; the bytes are a name in UTF-8, and those that are not stay lone surrogates."""
    data, out, at = text.encode("utf-8", "surrogatepass"), bytearray(), 0
    while at < len(data):
        byte, at = data[at], at + 1
        if byte != ord("\\"):
            out.append(byte)
        elif match := _OCTAL.match(data, at):
            out.append(int(match[0], 8))
            at = match.end()
        elif at < len(data) and data[at] in _ESCAPED:
            out.append(_ESCAPED[data[at]])
            at += 1
        else:
            return None
    return out.decode("utf-8", "surrogateescape")
