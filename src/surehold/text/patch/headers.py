"""The headers of diffs: file names (quoted, prefixed, dated or /dev/null) and the extended header rows of git."""

import re
from typing import NamedTuple

from surehold.text.patch.source import PatchSource
from surehold.text.plan import DEV_NULL

_QUOTED_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"(.*)', re.DOTALL)
_ESCAPE = re.compile(rb'\\([0-3][0-7]{2}|[abtnvfr"\\])')
_ESCAPED_NAME = re.compile(rb"(?:[^\\]|" + _ESCAPE.pattern + rb")*")
_ESCAPED = dict(zip(b'abtnvfr"\\', (7, 8, 9, 10, 11, 12, 13, 34, 92), strict=True))
_PREFIXES = frozenset({"ab", "ba", "iw", "wi", "ci", "ic", "cw", "wc", "ow", "wo"})
"""The pairs of letters that git sets before both names, also for a reversed diff."""
_EPOCH_DATE = re.compile(r"(19(?:69-12-31|70-01-01)) (\d\d):(\d\d):00(?:\.0+)?(?: ([+-])(\d\d)(\d\d))?")


def read_name(text: str) -> tuple[str, str] | None:
    """Return the name at the beginning of a header and what follows it; None when a quote is broken."""
    if not text.startswith('"'):
        name, _, rest = text.partition("\t")
        return name, rest
    match = _QUOTED_NAME.fullmatch(text)
    name = _unescape_name(match[1]) if match else None
    return None if match is None or name is None else (name, match[2])


def is_absent_side(name: str, date: str) -> bool:
    """Tell whether this side of a diff has no file: /dev/null, or a file that is as old as time."""
    if name == DEV_NULL:
        return True
    match = _EPOCH_DATE.fullmatch(date.strip())
    if not match:
        return False
    day, hours, minutes, sign, zone_hours, zone_minutes = match.groups(default="")
    local = int(hours) * 60 + int(minutes) - (24 * 60 if day.startswith("1969") else 0)
    zone = int(f"{sign}{int(zone_hours or 0) * 60 + int(zone_minutes or 0)}") if sign else 0
    return local == zone


def strip_prefixes(old: str, new: str) -> tuple[str, str]:
    """Drop `a/` and `b/` when both names carry them, or the only one there is."""
    if old == DEV_NULL:
        return old, new.removeprefix("b/")
    if new == DEV_NULL:
        return old.removeprefix("a/"), new
    both = old[:1] + new[:1] in _PREFIXES and old[1:2] == new[1:2] == "/"
    return (old[2:], new[2:]) if both else (old, new)


def split_git_names(text: str) -> tuple[str, str] | None:
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
    pair = text[:half], text[half + 1 :]
    if odd and text[half] == " " and len(set(strip_prefixes(*pair))) == 1:
        return pair  # both are equally long, except in a rename
    old, _, new = text.partition(" ")
    return (old, new) if old and new and " " not in new else None


def path_key(path: str) -> str:
    """Spell a path in one way, so that `./x` and `x` are seen to be the same."""
    parts = list[str]()
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return ("/" if path.startswith("/") else "") + "/".join(parts)


def _unescape_name(text: str) -> str | None:
    """Undo C escapes; the bytes are a name in UTF-8, and those that are not stay lone surrogates."""
    data = text.encode("utf-8", "surrogatepass")
    if not _ESCAPED_NAME.fullmatch(data):
        return None
    return _ESCAPE.sub(_escaped_byte, data).decode("utf-8", "surrogateescape")


def _escaped_byte(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8) if code.isdigit() else _ESCAPED[code[0]]])


_MODES = {"100644": 0o644, "100755": 0o755}
_EXECUTABLE = 0o755
_HEADER_ROW = re.compile(
    "(old mode|new mode|new file mode|deleted file mode|(?:rename|copy) (?:from|to)|(?:(?:dis)?similarity )?index) (.*)"
)


class GitHeader(NamedTuple):
    """What a header says about a file; the names are empty when the first row alone does not tell them."""

    line: int
    old: str = ""
    new: str = ""
    adds: bool = False
    deletes: bool = False
    renames: bool = False
    mode: int | None = None


def read_git_header(source: PatchSource) -> GitHeader:
    """Read the extended header of git, up to the row that does not belong to it."""
    first = source.next_header or ""
    pair = split_git_names(first.removeprefix("diff --git "))
    old, new = strip_prefixes(*pair) if pair else ("", "")
    header = GitHeader(line=source.line_number, old=old, new=new)
    source.at += 1
    moved: dict[str, str] = {}
    while match := _HEADER_ROW.fullmatch(source.next_header or ""):
        header = _read_header_row(source, header, match[1], match[2], moved)
        source.at += 1
    return _apply_rename(source, header, moved)


def _apply_rename(source: PatchSource, header: GitHeader, moved: dict[str, str]) -> GitHeader:
    if not moved:
        if header.old != header.new:
            wanted = "the same path twice, or `rename from` and `rename to`"
            said = f"`diff --git` names two files, `{header.old}` and `{header.new}`, and no rename follows"
            raise source.build_refusal(wanted, "two_names", line=header.line, said=said)
        return header
    if set(moved) != {"from", "to"}:
        raise source.build_refusal("both `rename from` and `rename to`", "half_rename")
    if header.adds or header.deletes:
        raise source.build_refusal("a file that is renamed, or added or deleted", "contradiction", line=header.line)
    return header._replace(old=moved["from"], new=moved["to"], renames=True)


def _read_header_row(
    source: PatchSource, header: GitHeader, start: str, value: str, moved: dict[str, str]
) -> GitHeader:
    match start:
        case "old mode":
            _read_mode(source, value)
        case "new mode":
            return header._replace(mode=_read_mode(source, value))
        case "new file mode":
            mode = _read_mode(source, value)
            # A plain new file gets the permissions that new files get here.
            return header._replace(adds=True, mode=mode if mode == _EXECUTABLE else None)
        case "deleted file mode":
            _read_mode(source, value)
            return header._replace(deletes=True)
        case "rename from" | "rename to":
            moved[start.split()[1]] = _read_path(source, value)
        case "copy from" | "copy to":
            action = "Make the diff without `-C`, so that the copy is a new file."
            raise source.build_refusal("no copy", "copy", said="copies are not applied", action=action)
        case "index" if len(words := value.split()) > 1:
            _read_mode(source, words[1])
        case _:
            pass
    return header


def _read_path(source: PatchSource, value: str) -> str:
    read = read_name(value)
    if read is None or not read[0]:
        raise source.build_refusal("a path, quoted as git does", "no_path")
    return read[0]


def _read_mode(source: PatchSource, value: str) -> int:
    name = value.strip()
    if name not in _MODES:
        kind = {"120000": "a symbolic link", "160000": "a submodule"}.get(name, "not a regular file")
        said = f"mode {name} is {kind}, which a patch cannot change here"
        action = "Leave that file out of the patch."
        raise source.build_refusal("mode 100644 or 100755", "special_file", said=said, action=action)
    return _MODES[name]
