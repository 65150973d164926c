"""One tool call, from its announcement to its end.

1. It is reported as pending, then as in_progress, then as completed or failed; a question stands between the first two.
2. The tool runs in a thread. A change that has begun goes on to its end, whoever still listens.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from surehold.front.acp.approver import EditorApprover
from surehold.front.acp.cuts import MOST_INPUT, cut
from surehold.front.acp.diffs import shown
from surehold.front.acp.event import ToolEvent
from surehold.front.acp.halt import Halt
from surehold.front.acp.messenger import Messenger
from surehold.front.acp.places import asked_places, changed_places
from surehold.front.acp.titles import title
from surehold.front.acp.witness import Witness
from surehold.front.mcp.strings import half_a_character, has_surrogates
from surehold.tools.context import Budget, Context
from surehold.tools.spec import Answer, AnyTool
from surehold.workspace.permission import Approval, PermissionRequest
from surehold.workspace.session import Session


class ReportedCall:
    """A call whose every step is told to a client."""

    def __init__(
        self,
        tool: AnyTool,
        arguments: Mapping[str, Any],
        *,
        session: Session,
        root: str,
        messenger: Messenger,
        halt: Halt,
        patience: float,
    ) -> None:
        self._tool, self._arguments = tool, arguments
        self._messenger, self._halt = messenger, halt
        self._root = root
        self._loop = asyncio.get_running_loop()
        self._going: asyncio.Task[None] | None = None
        approver = EditorApprover(self._ask, loop=self._loop, halt=halt, patience=patience)
        self._witness = Witness(session, approver, on_free=self._go_soon)
        self._begun = ToolEvent(
            call_id=session.workspace.new_id(),
            status="pending",
            title=title(tool, arguments, roots=(root, *session.workspace.roots)),
            kind=tool.hints.kind,
            locations=asked_places(tool, arguments, root=self._root),
            raw_input=cut(dict(arguments), MOST_INPUT),
        )

    async def run(self, *, budget: Budget, unchecked: bool) -> Answer:
        """Announce the call, run it, and report how it ended."""
        await self._messenger.tell(self._begun)
        if self._tool.hints.read_only:
            self._go()
        context = Context(
            session=self._witness, budget=budget, unchecked=unchecked, cancelled=lambda: self._halt.is_pulled
        )
        try:
            answer = await asyncio.to_thread(self._run, context)
        except asyncio.CancelledError:
            self._halt.pull()
            raise
        if answer.ok:
            self._go()
        if self._going:
            await self._going
        await self._messenger.tell(self._ended(answer))
        return answer

    def _run(self, context: Context) -> Answer:
        tool = self._tool
        try:
            if not tool.hints.read_only and has_surrogates(self._arguments):
                return tool.refusal(half_a_character())
            return tool.call(context, self._arguments)
        except Exception as error:  # noqa: BLE001 - the last line of defence: the client must get an answer
            from surehold.front.report import bug

            return tool.refusal(bug(error, ["acp", tool.name]))

    async def _ask(self, request: PermissionRequest) -> Approval:
        approval = await self._messenger.ask(self._begun, request, root=self._root)
        if approval.allowed:
            self._go()
        return approval

    def _go(self) -> None:
        """Report, once, that nothing stands in its way any more."""
        if self._going is None:
            running = ToolEvent(call_id=self._begun.call_id, status="in_progress")
            self._going = self._loop.create_task(self._messenger.tell(running))

    def _go_soon(self) -> None:
        """Report it from another thread."""
        with suppress(RuntimeError):  # the loop has ended; the change has not
            self._loop.call_soon_threadsafe(self._go)

    def _ended(self, answer: Answer) -> ToolEvent:
        files = self._witness.files
        seen = shown(files, root=self._root)
        return ToolEvent(
            call_id=self._begun.call_id,
            status="completed" if answer.ok else "failed",
            locations=changed_places(files, root=self._root),
            raw_output=answer.data,
            text="\n".join((answer.text, *seen.notes)),
            diff=str(answer.data.get("diff") or "") or "".join(one.change.diff for one in files),
            diffs=seen.diffs,
            content=answer.content,
            change_id=self._witness.change_id,
        )
