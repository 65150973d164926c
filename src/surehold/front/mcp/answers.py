"""Answers that were too large for the host, kept until the server ends."""

import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence

from surehold.front.mcp.shelves import Plain
from surehold.tools.spec import Json

_PREFIX = "surehold://answer/"
_LARGEST = 64 << 20


class Answers(Plain):
    """Keeps whole answers under names that nobody can guess; the oldest go when there are too many."""

    def __init__(self, *, limit: int = _LARGEST) -> None:
        self._limit = limit
        self._kept = OrderedDict[str, tuple[str, str]]()
        self._lock = threading.Lock()

    def keep(self, text: str, mime_type: str) -> str:
        """Keep a text and return its address."""
        uri = _PREFIX + secrets.token_urlsafe(12)
        with self._lock:
            self._kept[uri] = (text, mime_type)
            while len(self._kept) > 1 and sum(len(kept) for kept, _ in self._kept.values()) > self._limit:
                self._kept.popitem(last=False)
        return uri

    def read(self, uri: str) -> Sequence[Json] | None:
        """Return an answer in full."""
        with self._lock:
            found = self._kept.get(uri)
        return [{"uri": uri, "mimeType": found[1], "text": found[0]}] if found else None
