"""Tables of a TOML text: where one is, and how it is set or taken out while every other byte stays.

What comes out is parsed again: a text that would not say what it should is refused. Invalid text raises `ValueError`.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}\n]|[^"\'#\[\]{}\n]+',
    re.DOTALL,
)
_LINE_END = re.compile(r"\r\n|\n")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class TomlLine:
    """A statement: a header, a key with its value (on one or several lines), or a line without either."""

    start: int
    end: int
    """After its line end."""
    text: str

    @property
    def header(self) -> tuple[str, ...] | None:
        """The keys of a table's header; None of anything else."""
        if not self.text.lstrip().startswith("["):
            return None
        found: Any = tomllib.loads(self.text)
        keys = list[str]()
        while found:
            key, found = next(iter(cast("dict[str, Any]", found).items()))
            keys.append(key)
            found = cast("list[Any]", found)[0] if isinstance(found, list) else found
        return tuple(keys)

    @property
    def is_blank(self) -> bool:
        return not self.text.strip() or self.text.lstrip().startswith("#")


def set_table(text: str, keys: Sequence[str], values: Mapping[str, Any]) -> str:
    """Return the text with this table, in the place of the one that it has, else at its end."""
    known, end = tomllib.loads(text), _LINE_END.search(text)
    line_end = end[0] if end else "\n"
    rows = [f"[{'.'.join(_spell_key(key) for key in keys)}]"]
    rows += [f"{_spell_key(key)} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    table = "".join(row + line_end for row in rows)
    if span := _find_table(text, keys):
        result = text[: span[0]] + table + text[span[1] :]
    else:
        gap = "" if not text else line_end if text.endswith("\n") else line_end * 2
        result = text + gap + table
    return _check_result(result, _with_value(known, keys, dict(values)))


def remove_table(text: str, keys: Sequence[str]) -> str:
    """Return the text without this table and the tables in it."""
    known = tomllib.loads(text)
    while span := _find_table(text, keys):
        head = text[: span[0]]
        gap = re.search(r"(?<=\n)\r?\n\Z", head)  # the empty line that set it apart
        text = (head[: gap.start()] if gap else head) + text[span[1] :]
    return _check_result(text, _with_value(known, keys, None))


def has_table(text: str, keys: Sequence[str]) -> bool:
    return _find_table(text, keys) is not None


def _find_table(text: str, keys: Sequence[str]) -> tuple[int, int] | None:
    """Return from where to where a table goes, without the comments that follow it, or a table in it."""
    start, end = -1, -1
    for line in _split_statements(text):
        if (header := line.header) is not None:
            if start >= 0:
                break
            if header[: len(keys)] == tuple(keys):
                start, end = line.start, line.end
        elif start >= 0 and not line.is_blank:
            end = line.end
    return (start, end) if start >= 0 else None


def _split_statements(text: str) -> list[TomlLine]:
    lines, start, at, depth = list[TomlLine](), 0, 0, 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        piece = token[0] if token else text[at]
        at += len(piece)
        depth += (piece in {"[", "{"}) - (piece in {"]", "}"})
        if piece == "\n" and depth <= 0:
            lines.append(TomlLine(start=start, end=at, text=text[start:at]))
            start = at
    return [*lines, TomlLine(start=start, end=at, text=text[start:])] if start < len(text) else lines


def _spell_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _with_value(known: dict[str, Any], keys: Sequence[str], value: dict[str, Any] | None) -> dict[str, Any]:
    """Return the parsed text as it should be, with a value at a place, or without one."""
    first, *rest = keys
    inner = known.get(first, {})
    if rest:
        if not isinstance(inner, dict):
            raise ValueError(f"`{first}` is not a table")
        changed = _with_value(cast("dict[str, Any]", inner), rest, value)
        return (
            {**known, first: changed}
            if changed or value is not None
            else {k: v for k, v in known.items() if k != first}
        )
    return {k: v for k, v in known.items() if k != first} | ({} if value is None else {first: value})


def _check_result(text: str, expected: dict[str, Any]) -> str:
    if tomllib.loads(text) != expected:
        raise ValueError("the table cannot be changed without changing another one")
    return text
