"""A session whose calls are awaited. They happen in threads; a call that is cancelled is done or not done, and says which.

1. At most `_MAX_WORKING` calls of an event loop work at the same time. The others wait for their turn before they begin.
2. A call that asks a person works no longer: it makes room for another one, and does not wait for room when it is answered.
"""

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakKeyDictionary

from surehold.errors import Cancelled
from surehold.library.call_threads import start_in_thread
from surehold.library.tool_methods import CANCELLED, AsyncToolMethods, ToolNamespace
from surehold.tools.call import Answer
from surehold.workspace.access.permission import BEFORE_ASKING, check_approver

if TYPE_CHECKING:
    from surehold.library.session import AgentSession
    from surehold.stores.conversations import SessionTurn
    from surehold.workspace.access.permission import Approval, Approver, PermissionRequest

R = TypeVar("R")
_LOOK_SECONDS = 0.1
_MAX_WORKING = 32
_NOT_DONE = "The call was cancelled. Nothing was written."
_ROOMS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
AsyncApprover = Callable[["PermissionRequest"], Awaitable["Approval | bool"]]


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """The message that answers a model's call, and what the tool had answered."""

    message: dict[str, Any]
    answer: Answer | None


async def call_in_thread(function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """Call a function in a thread; when the task is cancelled, wait until it is known what became of the call."""
    stop, context, loop = threading.Event(), copy_context(), asyncio.get_running_loop()
    make_room = await _enter_room(loop)
    context.run(CANCELLED.set, stop.is_set)
    context.run(BEFORE_ASKING.set, lambda: _tell_loop(loop, make_room))
    try:
        future = asyncio.wrap_future(start_in_thread(lambda: context.run(function, *args, **kwargs)))
    except BaseException:
        make_room()
        raise
    future.add_done_callback(lambda _: make_room())
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


async def _enter_room(loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    """Wait until there is room for one more call; return what makes room again, once."""
    room = _ROOMS.setdefault(loop, asyncio.Semaphore(_MAX_WORKING))
    try:
        await room.acquire()
    except asyncio.CancelledError as cancel:
        cancel.add_note(_NOT_DONE)
        raise
    releases = iter([room.release])
    return next(releases, lambda: None)


def _tell_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # it has ended, so no other call waits in it
        loop.call_soon_threadsafe(callback)


def _describe_outcome(future: asyncio.Future[Any]) -> str:
    error = future.exception()
    result = None if error else future.result()
    result = result.answer if isinstance(result, AnsweredCall) else result
    error = error or getattr(result, "error", None)  # an answer may be a refusal
    if isinstance(error, Cancelled):
        return _NOT_DONE
    if error is not None:
        return f"The call failed by itself: {error}"
    # Answers, and calls that may make several changes, list them; other results have one.
    changes = getattr(result, "change_ids", ()) or [name for name in (getattr(result, "change_id", ""),) if name]
    if len(changes) > 1:
        return f"The call could not be taken back any more: its changes are {', '.join(changes)}."
    if changes:
        return f"The call could not be taken back any more: its change is {changes[0]}."
    return "The call went on to its end."


def plain_approver(approver: "Approver | AsyncApprover | None") -> "Approver | None":
    """Return an approver that a thread can call; what it returns may be awaited, in the event loop of now."""
    if approver is None:
        return None
    check_approver(cast("Approver", approver))
    loop = asyncio.get_running_loop()

    def ask_from_thread(request: "PermissionRequest") -> "Approval | bool":
        answer: Any = approver(request)
        return _wait_in_thread(answer, loop) if inspect.isawaitable(answer) else answer

    return ask_from_thread


def _wait_in_thread(awaitable: Awaitable[R], loop: asyncio.AbstractEventLoop) -> R:
    """Wait for what the event loop does; a cancelled call stops waiting."""
    answer = asyncio.run_coroutine_threadsafe(_await(awaitable), loop)
    while True:
        try:
            return answer.result(timeout=_LOOK_SECONDS)
        except TimeoutError:
            if answer.done():
                raise
            if CANCELLED.get()():
                answer.cancel()
                raise Cancelled("The call was cancelled.") from None


async def _await(awaitable: Awaitable[R]) -> R:
    return await awaitable


class AsyncTools:
    """Lends the methods of an object, each of them awaited."""

    def __init__(self, target: Any) -> None:
        self._target = target

    if not TYPE_CHECKING:  # for type checkers the stub names every method, so that they notice a wrong one

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

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), "plain"})

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
