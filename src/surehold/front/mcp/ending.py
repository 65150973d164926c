"""How a server is asked to end."""

import os
import signal

import anyio

INTERRUPTED = 130


class Ending:
    """Hears SIGTERM and SIGINT; a second one ends the program at once, which no file minds."""

    def __init__(self) -> None:
        self.asked = anyio.Event()
        self.code = 0

    async def run(self) -> None:
        """Listen, until cancelled."""
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for number in signals:
                if self.asked.is_set():
                    os._exit(128 + number)
                self.code = INTERRUPTED if number == signal.SIGINT else 0
                self.asked.set()

    async def cancel(self, scope: anyio.CancelScope) -> None:
        """Cancel a scope when it is time to end."""
        await self.asked.wait()
        scope.cancel()
