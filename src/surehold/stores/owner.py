"""Identifies the process that holds an intent, and tells whether that process has provably ended.

1. A process is called dead only when that is proven; in any doubt it counts as alive, and the lease decides.
2. A pid is only meaningful inside its pid namespace, so a namespace of its own is part of the host's name.
3. What was found out about an owner is believed for a moment: many callers ask about the same few processes.
"""

import os
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")
_FIRST_PID_NAMESPACE = "pid:[4026531836]"  # a constant of Linux: the namespace of the machine itself
_STATE, _PARENT, _THREADS, _STARTED = 0, 1, 17, 19  # fields 3, 4, 20 and 22 of /proc/<pid>/stat, counted after the name
_LAUNCHERS = frozenset({"uv", "uvx"})
"""Programs that run nothing but the one that they start, and wait for it: who started them is the parent."""
_BELIEVED_SECONDS = 0.1


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
    here = current_owner()
    if owner.host != here.host:
        return False
    if owner.boot and here.boot and owner.boot != here.boot:
        return True
    try:
        os.kill(owner.pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        pass  # it exists, and belongs to another user
    facts = _proc_stat(owner.pid)
    if facts is None:
        return False
    zombie = facts[_STATE] in {"Z", "X"} and int(facts[_THREADS]) <= 1
    return zombie or (owner.started not in {"", facts[_STARTED]})


def was_dead_lately(owner: Owner) -> bool:
    """Tell whether the owner no longer ran when that was last looked at, a tenth of a second ago at most."""
    return _is_dead_since(owner, int(time.monotonic() / _BELIEVED_SECONDS))


@lru_cache(maxsize=256)
def _is_dead_since(owner: Owner, _moment: int) -> bool:
    return is_dead(owner)


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
