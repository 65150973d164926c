"""A saboteur: counts the calls that touch the disk and strikes at the nth of them."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from surehold.disk.kernel import Kernel

CALLS = (
    *("open", "write", "pwrite", "read", "fstat", "stat", "fsync", "fchmod", "fchown", "ftruncate", "link", "listdir"),
    *("rename", "replace", "unlink", "mkdir", "rmdir", "listxattr", "setxattr", "removexattr", "utime"),
)
KERNEL_CALLS = ("open_beneath", "open_nameless", "give_name", "rename_new", "swap")


@dataclass(kw_only=True)
class Saboteur:
    """Strikes at the nth call."""

    when: int
    strike: Callable[[], None]
    count: int = 0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        for name in CALLS:
            patch.setattr(os, name, self._wrap(getattr(os, name)))
        for name in KERNEL_CALLS:
            patch.setattr(Kernel, name, self._wrap(getattr(Kernel, name)))

    def _wrap(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            if self.count == self.when:
                self.strike()
            return call(*args, **kwargs)

        return counted


def kill() -> None:
    """Die as the power switch makes us die."""
    os.kill(os.getpid(), signal.SIGKILL)


def failing(code: int) -> Callable[[], None]:
    """Return a strike that makes the call fail."""

    def fail() -> None:
        raise OSError(code, os.strerror(code))

    return fail


def in_child(work: Callable[[], None]) -> bool:
    """Run `work` in a child process and tell whether it lived to the end."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:  # noqa: BLE001  # the parent only wants to know that it failed
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status == 0 or os.WIFSIGNALED(status), "the child failed by itself"
    return status == 0
