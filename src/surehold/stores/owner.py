"""The process that holds an intent: whether it has provably ended, and the leases of the changes that this one makes.

1. A process is called dead only when that is proven. One that can be seen decides by itself whether it lives; of one that
   cannot (another machine, another pid namespace, a hidden /proc) the lease decides.
2. A pid is only meaningful inside its pid namespace, so a namespace of its own is part of the host's name.
3. What was found out about an owner is believed for a moment: many callers ask about the same few processes.
4. A change that takes long (a large file, a disk that waits) is renewed by a thread, so that no other machine settles it. The
   thread runs only while there is something to keep.
5. A lease that another process ended is noticed by the thread or at the fence, before anything of the change is visible.
6. A change that was given up stays open, and its process lives: so this process itself settles it when disk and store answer
   again, at the next call on its paths or by the thread.
"""

import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from surehold.errors import LOG, StateUnavailable, SureholdError, spell

if TYPE_CHECKING:
    from surehold.stores.base import Busy, Intent, Store

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
_FIRST_PID_NAMESPACE = "pid:[4026531836]"  # a constant of Linux: the namespace of the machine itself
_STATE, _PARENT, _THREADS, _STARTED = 0, 1, 17, 19  # fields 3, 4, 20 and 22 of /proc/<pid>/stat, counted after the name
_LAUNCHERS = frozenset({"uv", "uvx"})
"""Programs that run nothing but the one that they start, and wait for it: who started them is the parent."""
_BELIEVED_SECONDS = 0.1

_ID_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_CHARS = 26

_Life = Literal["alive", "dead", "unseen"]


def new_id() -> str:
    """Return the id of a new intent, and so of its change; ids begin with their time."""
    milliseconds = int(datetime.now(UTC).timestamp() * 1000)
    number = milliseconds << 80 | int.from_bytes(os.urandom(10))
    return "".join([_ID_LETTERS[number >> shift & 31] for shift in range(5 * (_ID_CHARS - 1), -1, -5)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The process that holds an intent."""

    host: str
    boot: str
    pid: int
    started: str
    """When the process started, in the kernel's own words: tells a reused pid from the old one."""


def current_owner() -> Owner:
    """Name this process; after a fork, the child."""
    return _describe_process(os.getpid())


def parent_owner() -> Owner | None:
    """Name the process that started this one, by a launcher or directly; None if it cannot be told from others."""
    pid = os.getppid()
    while _command_name(pid) in _LAUNCHERS and (facts := _proc_stat(pid)):
        pid = int(facts[_PARENT])
    parent = _describe_process(pid)
    is_init = parent.pid == 1 and "/" not in parent.host  # it adopts every process whose parent has ended
    return parent if parent.started and not is_init else None


def is_dead(owner: Owner) -> bool:
    """Tell whether the owner provably no longer runs."""
    return _look_for(owner) == "dead"


def counts_as_dead(owner: Owner, *, lease_over: bool) -> bool:
    """Tell whether anybody may settle what the owner left open; a tenth of a second ago at most that was looked at."""
    life = _look_lately(owner, int(time.monotonic() / _BELIEVED_SECONDS))
    return life == "dead" or (life == "unseen" and lease_over)


@lru_cache(maxsize=256)
def _look_lately(owner: Owner, _moment: int) -> _Life:
    return _look_for(owner)


def _look_for(owner: Owner) -> _Life:
    here = current_owner()
    if owner.host != here.host:
        return "unseen"
    if owner.boot and here.boot and owner.boot != here.boot:
        return "dead"
    try:
        os.kill(owner.pid, 0)
    except (ProcessLookupError, OverflowError):
        return "dead"
    except OSError:
        pass  # it exists, and belongs to another user
    facts = _proc_stat(owner.pid)
    if facts is None or not owner.started:  # it may be another process by now
        return "unseen"
    is_zombie = facts[_STATE] in {"Z", "X"} and int(facts[_THREADS]) <= 1
    return "dead" if is_zombie or owner.started != facts[_STARTED] else "alive"


@lru_cache(maxsize=2)
def _describe_process(pid: int) -> Owner:
    facts = _proc_stat(pid)
    return Owner(host=_host_name(), boot=_boot_id(), pid=pid, started=facts[_STARTED] if facts else "")


def _host_name() -> str:
    name = os.uname().nodename
    try:
        namespace = str(_PID_NAMESPACE.readlink())
    except OSError:
        return name
    return name if namespace == _FIRST_PID_NAMESPACE else f"{name}/{namespace}"


def _boot_id() -> str:
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def _command_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def _proc_stat(pid: int) -> list[str] | None:
    try:
        line = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name in brackets may hold anything, also brackets and blanks.
    return line.rpartition(b")")[2].decode("ascii").split()


_LONGEST_PAUSE_SECONDS = 2.5
_given_up: "dict[str, Intent]" = {}
"""The changes of this process whose end is open, in every workspace: no thread works on them now."""


class IntentLost(Exception):
    """An intent did not reach the disk, so nothing of its change was made visible."""

    def __init__(self, error: SureholdError) -> None:
        self.error = error


@dataclass(slots=True, kw_only=True)
class HeldLease:
    """The lease of one change that is under way."""

    store: "Store"
    intent_id: str
    seconds: float
    renewed: float
    pid: int
    lost: bool = False
    reach_disk: Callable[[], None] | None = None
    """Returns when the intent is on the disk, if that was not waited for."""

    def renew(self) -> None:
        at = time.monotonic()
        self.lost = not self.store.renew(self.intent_id, lease=self.seconds)
        self.renewed = at

    def check(self) -> None:
        """Wait for the disk, and refuse to go on when another process has settled the change; renew a lease that is half over."""
        try:
            if self.reach_disk is not None:
                self.reach_disk()
        except SureholdError as error:
            raise IntentLost(error) from None
        if not self.lost and time.monotonic() - self.renewed > self.seconds / 2:
            self.renew()
        if self.lost:
            raise StateUnavailable(
                "This change took so long that another process settled it.",
                reason="lease_lost",
                action=spell("Re-read the files and look at {} before trying again.", LOG),
            )


class LeaseKeeper:
    """Renews what this process has open in one store, and tries to settle what it gave up."""

    def __init__(self, store: "Store", *, settle: "Callable[[Intent], bool]") -> None:
        """`settle` closes a change that was given up, and tells whether that is done."""
        self._store, self._settle = store, settle
        self._held = dict[str, HeldLease]()
        self._waiting: dict[str, Intent] = {}
        self._thread: threading.Thread | None = None
        self._closed = threading.Event()
        self._pause_seconds = _LONGEST_PAUSE_SECONDS

    @contextmanager
    def hold(
        self, intent: "Intent", *, seconds: float, reach_disk: Callable[[], None] | None = None
    ) -> Generator[HeldLease]:
        """Keep the lease of a change that has just begun, until its end."""
        now, pid = time.monotonic(), os.getpid()
        lease = HeldLease(store=self._store, intent_id=intent.id, seconds=seconds, renewed=now, pid=pid)
        lease.reach_disk = reach_disk
        self._held[intent.id] = lease
        if seconds > 0:
            self._pause_seconds = min(self._pause_seconds, seconds / 4)
        self._watch()
        try:
            yield lease
        finally:
            self._held.pop(intent.id, None)

    def give_up(self, intent: "Intent") -> None:
        """Let anybody in this process settle a change that may still be open, as soon as that is possible."""
        _given_up[intent.id] = self._waiting[intent.id] = intent
        self._watch()

    def may_settle(self, busy: "Busy") -> bool:
        """Tell whether no process works on an open change now."""
        return busy.owner_is_dead or busy.intent.id in _given_up

    def list_given_up(self) -> "tuple[Intent, ...]":
        return tuple(_given_up.values())

    def forget(self, intent_id: str) -> None:
        """Know that a change was settled."""
        _given_up.pop(intent_id, None)
        self._waiting.pop(intent_id, None)

    def close(self) -> None:
        self._closed.set()

    def _watch(self) -> None:
        if self._thread is None or not self._thread.is_alive():  # none is left after a fork
            self._thread = threading.Thread(target=self._tend, name="surehold-leases", daemon=True)
            self._thread.start()

    def _tend(self) -> None:
        while not self._closed.wait(min(self._pause_seconds, _LONGEST_PAUSE_SECONDS)):
            for lease in self._due():
                with suppress(SureholdError):  # the store is away: the next round tries again
                    lease.renew()
            for intent in tuple(self._waiting.values()):
                with suppress(SureholdError):
                    if self._settle(intent):
                        self.forget(intent.id)
            if not self._held and not self._waiting:
                self._thread = None  # first: whoever comes now starts another
                if not self._held and not self._waiting:
                    return
                self._thread = threading.current_thread()

    def _due(self) -> list[HeldLease]:
        here, now = os.getpid(), time.monotonic()
        held = [one for one in tuple(self._held.values()) if one.pid == here and one.seconds > 0]
        return [one for one in held if not one.lost and now - one.renewed >= one.seconds / 4]
