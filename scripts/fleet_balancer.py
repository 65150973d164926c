"""The balancer of `make fleet`: each new connection goes to the next replica that says it is ready."""

import asyncio
import itertools
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic, sleep

_WAIT_SECONDS = 30
"""How long a connection, or the start of the fleet, waits for a replica that is ready."""


class Balancer:
    """Pass each new connection to the next replica that says it is ready."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = ports
        self._ready = set[int]()
        self._turns = itertools.cycle(ports)
        self._loop = asyncio.new_event_loop()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait_for(self, count: int) -> None:
        """Return when so many replicas are ready."""
        end = monotonic() + 2 * _WAIT_SECONDS
        while len(self._ready) < count:
            if monotonic() > end:
                raise SystemExit("The replicas do not become ready.")
            sleep(0.02)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._main.cancel)
        self._thread.join()

    def _run(self) -> None:
        self._main = self._loop.create_task(self._serve())
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._main)
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self) -> None:
        async with await asyncio.start_server(self._pass_on, sock=self._listener):
            await asyncio.gather(*map(self._watch, self._ports))

    async def _watch(self, port: int) -> None:
        while True:
            if await _is_ready(port):
                self._ready.add(port)
            else:
                self._ready.discard(port)
            await asyncio.sleep(0.2)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.CancelledError):
            there, back = await self._connect()
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        end = monotonic() + _WAIT_SECONDS
        while monotonic() < end:
            port = next(self._turns)
            if port in self._ready:
                try:
                    return await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    self._ready.discard(port)
            elif not self._ready:
                await asyncio.sleep(0.02)
        raise ConnectionRefusedError


async def _is_ready(port: int) -> bool:
    try:
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET /readyz HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            line = await reader.readline()
            writer.close()
    except (OSError, TimeoutError):
        return False
    return b" 200 " in line


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until their end; an end of one side ends the other."""
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    finally:
        with suppress(OSError):
            writer.close()
