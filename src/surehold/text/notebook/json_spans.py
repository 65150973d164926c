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
class JsonMember:
    """A value in an object or an array: from its first character to after its last."""

    key: str
    """Empty in an array."""
    at: int
    """Where the key's quote opens; without a key, where the value begins."""
    key_end: int
    start: int
    end: int
    """Of the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonBlock:
    """An object or an array: its members are between `start` and `end`, which include the brackets."""

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


class JsonText:
    """A JSON text that is walked through from outside to inside."""

    def __init__(self, text: str) -> None:
        self.text = text

    def skip_blanks(self, at: int) -> int:
        return _BLANKS.match(self.text, at).end()  # type: ignore[union-attr] - it matches nothing, too

    def read_value(self, at: int) -> tuple[Any, int]:
        """Return the value that begins here, and where it ends."""
        return _decode_value(self.text, at)

    def read_object(self, at: int, visit: Callable[[str, int], int]) -> JsonBlock:
        """Walk through the object that begins here; `visit` gets each key and where its value begins, and says where it ends."""
        return self._read_block("{}", at, visit)

    def read_array(self, at: int, visit: Callable[[int], int]) -> JsonBlock:
        """Walk through the array that begins here; `visit` gets where each item begins, and says where it ends."""
        return self._read_block("[]", at, lambda _, start: visit(start))

    def read_items(self, at: int) -> JsonBlock:
        return self.read_array(at, lambda start: self.read_value(start)[1])

    def _read_block(self, brackets: str, at: int, visit: Callable[[str, int], int]) -> JsonBlock:
        opening, closing = brackets
        members, here = list[JsonMember](), self.skip_blanks(self._expect_sign(opening, at))
        while members or not self.text.startswith(closing, here):
            key, key_end, start = self._read_key(here) if opening == "{" else ("", here, here)
            end = visit(key, start)
            members.append(JsonMember(key=key, at=here, key_end=key_end, start=start, end=end))
            here = self.skip_blanks(end)
            if self.text.startswith(closing, here):
                break
            here = self.skip_blanks(self._expect_sign(",", here))
        return JsonBlock(start=at, end=here + 1, members=tuple(members))

    def _read_key(self, at: int) -> tuple[str, int, int]:
        """Return the key that begins here, where it ends, and where its value begins."""
        self._expect_sign('"', at)
        key, key_end = self.read_value(at)
        return key, key_end, self.skip_blanks(self._expect_sign(":", self.skip_blanks(key_end)))

    def expect_end(self, at: int) -> None:
        """Refuse anything but blanks from here on."""
        if self.skip_blanks(at) != len(self.text):
            raise JSONDecodeError("Extra data", self.text, self.skip_blanks(at))

    def _expect_sign(self, sign: str, at: int) -> int:
        if not self.text.startswith(sign, at):
            raise JSONDecodeError(f"Expecting '{sign}'", self.text, at)
        return at + 1
