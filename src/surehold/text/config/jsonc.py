"""JSON with comments and trailing commas: where its values are, and how one of them is set or taken out.

An edit is a new text that differs from the old one only where the value is. What is added is written as the file writes:
with its line endings and its indent, or on one line where the file has its members on one line.
Invalid text raises `JSONDecodeError`.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from typing import Any, cast

_BLANKS = re.compile(r"(?:[ \t\n\r]+|//[^\n\r]*|/\*.*?\*/)*", re.DOTALL)
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\n\r]*|/\*[^\n\r]*?\*/[ \t]*(?=[\n\r]|$))?")
_SCALAR = re.compile(r'"|-?[0-9]|true|false|null')
_LINE_END = re.compile(r"\r\n|\n|\r")
_USUAL_INDENT = "  "
_MAX_DEPTH = 200
_decode_scalar = JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True, kw_only=True)
class JsoncNode:
    """A value: from its first character to after its last. `at` is where its key begins, or the value itself."""

    at: int
    start: int
    end: int
    value: Any
    key: str = ""
    members: tuple["JsoncNode", ...] = ()
    """Of an object or an array."""

    def find_member(self, key: str) -> "JsoncNode | None":
        return next((one for one in reversed(self.members) if one.key == key), None)


class JsoncText:
    """A text that is read once; each edit returns the text with that edit."""

    def __init__(self, text: str) -> None:
        self.text = text if text.strip() else text + "{}\n"
        self.top, end = self._read_node(self._skip_blanks(0), depth=0)
        if self._skip_blanks(end) != len(self.text):
            raise JSONDecodeError("Extra data", self.text, self._skip_blanks(end))

    def set_value(self, keys: Sequence[str], value: Any) -> str:
        """Return the text with a value at this place; objects that are missing on the way are added."""
        node, rest = self.top, list(keys)
        while rest and (inner := _object_member(node, rest[0])) is not None:
            node, rest = inner, rest[1:]
        if not rest:
            return self._splice((node.start, node.end, self._spell(value, len(keys))))
        if not isinstance(node.value, dict):
            raise JSONDecodeError("Expecting an object", self.text, node.start)
        for key in reversed(rest[1:]):
            value = {key: value}
        return self._add_member(node, rest[0], value, depth=len(keys) - len(rest))

    def add_item(self, keys: Sequence[str], item: Any) -> str:
        """Return the text with one more item at the end of the list at this place."""
        node = self.find_node(keys)
        if node is None:
            return self.set_value(keys, [item])
        if not isinstance(node.value, list):
            raise JSONDecodeError("Expecting an array", self.text, node.start)
        return self._add_member(node, None, item, depth=len(keys))

    def remove_items(self, keys: Sequence[str], is_ours: Callable[[Any], bool]) -> str:
        """Return the text without the items of the list at this place for which that is true."""
        text, node = self, self.find_node(keys)
        while node and (found := [n for n, one in enumerate(node.members) if is_ours(one.value)]):
            text = JsoncText(text._without(node, found[-1]))
            node = text.find_node(keys)
        return text.text

    def remove_member(self, keys: Sequence[str]) -> str:
        """Return the text without the member at this place."""
        parent = self.find_node(keys[:-1])
        if parent is None or not isinstance(parent.value, dict):
            return self.text
        numbers = [n for n, one in enumerate(parent.members) if one.key == keys[-1]]
        return self._without(parent, numbers[-1]) if numbers else self.text

    def find_node(self, keys: Sequence[str]) -> JsoncNode | None:
        node: JsoncNode | None = self.top
        for key in keys:
            node = _object_member(node, key) if node else None
        return node

    def _without(self, parent: JsoncNode, number: int) -> str:
        """Cut one member out, with one comma, and with its line where it has one of its own."""
        node, text, is_last = parent.members[number], self.text, number + 1 == len(parent.members)
        if len(parent.members) == 1 and not self._has_comment(parent, node):
            return text[: parent.start + 1] + text[parent.end - 1 :]
        comma = self._skip_blanks(node.end)
        has_comma = text.startswith(",", comma)
        line = re.search(r"(?:\r\n|\n|\r)[ \t]*\Z", text[: node.at])
        if has_comma:
            spans = [(line.start() if line else node.at, node.end), (comma, comma + 1)]
            if not line:
                spans[-1] = (comma, comma + 1 + len(text[comma + 1 :]) - len(text[comma + 1 :].lstrip(" \t")))
        else:
            spans = [(line.start() if line else node.at, node.end)]
        if is_last and number and not has_comma:
            before = self._skip_blanks(parent.members[number - 1].end)
            blank = not line and not text[before + 1 : node.at].strip(" \t")
            spans = [(before, node.end)] if blank else [(before, before + 1), *spans]
        return self._splice(*((start, end, "") for start, end in spans))

    def _has_comment(self, parent: JsoncNode, node: JsoncNode) -> bool:
        around = self.text[parent.start + 1 : node.at] + self.text[node.end : parent.end - 1]
        return bool(around.strip(" \t\r\n,"))

    def _add_member(self, parent: JsoncNode, key: str | None, value: Any, *, depth: int) -> str:
        name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
        if not parent.members:
            return self._fill_empty(parent, name, value, depth)
        last = parent.members[-1]
        line = self._line_indent(last.at)
        if line is None:
            spelled = json.dumps(value, ensure_ascii=False)
            return self._splice((last.end, last.end, f", {name}{spelled}"))
        comma = self._skip_blanks(last.end)
        has_comma = self.text.startswith(",", comma)
        behind = _REST_OF_LINE.match(self.text, comma + 1 if has_comma else last.end)
        at = behind.end() if behind else last.end
        added = f"{self._line_end}{line}{name}{self._spell(value, depth + 1, line)}"
        if has_comma:
            return self._splice((at, at, added + ","))
        return self._splice((last.end, last.end, ","), (at, at, added))

    def _fill_empty(self, parent: JsoncNode, name: str, value: Any, depth: int) -> str:
        inner = self.text[parent.start + 1 : parent.end - 1]
        outer = self._line_indent(parent.at)
        outer = self._indent_unit * depth if outer is None else outer
        line = outer + self._indent_unit
        added = f"{self._line_end}{line}{name}{self._spell(value, depth + 1, line)}{self._line_end}{outer}"
        kept = inner.rstrip() if inner.strip() else ""  # a comment inside stays
        return self._splice((parent.start + 1, parent.end - 1, kept + added))

    def _spell(self, value: Any, depth: int, indent: str | None = None) -> str:
        prefix = self._indent_unit * depth if indent is None else indent
        rows = json.dumps(value, ensure_ascii=False, indent=self._indent_unit).split("\n")
        return f"{self._line_end}{prefix}".join(rows)

    def _splice(self, *spans: tuple[int, int, str]) -> str:
        text = self.text
        for start, end, new in reversed(spans):  # they are given in their order
            text = text[:start] + new + text[end:]
        return text

    @property
    def _line_end(self) -> str:
        found = _LINE_END.search(self.text)
        return found[0] if found else "\n"

    @property
    def _indent_unit(self) -> str:
        first = self.top.members[0] if self.top.members else None
        return (self._line_indent(first.at) or _USUAL_INDENT) if first else _USUAL_INDENT

    def _line_indent(self, at: int) -> str | None:
        """Return the blanks before a place, if nothing else is before it on its line."""
        line = re.split(r"[\n\r]", self.text[:at])
        return line[-1] if len(line) > 1 and not line[-1].strip(" \t") else None

    def _skip_blanks(self, at: int) -> int:
        match = _BLANKS.match(self.text, at)
        return match.end() if match else at

    def _read_node(self, at: int, *, depth: int, key_at: int = -1, key: str = "") -> tuple[JsoncNode, int]:
        where = at if key_at < 0 else key_at
        opening = self.text[at : at + 1]
        if opening in {"{", "["} and depth < _MAX_DEPTH:
            members, end = self._read_members(at, is_object=opening == "{", depth=depth + 1)
            value: Any = {one.key: one.value for one in members} if opening == "{" else [one.value for one in members]
            return JsoncNode(at=where, start=at, end=end, value=value, key=key, members=tuple(members)), end
        if not _SCALAR.match(self.text, at):
            raise JSONDecodeError("Expecting value", self.text, at)
        value, end = _decode_scalar(self.text, at)
        return JsoncNode(at=where, start=at, end=end, value=value, key=key), end

    def _read_members(self, at: int, *, is_object: bool, depth: int) -> tuple[list[JsoncNode], int]:
        closing, members, here = "}" if is_object else "]", list[JsoncNode](), self._skip_blanks(at + 1)
        while not self.text.startswith(closing, here):
            key_at, key = here, ""
            if is_object:
                key, here = self._read_key(here)
            node, here = self._read_node(here, depth=depth, key_at=key_at, key=key)
            members.append(node)
            here = self._skip_blanks(here)
            if self.text.startswith(",", here):
                here = self._skip_blanks(here + 1)
            elif not self.text.startswith(closing, here):
                raise JSONDecodeError(f"Expecting ',' or '{closing}'", self.text, here)
        return members, here + 1

    def _read_key(self, at: int) -> tuple[str, int]:
        if not self.text.startswith('"', at):
            raise JSONDecodeError("Expecting property name enclosed in double quotes", self.text, at)
        key, end = _decode_scalar(self.text, at)
        colon = self._skip_blanks(end)
        if not self.text.startswith(":", colon):
            raise JSONDecodeError("Expecting ':' delimiter", self.text, colon)
        return cast("str", key), self._skip_blanks(colon + 1)


def _object_member(node: JsoncNode, key: str) -> JsoncNode | None:
    return node.find_member(key) if isinstance(node.value, dict) else None
