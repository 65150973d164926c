"""Where the values of a JSON text stand. Nothing is rewritten: a caller that knows the place changes only that.

Values are read by the scanner of the standard library, which says where each of them ends; so a whole file is looked at
once, at the speed of `json.loads`, and only the objects and arrays that somebody walks through cost more.
Offsets are in characters. What is no JSON raises `JSONDecodeError`; nesting without end raises `RecursionError`.
`NaN` and `Infinity` are taken, as Jupyter takes them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from typing import Any

_BLANK = re.compile(r"[ \t\n\r]*")
_decode = JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A value of an array: from its first character to behind its last."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
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
    """An object: its members stand between `start` and `end`, which include the braces."""

    start: int
    end: int
    members: tuple[Member, ...]

    def member(self, key: str) -> Member | None:
        """Return the member of that key."""
        return next((one for one in self.members if one.key == key), None)

    @property
    def repeated(self) -> str | None:
        """A key that stands twice: readers would disagree about its value."""
        known = set[str]()
        for one in self.members:
            if one.key in known:
                return one.key
            known.add(one.key)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonArray:
    """An array: its items stand between `start` and `end`, which include the brackets."""

    start: int
    end: int
    items: tuple[Item, ...]


class JsonText:
    """A JSON text that is walked through from outside to inside."""

    def __init__(self, text: str) -> None:
        self.text = text

    def skip(self, at: int) -> int:
        """Return where the blanks from here on end."""
        return _BLANK.match(self.text, at).end()  # type: ignore[union-attr] - it matches nothing, too

    def value(self, at: int) -> tuple[Any, int]:
        """Return the value that begins here, and where it ends."""
        return _decode(self.text, at)

    def object(self, at: int, visit: Callable[[str, int], int]) -> JsonObject:
        """Walk through the object that begins here; `visit` gets each key and where its value begins, and says where it ends."""
        self._expect("{", at)
        members = list[Member]()
        here = self.skip(at + 1)
        while members or not self._is("}", here):
            self._expect('"', here)
            key, key_end = self.value(here)
            colon = self._expect(":", self.skip(key_end))
            start = self.skip(colon)
            end = visit(key, start)
            members.append(Member(key=key, at=here, key_end=key_end, start=start, end=end))
            here = self.skip(end)
            if self._is("}", here):
                break
            here = self.skip(self._expect(",", here))
        return JsonObject(start=at, end=here + 1, members=tuple(members))

    def array(self, at: int, visit: Callable[[int], int]) -> JsonArray:
        """Walk through the array that begins here; `visit` gets where each item begins, and says where it ends."""
        self._expect("[", at)
        items = list[Item]()
        here = self.skip(at + 1)
        while items or not self._is("]", here):
            end = visit(here)
            items.append(Item(start=here, end=end))
            here = self.skip(end)
            if self._is("]", here):
                break
            here = self.skip(self._expect(",", here))
        return JsonArray(start=at, end=here + 1, items=tuple(items))

    def ends_at(self, at: int) -> None:
        """Refuse anything but blanks from here on."""
        if self.skip(at) != len(self.text):
            raise JSONDecodeError("Extra data", self.text, self.skip(at))

    def _is(self, sign: str, at: int) -> bool:
        return self.text.startswith(sign, at)

    def _expect(self, sign: str, at: int) -> int:
        if not self._is(sign, at):
            raise JSONDecodeError(f"Expecting '{sign}'", self.text, at)
        return at + 1
