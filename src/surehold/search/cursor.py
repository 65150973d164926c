"""Where a page ended, as a text that says nothing to anybody else."""

import base64
import binascii
import json
import zlib

from surehold.errors import InvalidArgument


def cursor(question: object, *place: object) -> str:
    """Write down a place in the answer to a question."""
    data = json.dumps([_mark(question), *place], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def place(question: object, text: str) -> list[object]:
    """Read a place; refuse one that belongs to another question."""
    try:
        mark, *found = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, TypeError, binascii.Error):
        mark, found = None, []
    if mark != _mark(question):
        raise InvalidArgument(
            "This cursor belongs to another call.",
            reason="bad_cursor",
            action="Repeat the call with the same arguments, or leave the cursor out to begin again.",
        )
    return found


def _mark(question: object) -> int:
    return zlib.crc32(repr(question).encode("utf-8", "surrogatepass"))
