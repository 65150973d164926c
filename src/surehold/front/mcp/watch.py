"""Notices that watched resources changed, by looking at them now and then."""

from collections import Counter
from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread

EVERY = 0.5


class Watch:
    """Looks at the resources that somebody wants to hear about; at nothing when there are none."""

    def __init__(
        self, mark: Callable[[str], str], tell: Callable[[str], Awaitable[None]], *, every: float = EVERY
    ) -> None:
        self._mark = mark
        self._tell = tell
        self._every = every
        self._wanted = Counter[str]()
        self._marks = dict[str, str]()
        self._wake = anyio.Event()

    async def add(self, uri: str) -> None:
        """Begin to look at a resource; what it is now is what changes are measured against."""
        if uri not in self._marks:
            self._marks[uri] = await anyio.to_thread.run_sync(self._mark, uri)
        self._wanted[uri] += 1
        self._wake.set()

    def drop(self, uri: str) -> None:
        """Look no longer, when nobody else wants to hear of it."""
        self._wanted[uri] -= 1
        if self._wanted[uri] <= 0:
            del self._wanted[uri]
            self._marks.pop(uri, None)

    async def run(self) -> None:
        """Look and tell, until cancelled."""
        while True:
            if not self._wanted:
                self._wake = anyio.Event()
                await self._wake.wait()
            await anyio.sleep(self._every)
            for uri in list(self._wanted):
                await self._look(uri)

    async def _look(self, uri: str) -> None:
        mark = await anyio.to_thread.run_sync(self._mark, uri, abandon_on_cancel=True)
        if uri in self._wanted and mark != self._marks.get(uri):
            self._marks[uri] = mark
            await self._tell(uri)
