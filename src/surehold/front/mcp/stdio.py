"""Serves MCP over standard input and output, without a protocol library.

1. While it serves, descriptor 0 is empty and descriptor 1 is standard error: what a library prints never reaches the
   client.
2. One thread reads, others work. Whoever has a message sends it, and none of them waits for the client to read it.
3. A client that neither reads nor disconnects cannot keep the server from ending.
4. The workspace is opened by the first call, or when the client is quiet after it has heard what the server offers.
5. It ends when the client closes its end, or on SIGTERM, SIGINT, SIGHUP or SIGQUIT. Running calls get a moment; changes get
   as long as they need.
"""

import os
import select
import signal
import threading
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from surehold.disk.side_threads import WorkerThreads
from surehold.front.mcp.connection import ClientConnection
from surehold.front.mcp.json_rpc import encode_message, parse_line
from surehold.front.shared.stdio_lines import LineSplitter, OutgoingEnd, StdioDescriptors, read_chunk, write_all

if TYPE_CHECKING:
    from surehold.front.mcp.adapter import Adapter
    from surehold.front.mcp.catalog import ServerCatalog
    from surehold.front.mcp.json_rpc import Json

_INTERRUPTED_EXIT_CODE = 130
_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_GRACE_SECONDS = 1.0
"""Seconds that running reads still get when the server ends."""
_FLUSH_SECONDS = 2.0
_CHANGE_WAIT_SECONDS = 30.0
"""Seconds that changes get whose client has left."""
_QUIET_MS: "int | None" = 100
"""How long a client must be quiet before the workspace is opened for its first call."""
_MAX_THREADS = 48
"""More than calls can wait for approval: the others go on."""


def serve_stdio(catalog: "ServerCatalog", open_adapter: "Callable[[], Adapter]", pipes: StdioDescriptors) -> int:
    """Serve one client until it leaves; return the exit code. If the workspace cannot be opened, it ends too."""
    ending = EndingBell()
    sender = LineSender(OutgoingEnd(pipes.outgoing), when_gone=ending.ring)
    connection = ClientConnection(
        catalog, open_adapter, send=sender.send_message, start=WorkerThreads(_MAX_THREADS).start, when_lost=ending.ring
    )
    try:
        _read_until_end(pipes.incoming, connection, sender, ending)
        connection.finish_calls(_GRACE_SECONDS, has_reader=sender.has_reader)
        connection.close()
        sender.flush(_FLUSH_SECONDS)
    finally:
        connection.wait_for_changes(_CHANGE_WAIT_SECONDS)
        ending.close()
    return ending.code


def _read_until_end(incoming: int, connection: ClientConnection, sender: "LineSender", ending: "EndingBell") -> None:
    splitter, poll, quiet_ms = LineSplitter(), select.poll(), _QUIET_MS
    poll.register(incoming, select.POLLIN)
    poll.register(ending.descriptor, select.POLLIN)
    while True:
        ready = poll.poll(quiet_ms)
        if any(descriptor == ending.descriptor for descriptor, _ in ready):
            return
        if not ready:
            connection.open_early()
            quiet_ms = None
            continue
        chunk = read_chunk(incoming)
        for line in splitter.split_chunk(chunk) if chunk else (splitter.last_line(),):
            _take_line(line, connection, sender)
        if not chunk:
            return


def _take_line(line: bytes, connection: ClientConnection, sender: "LineSender") -> None:
    found = parse_line(line)
    if not isinstance(found, tuple):
        connection.take_message(found)
        return
    for reply in found:
        sender.send_message(reply)


class EndingBell:
    """Wakes the reading thread when the server must end. A second signal ends it at once, which is safe for every file."""

    def __init__(self) -> None:
        self.code = 0
        self._asked = False
        self.descriptor, self._other_end = os.pipe()
        os.set_blocking(self._other_end, False)
        self._before = {
            number: signal.signal(number, self._take_signal)
            for number in _ENDING_SIGNALS
            if signal.getsignal(number) != signal.SIG_IGN  # as under nohup
        }

    def ring(self) -> None:
        os.write(self._other_end, b"!")

    def close(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take_signal(self, number: int, _: FrameType | None) -> None:
        if self._asked:
            os._exit(128 + number)
        self._asked = True
        self.code = _INTERRUPTED_EXIT_CODE if number == signal.SIGINT else 0
        self.ring()


class LineSender:
    """The one writer: sends messages in the order in which they come, and lets no one wait for the client."""

    def __init__(self, end: OutgoingEnd, *, when_gone: Callable[[], None]) -> None:
        self._end = end
        self._when_gone = when_gone
        self._unsent = deque[bytes]()
        self._changed = threading.Condition()
        self._is_gone = False
        self._thread: threading.Thread | None = None

    def send_message(self, message: "Json") -> None:
        """Send it now if the pipe takes it, else leave it to a thread."""
        line = encode_message(message) + b"\n"
        with self._changed:
            if self._is_gone:
                return
            if self._unsent or not self._end.can_write_now(len(line)):
                self._leave_to_thread(line)
                return
            is_written = self._write(line)
        if not is_written:
            self._when_gone()

    def has_reader(self) -> bool:
        return self._end.has_reader

    def flush(self, seconds: float) -> None:
        """Wait until everything has left, but not longer than this."""
        with self._changed:
            self._changed.wait_for(lambda: not self._unsent or self._is_gone, seconds)

    def _leave_to_thread(self, line: bytes) -> None:
        self._unsent.append(line)
        if self._thread is None:
            self._thread = threading.Thread(target=self._send_unsent, daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _send_unsent(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._unsent)
                line = self._unsent[0]
            is_written = self._write(line)
            with self._changed:
                self._unsent.popleft()  # only now: what comes in between must come after it
                self._changed.notify_all()
            if not is_written:
                self._when_gone()
                return

    def _write(self, data: bytes) -> bool:
        try:
            write_all(self._end.descriptor, data)
        except OSError:  # the client has left
            self._is_gone = True
        return not self._is_gone
