"""The settings files of hosts: what `surehold setup` puts into each of them, and how it is found again.

An edit turns the text of a file into another text. Everything that is not ours keeps its bytes: values are set by their
place in the text, and what comes out is read again and compared with what it should say.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Any, Protocol, cast

from surehold.errors import InvalidArgument
from surehold.text.config.jsonc import JsoncText
from surehold.text.config.toml_tables import has_table, remove_table, set_table

_BOM = "\ufeff"


class SettingsEdit(Protocol):
    """One thing of ours in a settings file."""

    def put_into(self, text: str) -> str:
        """Return the text with it; the same text if it has it already."""
        ...

    def take_out_of(self, text: str, before: str) -> str:
        """Return the text without it; what was empty in `before` may be empty again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonValue:
    """A value at a place of its own, such as our server among the servers."""

    keys: tuple[str, ...]
    value: Any

    def put_into(self, text: str) -> str:
        parsed = JsoncText(text)
        node = parsed.find_node(self.keys)
        return text if node and node.value == self.value else parsed.set_value(self.keys, self.value)

    def take_out_of(self, text: str, before: str) -> str:
        earlier = JsoncText(before).find_node(self.keys)
        if earlier is not None and earlier.value != self.value:
            return JsoncText(text).set_value(self.keys, earlier.value)
        return _prune_empty(JsoncText(text).remove_member(self.keys), self.keys[:-1], before)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonDefault:
    """A value that a file must have, whoever wrote it; ours only if nothing else is there."""

    keys: tuple[str, ...]
    value: Any

    def put_into(self, text: str) -> str:
        parsed = JsoncText(text)
        return text if parsed.find_node(self.keys) else parsed.set_value(self.keys, self.value)

    def take_out_of(self, text: str, before: str) -> str:
        parsed = JsoncText(text)
        node = parsed.find_node(self.keys)
        is_ours = node is not None and node.value == self.value and not JsoncText(before).find_node(self.keys)
        return parsed.remove_member(self.keys) if is_ours else text


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonHook:
    """One item of a list of hooks; ours is the one that runs `surehold hook HOST`."""

    keys: tuple[str, ...]
    item: Any
    host: str

    def put_into(self, text: str) -> str:
        parsed = JsoncText(text)
        node = parsed.find_node(self.keys)
        items = node.members if node else ()
        ours = [one.value for one in items if self._is_ours(one.value)]
        if ours == [self.item]:
            return text
        return JsoncText(parsed.remove_items(self.keys, self._is_ours)).add_item(self.keys, self.item)

    def take_out_of(self, text: str, before: str) -> str:
        return _prune_empty(JsoncText(text).remove_items(self.keys, self._is_ours), self.keys, before)

    def _is_ours(self, item: Any) -> bool:
        ours = re.compile(rf"surehold\S* hook {re.escape(self.host)}\b")
        return any(ours.search(text) for text in texts_in(item))


@dataclass(frozen=True, slots=True, kw_only=True)
class TomlTable:
    """A table of a TOML file."""

    keys: tuple[str, ...]
    values: Mapping[str, Any]

    def put_into(self, text: str) -> str:
        return set_table(text, self.keys, self.values)

    def take_out_of(self, text: str, before: str) -> str:  # noqa: ARG002 - a table that was there before is not ours
        return remove_table(text, self.keys) if has_table(text, self.keys) else text


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeFile:
    """A file that is ours alone."""

    text: str

    def put_into(self, text: str) -> str:
        if text and text != self.text and "surehold" not in text:
            raise ValueError("the file is not from Surehold")
        return self.text

    def take_out_of(self, text: str, before: str) -> str:
        return before if text == self.text else text


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsFile:
    """One file of a host, and what belongs in it."""

    name: str
    """Where it is, from the directory of its scope."""
    edits: Sequence[SettingsEdit]

    def put_into(self, data: bytes) -> bytes:
        """Return the bytes of the file with everything of ours."""
        text = new = self._decode(data)
        try:
            for edit in self.edits:
                new = edit.put_into(new)
        except ValueError as error:
            raise self._refuse(text, error) from None
        return self._encode(new, data)

    def take_out_of(self, data: bytes, before: bytes) -> bytes:
        """Return the bytes without anything of ours; `before` is what was there once, where that is known."""
        text, earlier = self._decode(data), self._decode(before)
        try:
            for edit in reversed(self.edits):
                text = edit.take_out_of(text, earlier)
        except ValueError as error:
            raise self._refuse(text, error) from None
        return self._encode(text, data)

    def _decode(self, data: bytes) -> str:
        try:
            return data.decode().removeprefix(_BOM)
        except UnicodeDecodeError as error:
            raise self._refuse("", error) from None

    @staticmethod
    def _encode(text: str, like: bytes) -> bytes:
        return (_BOM if like.startswith(_BOM.encode()) else "").encode() + text.encode()

    def _refuse(self, text: str, error: ValueError) -> InvalidArgument:
        where = f"line {error.lineno}: {error.msg}" if isinstance(error, JSONDecodeError) else str(error)
        wanted = "\n".join(_describe_edit(edit) for edit in self.edits) if text else ""
        return InvalidArgument(
            f"`{self.name}` cannot be edited: {where}.",
            path=self.name,
            reason="unreadable_settings",
            action="Repair the file, or add what is ours to it yourself." if wanted else "Repair the file first.",
            wanted=wanted,
        )


def _describe_edit(edit: SettingsEdit) -> str:
    empty = "" if isinstance(edit, TomlTable | WholeFile) else "{}"
    return edit.put_into(empty)


def texts_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for one in cast("dict[str, Any]", value).values() for text in texts_in(one)]
    return [text for one in cast("list[Any]", value) for text in texts_in(one)] if isinstance(value, list) else []


def _prune_empty(text: str, keys: Sequence[str], before: str) -> str:
    """Take out what is empty now, from inside to outside, and was not there before."""
    earlier = JsoncText(before)
    for count in range(len(keys), 0, -1):
        parsed, place = JsoncText(text), keys[:count]
        node = parsed.find_node(place)
        if node is None or node.value not in ({}, []) or earlier.find_node(place) is not None:
            break
        text = parsed.remove_member(place)
    return text
