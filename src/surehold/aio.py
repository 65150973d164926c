"""The library, awaitable: the same names as in `surehold`, for programs with an event loop.

```python
from surehold import aio

async with aio.open_workspace("my-project") as workspace:
    done = await workspace.run(["make", "format"])
    await workspace.undo(done.change_id)
```

Everything happens in threads. To cancel a command ends it as a signal does, and what it changed until then is recorded; any
other call that has begun runs to its end.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from surehold.app import Settings
from surehold.app import open_workspace as open_plain_workspace
from surehold.library.command_run import RunReceipt, finish_run, start_run
from surehold.library.workspace import AgentWorkspace

if TYPE_CHECKING:
    from surehold.workspace.access.permission import Approver
    from surehold.workspace.session import Session

__all__ = ["AsyncWorkspace", "open_workspace"]

P = ParamSpec("P")
R = TypeVar("R")


def _in_thread(
    method: Callable[Concatenate[AgentWorkspace, P], R],
) -> Callable[Concatenate["AsyncWorkspace", P], Coroutine[Any, Any, R]]:
    """Return a method of the workspace as one that is awaited."""

    @wraps(method)
    async def call(self: "AsyncWorkspace", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self.workspace, *args, **kwargs)

    return call


class AsyncWorkspace:
    """One or several directories that agents may edit; every method is awaited."""

    def __init__(self, workspace: AgentWorkspace) -> None:
        self.workspace = workspace

    changes = _in_thread(AgentWorkspace.changes)
    undo = _in_thread(AgentWorkspace.undo)
    redo = _in_thread(AgentWorkspace.redo)

    async def run(
        self,
        argv: Sequence[str],
        *,
        session: "str | Session" = "",
        turn: str = "",
        agent: str = "",
        reason: str = "",
        stdin: bytes = b"",
        confine: bool = False,
        guard: int = 0,
        approver: "Approver | None" = None,
    ) -> RunReceipt:
        """Run a command in the first root and record what it changes; the approver is called in a thread."""
        run = start_run(
            self.workspace,
            argv,
            session=session,
            turn=turn,
            agent=agent,
            reason=reason,
            confine=confine,
            guard=guard,
            approver=approver,
        )
        return await finish_run(run, stdin)


@asynccontextmanager
async def open_workspace(
    *roots: str | os.PathLike[str], settings: Settings | None = None
) -> AsyncGenerator[AsyncWorkspace]:
    """Open one or several directories for editing, and close them at the end."""
    workspace = await asyncio.to_thread(open_plain_workspace, *roots, settings=settings)
    try:
        yield AsyncWorkspace(workspace)
    finally:
        await asyncio.to_thread(workspace.close)
