"""A pool of decoding processes. They are started on demand, reused while they are idle, and exit on their own.

1. Nothing that a file does to a decoder reaches this process: a crash, a hang or too much memory is an error to report.
2. A process that did not finish its answer is killed and never used again.
3. No decoding library is imported here.
"""

import atexit
import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from surehold.errors import Cancelled, Unavailable
from surehold.media.child import DecodeRefusal, Json, Piece

_START = "import sys; sys.path += sys.argv[1:]; from surehold.media.child import main; main()"
_PASSED_VARIABLES = ("PATH", "LANG", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_POLL_SECONDS = 0.05
"""How often a waiting caller checks whether it was cancelled."""
_DEFAULT_SECONDS = 30.0
_PROCESSOR_SECONDS = 10.0
"""What an answer may take on an idle machine; on a busy one the clock runs longer."""
_EXIT_SECONDS = 5.0
_MAX_LINE_BYTES = 1 << 20
_MAX_BODY_BYTES = 64 << 20
_MAX_IDLE_WORKERS = 2
"""How many processes are kept for later calls."""


class DecoderGone(Exception):
    """The process ended in the middle of its answer."""


class DecoderSlow(Exception):
    """The process took too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeDeadline:
    """How long an answer may take, and whether the call was cancelled."""

    seconds: float = _DEFAULT_SECONDS
    """Seconds by the clock; the processor may work for fewer."""
    cancelled: Callable[[], bool] = lambda: False


def _package_paths() -> list[str]:
    """Return where our packages are: an isolated interpreter looks only where packages are installed."""
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [str(Path(__file__).parents[2]), *filter(os.path.isabs, named)]


class Worker:
    """One process, which answers one request after the other."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own module, in our own interpreter
                [sys.executable, "-I", "-c", _START, *_package_paths()],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ},
            )
        except OSError as error:
            ours.close()
            message = f"Could not start the decoder process: {error.strerror}."
            raise Unavailable(message, reason="decoder_failed") from error
        finally:
            theirs.close()
        self._socket = ours
        self._unread = bytearray()
        self._deadline = 0.0
        self._patience = DecodeDeadline()
        self.open_answer = False

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, request: Json, data: bytes = b"", *, patience: DecodeDeadline | None = None) -> Iterator[Piece]:
        """Send a request and yield its answer, piece by piece."""
        self._patience = patience or DecodeDeadline()
        self._deadline = time.monotonic() + self._patience.seconds
        self.open_answer = True
        seconds = math.ceil(min(self._patience.seconds, _PROCESSOR_SECONDS))
        head = {**request, "seconds": seconds, "size": len(data)}
        self._send_bytes(json.dumps(head).encode() + b"\n")
        self._send_bytes(data)
        while True:
            head, body = self._receive_piece()
            more = self.open_answer = bool(head.pop("more"))
            if "error" in head:
                raise DecodeRefusal(str(head["error"]), str(head["cause"]))
            if not more:
                return
            yield head, body

    def is_alive(self) -> bool:
        try:
            return any(True for _ in list(self.ask({"do": "ping"}, patience=DecodeDeadline(seconds=5))))
        except (DecoderGone, DecoderSlow, DecodeRefusal, ValueError):
            return False

    def shut_down(self) -> None:
        """Kill the process, whatever it is doing."""
        self._socket.close()
        with suppress(OSError):
            self._process.kill()
        self._process.wait()

    def forget_child(self) -> None:
        """Forget a process that belongs to the one we were forked from."""
        self._socket.close()
        self._process.returncode = 0  # it is not ours to wait for

    def _send_bytes(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            self._check_deadline()
            try:
                view = view[self._socket.send(view) :]
            except TimeoutError:
                continue
            except OSError as error:
                raise DecoderGone from error

    def _receive_piece(self) -> Piece:
        """Read one piece of an answer; anything else comes from a broken process."""
        try:
            head: Json = json.loads(self._receive_line())
            size, _ = int(head.pop("size")), head["more"]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DecoderGone from None
        if not 0 <= size <= _MAX_BODY_BYTES:
            raise DecoderGone
        return head, self._receive_bytes(size)

    def _receive_line(self) -> bytes:
        while (end := self._unread.find(b"\n")) < 0:
            if len(self._unread) > _MAX_LINE_BYTES:
                raise DecoderGone
            self._receive_more()
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return line

    def _receive_bytes(self, count: int) -> bytes:
        while len(self._unread) < count:
            self._receive_more()
        data = bytes(memoryview(self._unread)[:count])
        del self._unread[:count]
        return data

    def _receive_more(self) -> None:
        self._check_deadline()
        try:
            piece = self._socket.recv(1 << 20)
        except TimeoutError:
            return
        except OSError as error:
            raise DecoderGone from error
        if not piece:
            raise DecoderSlow if self._used_up_its_time() else DecoderGone
        self._unread += piece

    def _used_up_its_time(self) -> bool:
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(_EXIT_SECONDS) == -signal.SIGXCPU
        return False

    def _check_deadline(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise DecoderSlow
        if self._patience.cancelled():
            raise Cancelled("The call was cancelled.")
        self._socket.settimeout(min(left, _POLL_SECONDS))


class WorkerPool:
    """Lends processes to callers, a limited number at a time."""

    def __init__(self, *, most: int | None = None) -> None:
        self._idle = list[Worker]()
        self._lock = threading.Lock()
        self._most = most or max(2, os.cpu_count() or 2)
        self._seats = threading.Semaphore(self._most)

    @contextmanager
    def lend_worker(self, patience: DecodeDeadline | None = None) -> Generator[Worker]:
        """Lend a process; one that did not finish its answer is killed afterwards."""
        self._wait_for_seat(patience or DecodeDeadline())
        try:
            worker = self._take_idle_worker() or Worker()
            try:
                yield worker
            finally:
                self._put_back(worker)
        finally:
            self._seats.release()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.shut_down()

    def forget_workers(self) -> None:
        """Start without processes after a fork."""
        idle, self._idle = self._idle, []
        self._lock, self._seats = threading.Lock(), threading.Semaphore(self._most)
        for worker in idle:
            worker.forget_child()

    def _wait_for_seat(self, patience: DecodeDeadline) -> None:
        end = time.monotonic() + patience.seconds
        while not self._seats.acquire(timeout=_POLL_SECONDS):
            if patience.cancelled():
                raise Cancelled("The call was cancelled.")
            if time.monotonic() > end:
                raise Unavailable("The image and PDF decoder is busy.", reason="decoder_busy", action="Try again.")

    def _take_idle_worker(self) -> Worker | None:
        while True:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            if worker is None or worker.is_alive():
                return worker
            worker.shut_down()

    def _put_back(self, worker: Worker) -> None:
        with self._lock:
            if not worker.open_answer and len(self._idle) < _MAX_IDLE_WORKERS:
                self._idle.append(worker)
                return
        worker.shut_down()


WORKERS = WorkerPool()
"""The pool of this process."""
atexit.register(WORKERS.close)
os.register_at_fork(after_in_child=WORKERS.forget_workers)
