"""Asks the person at the editor. Whatever is not a clear yes is a no.

It is called in the thread of a tool, and waits there; the question itself goes over the loop. No lock is held meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError
from typing import NoReturn

from surehold.errors import Cancelled, PermissionRequired
from surehold.front.acp.halt import Halt
from surehold.front.mcp.strings import valid
from surehold.workspace.permission import Approval, PermissionRequest

Ask = Callable[[PermissionRequest], Awaitable[Approval]]


class EditorApprover:
    """Turns a question of the workspace into one to the client, and waits for the answer."""

    def __init__(self, ask: Ask, *, loop: asyncio.AbstractEventLoop, halt: Halt, patience: float) -> None:
        self._ask = ask
        self._loop = loop
        self._halt = halt
        self._patience = patience

    def __call__(self, request: PermissionRequest) -> Approval:
        """Return what the person said; raise when there is no answer."""
        question = self._question(request)
        try:
            approval = asyncio.run_coroutine_threadsafe(question, self._loop).result()
        except TimeoutError:
            _refuse(f"Nobody answered within {self._patience:g} seconds.", "approval_timeout")
        except (CancelledError, ConnectionError, RuntimeError):
            question.close()  # a loop that has ended never began it
            self._go_on()
            _refuse("The client went away before it answered.", "client_gone")
        except Exception as error:  # noqa: BLE001 - whatever a client does instead of answering is no approval
            _refuse(f"The client could not ask: {valid(str(error))[:200]}.", "approval_failed")
        self._go_on()
        return approval

    async def _question(self, request: PermissionRequest) -> Approval:
        self._halt.asking()
        async with asyncio.timeout(self._patience):
            return await self._ask(request)

    def _go_on(self) -> None:
        if self._halt.is_pulled:
            raise Cancelled("The call was cancelled while somebody was asked.")


def _refuse(message: str, reason: str) -> NoReturn:
    raise PermissionRequired(
        message, reason=reason, action="Ask the person, and make the change again if it is wanted."
    )
