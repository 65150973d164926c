"""A session whose calls are awaited. They happen in threads; a call that is cancelled is done or not done, and says which."""

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager
from contextvars import copy_context
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, TypeVar, cast

from surehold.errors import Cancelled
from surehold.library.tool_methods import CANCELLED, AsyncToolMethods, ToolNamespace
from surehold.tools.call import Answer

if TYPE_CHECKING:
    from surehold.library.session import AgentSession
    from surehold.stores.conversations import SessionTurn
    from surehold.workspace.access.permission import Approval, Approver, PermissionRequest

R = TypeVar("R")
_LOOK_SECONDS = 0.1
AsyncApprover = Callable[["PermissionRequest"], Awaitable["Approval | bool"]]


async def call_in_thread(function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """Call a function in a thread; when the task is cancelled, wait until it is known what became of the call."""
    stop, context = threading.Event(), copy_context()
    context.run(CANCELLED.set, stop.is_set)
    loop = asyncio.get_running_loop()
    future: asyncio.Future[R] = loop.run_in_executor(None, lambda: context.run(function, *args, **kwargs))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError as cancel:
        stop.set()
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                continue  # cancelled once more: the answer is the same
        cancel.add_note(_describe_outcome(future))
        raise


def _describe_outcome(future: asyncio.Future[Any]) -> str:
    if isinstance(error := future.exception(), Cancelled):
        return "The call was cancelled. Nothing was written."
    if error is not None:
        return f"The call had already failed: {error}"
    change_id = getattr(future.result(), "change_id", "")
    return f"The call had already ended: its change is {change_id}." if change_id else "The call had already ended."


def approver_in_loop(approver: AsyncApprover, loop: asyncio.AbstractEventLoop) -> "Approver":
    """Return an approver that asks a coroutine of the event loop, from a thread; a cancelled call stops asking."""

    def ask(request: "PermissionRequest") -> "Approval | bool":
        answer = asyncio.run_coroutine_threadsafe(_await(approver(request)), loop)
        while True:
            try:
                return answer.result(timeout=_LOOK_SECONDS)
            except TimeoutError:
                if answer.done():
                    raise
                if CANCELLED.get()():
                    answer.cancel()
                    raise Cancelled("The call was cancelled.") from None

    return ask


async def _await(awaitable: Awaitable[R]) -> R:
    return await awaitable


def plain_approver(approver: "Approver | AsyncApprover | None") -> "Approver | None":
    """Return an approver that a thread can call."""
    if inspect.iscoroutinefunction(approver):
        return approver_in_loop(approver, asyncio.get_running_loop())
    return cast("Approver | None", approver)


class AsyncTools:
    """Lends the methods of an object, each of them awaited."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if isinstance(found, ToolNamespace):
            return AsyncTools(found)
        if name.startswith("_") or not inspect.isroutine(found):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await call_in_thread(found, *args, **kwargs)

        return update_wrapper(call, found)

    def __dir__(self) -> list[str]:
        return dir(self._target)


class AsyncSession(AsyncTools, AsyncToolMethods):
    """One agent's conversation with one workspace; every method is awaited."""

    _target: "AgentSession"

    def __await__(self) -> "Generator[Any, None, AsyncSession]":
        """Let `await workspace.session(…)` work too."""
        yield from ()
        return self

    @property
    def plain(self) -> "AgentSession":
        """Return the session whose methods block."""
        return self._target

    def with_approver(self, approver: "Approver | AsyncApprover | None") -> "AsyncSession":
        return AsyncSession(self._target.with_approver(plain_approver(approver)))

    async def answer(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool by its name with plain data, as a model does; a refusal is an answer too."""
        return await call_in_thread(self._target.answer, name, arguments)

    @asynccontextmanager
    async def turn(self, title: str = "", *, id: str = "") -> "AsyncGenerator[SessionTurn]":  # noqa: A002 - it is the id
        """Mark what happens inside as one turn of the conversation."""
        block = self._target.turn(title, id=id)
        turn = await call_in_thread(block.__enter__)
        try:
            yield turn
        finally:
            await call_in_thread(block.__exit__, None, None, None)
