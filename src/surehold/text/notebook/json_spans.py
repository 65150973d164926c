"""Where the values of a JSON text are, so that a caller can change one of them and leave the rest as it is.

Values are read by the scanner of the standard library, which returns where each of them ends; so a whole file is read
once, at the speed of `json.loads`, and only the objects and arrays that are walked through cost more.
Offsets are in characters. Invalid JSON raises `JSONDecodeError`; unlimited nesting raises `RecursionError`.
`NaN` and `Infinity` are accepted, as Jupyter accepts them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from typing import Any

_BLANKS = re.compile(r"[ \t\n\r]*")
_decode_value = JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonItem:
    """A value of an array: from its first character to after its last."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonMember:
    """A key of an object with its value."""

    key: str
    at: int
    """Where the key's quote opens."""
    key_end: int
    start: int
    end: int
    """Of the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonObject:
    """An object: its members are between `start` and `end`, which include the braces."""

    start: int
    end: int
    members: tuple[JsonMember, ...]

    def find_member(self, key: str) -> JsonMember | None:
        return next((one for one in self.members if one.key == key), None)

    @property
    def repeated_key(self) -> str | None:
        """A key that occurs twice: readers would disagree about its value."""
        known = set[str]()
        for one in self.members:
            if one.key in known:
                return one.key
            known.add(one.key)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonArray:
    """An array: its items are between `start` and `end`, which include the brackets."""

    start: int
    end: int
    items: tuple[JsonItem, ...]


class JsonText:
    """A JSON text that is walked through from outside to inside."""

    def __init__(self, text: str) -> None:
        self.text = text

    def skip_blanks(self, at: int) -> int:
        return _BLANKS.match(self.text, at).end()  # type: ignore[union-attr] - it matches nothing, too

    def read_value(self, at: int) -> tuple[Any, int]:
        """Return the value that begins here, and where it ends."""
        return _decode_value(self.text, at)

    def read_object(self, at: int, visit: Callable[[str, int], int]) -> JsonObject:
        """Walk through the object that begins here; `visit` gets each key and where its value begins, and says where it ends."""
        self._expect_sign("{", at)
        members = list[JsonMember]()
        here = self.skip_blanks(at + 1)
        while members or not self._has_sign("}", here):
            self._expect_sign('"', here)
            key, key_end = self.read_value(here)
            colon = self._expect_sign(":", self.skip_blanks(key_end))
            start = self.skip_blanks(colon)
            end = visit(key, start)
            members.append(JsonMember(key=key, at=here, key_end=key_end, start=start, end=end))
            here = self.skip_blanks(end)
            if self._has_sign("}", here):
                break
            here = self.skip_blanks(self._expect_sign(",", here))
        return JsonObject(start=at, end=here + 1, members=tuple(members))

    def read_array(self, at: int, visit: Callable[[int], int]) -> JsonArray:
        """Walk through the array that begins here; `visit` gets where each item begins, and says where it ends."""
        self._expect_sign("[", at)
        items = list[JsonItem]()
        here = self.skip_blanks(at + 1)
        while items or not self._has_sign("]", here):
            end = visit(here)
            items.append(JsonItem(start=here, end=end))
            here = self.skip_blanks(end)
            if self._has_sign("]", here):
                break
            here = self.skip_blanks(self._expect_sign(",", here))
        return JsonArray(start=at, end=here + 1, items=tuple(items))

    def expect_end(self, at: int) -> None:
        """Refuse anything but blanks from here on."""
        if self.skip_blanks(at) != len(self.text):
            raise JSONDecodeError("Extra data", self.text, self.skip_blanks(at))

    def _has_sign(self, sign: str, at: int) -> bool:
        return self.text.startswith(sign, at)

    def _expect_sign(self, sign: str, at: int) -> int:
        if not self._has_sign(sign, at):
            raise JSONDecodeError(f"Expecting '{sign}'", self.text, at)
        return at + 1
