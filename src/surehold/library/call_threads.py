"""Threads for calls that are awaited: each call has its own, so that none waits because others wait for a person; it can be taken back."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from surehold.workspace.proposal import ChangeRecord
from surehold.workspace.session import Session

if TYPE_CHECKING:
    from surehold.tools.spec import AnyTool

R = TypeVar("R")
S = TypeVar("S", bound=Session)


def with_cancellation(session: S, tool: "AnyTool", cancelled: Callable[[], bool]) -> S:
    """Return the same conversation for one call, which is refused last of all if it was cancelled while it was planned."""
    if tool.hints.read_only or session.permission.record:
        return session
    return session.with_record(ChangeRecord(cancelled=cancelled))


def start_in_thread(function: Callable[[], R]) -> "Future[R]":
    """Call a function in a new thread. The interpreter waits for it at its end: what it does is done or not done."""
    future: Future[R] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 - whoever waits for the call gets it
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name="surehold-call").start()
    return future
