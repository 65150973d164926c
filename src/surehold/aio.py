"""The library, awaitable: the same names as in `surehold`, for programs with an event loop.

```python
from surehold import aio

async with aio.open_workspace("my-project") as workspace:
    agent = workspace.session(agent="me")
    page = await agent.read_file("README.md")
    done = await workspace.run(["make", "format"])
    await workspace.undo(done.change_id)
```

Everything happens in threads. To cancel a command ends it as a signal does, and what it changed until then is recorded. Any
other call that is cancelled is done or not done, never half: the error is raised when that is known, and has a note of it.
"""

import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from surehold.app import Settings
from surehold.app import open_workspace as open_plain_workspace
from surehold.library.arguments import require_bytes
from surehold.library.async_session import AsyncApprover, AsyncSession, call_in_thread, plain_approver
from surehold.library.command_run import RunReceipt, finish_run, start_run
from surehold.library.families import DEFAULT_FAMILIES
from surehold.library.python_words import speak_python
from surehold.library.workspace import AgentWorkspace

if TYPE_CHECKING:
    from surehold.tools.call import Answer
    from surehold.workspace.access.permission import Approver
    from surehold.workspace.session import Session
    from surehold.workspace.settings import Mode

__all__ = ["AsyncSession", "AsyncWorkspace", "dispatch", "open_workspace"]

P = ParamSpec("P")
R = TypeVar("R")


def _in_thread(
    method: Callable[Concatenate[AgentWorkspace, P], R],
) -> Callable[Concatenate["AsyncWorkspace", P], Coroutine[Any, Any, R]]:
    """Return a method of the workspace as one that is awaited."""

    @wraps(method)
    async def call(self: "AsyncWorkspace", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await call_in_thread(method, self.workspace, *args, **kwargs)

    return call


class AsyncWorkspace:
    """One or several directories that agents may edit; every method is awaited."""

    def __init__(self, workspace: AgentWorkspace) -> None:
        self.workspace = workspace

    changes = _in_thread(AgentWorkspace.changes)
    undo = _in_thread(AgentWorkspace.undo)
    redo = _in_thread(AgentWorkspace.redo)
    recover = _in_thread(AgentWorkspace.recover)
    close = _in_thread(AgentWorkspace.close)

    def session(
        self,
        *,
        agent: str = "",
        id: str = "",  # noqa: A002 - it is the id
        mode: "Mode | None" = None,
        approver: "Approver | AsyncApprover | None" = None,
    ) -> AsyncSession:
        """Begin a session, or continue the one of that id; the approver may be a coroutine function."""
        plain = self.workspace.session(agent=agent, id=id, mode=mode, approver=plain_approver(approver))
        return AsyncSession(plain)

    async def run(
        self,
        argv: Sequence[str],
        *,
        session: "str | Session | AsyncSession" = "",
        turn: str = "",
        agent: str = "",
        reason: str = "",
        stdin: bytes = b"",
        confine: bool = False,
        guard: int | None = None,
        approver: "Approver | AsyncApprover | None" = None,
    ) -> RunReceipt:
        """Run a command in the first root and record what it changes; the approver may be a coroutine function."""
        require_bytes("stdin", stdin)
        with speak_python():
            run = start_run(
                self.workspace,
                argv,
                session=session.plain if isinstance(session, AsyncSession) else session,
                turn=turn,
                agent=agent,
                reason=reason,
                confine=confine,
                guard=guard,
                approver=plain_approver(approver),
            )
            return await finish_run(run, stdin)


@asynccontextmanager
async def open_workspace(
    *roots: str | os.PathLike[str],
    settings: Settings | None = None,
    state: str | os.PathLike[str] | None = None,
    blobs: str | os.PathLike[str] | None = None,
) -> AsyncGenerator[AsyncWorkspace]:
    """Open one or several directories for editing, and close them at the end; the approver may be a coroutine function."""
    if settings is not None:
        settings = replace(settings, approver=plain_approver(settings.approver))
    workspace = await call_in_thread(open_plain_workspace, *roots, settings=settings, state=state, blobs=blobs)
    try:
        yield AsyncWorkspace(workspace)
    finally:
        await call_in_thread(workspace.close)


async def dispatch(session: AsyncSession, call: Any, tools: str = DEFAULT_FAMILIES) -> dict[str, Any]:
    """Do what a model asked for with a tool call, and return the message that answers it."""
    from surehold.library.async_session import AnsweredCall
    from surehold.library.model_calls import dispatch_noting

    plain = session.plain if isinstance(session, AsyncSession) else session  # pyright: ignore[reportUnnecessaryIsInstance]

    def answer() -> AnsweredCall:
        answers = list["Answer"]()
        message = dispatch_noting(plain, call, tools, note=answers.append)
        return AnsweredCall(message, answers[-1] if answers else None)

    return (await call_in_thread(answer)).message
