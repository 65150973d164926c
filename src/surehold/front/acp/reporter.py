"""Runs tool calls for an ACP session: the client sees every call, and is asked before a change.

```python
reporter = Reporter(conn, session_id, workspace.session(agent="my-agent", mode="default"))
answer = await reporter.call("multi_edit_text_file", {"path": "/project/a.py", "edits": […]})
```

1. A call is reported as pending, then in_progress, then completed or failed; a question comes between the first two.
2. The tool runs in a thread. A change that has begun always runs to its end, even when the client has left.
"""

import asyncio
import shlex
import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from surehold.errors import SureholdError
from surehold.front.acp.client import ClientChannel
from surehold.front.acp.events import MAX_INPUT_BYTES, Dialect, ToolEvent, cut_texts
from surehold.front.acp.file_diffs import preview_changes
from surehold.front.acp.locations import call_title, changed_locations, requested_locations
from surehold.front.shared.approval_queue import ANSWER_SECONDS, ApprovalQueue
from surehold.front.shared.bug_report import answer_after_bug
from surehold.front.shared.event_loop import run_on_loop
from surehold.library.command_run import RunReceipt, finish_run, start_run
from surehold.library.families import tool_named
from surehold.text.escape import ensure_utf8, has_surrogates, lone_surrogate_error, reveal_text
from surehold.tools.call import Answer, AnswerBudget, CallContext
from surehold.tools.spec import AnyTool
from surehold.workspace.access.permission import Approval, PermissionRequest
from surehold.workspace.proposal import ChangeRecord
from surehold.workspace.session import Session

if TYPE_CHECKING:
    from acp.interfaces import Client

GUARD_DELETIONS = 100
"""Before which deletion of a command the client is asked."""


class CancelToken:
    """Cancels the calls of one turn, from any thread: no change begins any more, and open questions are withdrawn."""

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def is_cancelled(self) -> bool:
        return self._event.is_set()

    def cancel(self) -> None:
        self._event.set()


class ReportedCall:
    def __init__(
        self,
        tool: AnyTool,
        arguments: Mapping[str, Any],
        *,
        session: Session,
        root: str,
        client: ClientChannel,
        approvals: ApprovalQueue,
        cancel: CancelToken,
    ) -> None:
        self._tool, self._arguments = tool, arguments
        self._client, self._approvals, self._cancel = client, approvals, cancel
        self._root = root
        self._loop = asyncio.get_running_loop()
        self._going: asyncio.Task[None] | None = None
        self._record = ChangeRecord(on_free=self._report_running_soon, cancelled=lambda: cancel.is_cancelled)
        call_id = session.workspace.new_id()
        asking = session.with_approver(self._request_approval)
        self._session = asking.with_record(self._record).with_call_id(call_id)
        self._begun = ToolEvent(
            call_id=call_id,
            status="pending",
            title=call_title(tool, arguments, roots=(root, *session.workspace.roots)),
            kind=tool.hints.kind,
            locations=requested_locations(tool, arguments, root=self._root),
            raw_input=cut_texts(dict(arguments), MAX_INPUT_BYTES),
        )

    async def run_and_report(self, *, budget: AnswerBudget, unchecked: bool) -> Answer:
        await self._client.send_event(self._begun)
        if self._tool.hints.read_only:
            self._report_running()
        context = CallContext(
            session=self._session, budget=budget, unchecked=unchecked, cancelled=lambda: self._cancel.is_cancelled
        )
        try:
            answer = await asyncio.to_thread(self._run_tool, context)
        except asyncio.CancelledError:
            self._cancel.cancel()
            raise
        if answer.ok:
            self._report_running()
        if self._going:
            await self._going
        await self._client.send_event(self._final_event(answer))
        return answer

    def _run_tool(self, context: CallContext) -> Answer:
        tool = self._tool
        try:
            if not tool.hints.read_only and has_surrogates(self._arguments):
                return tool.refusal_answer(lone_surrogate_error())
            answer = tool.call(context, self._arguments)
            failure = (answer.bug or answer.error) if self._record.change_ids else None
            return answer_after_bug(tool, failure, self._record, "acp") if failure else answer
        except Exception as error:  # noqa: BLE001 - the client must get an answer
            return answer_after_bug(tool, error, self._record, "acp")

    def _request_approval(self, request: PermissionRequest) -> Approval:
        return self._approvals.ask(
            request,
            show=lambda _: run_on_loop(self._ask_client(request), self._loop),
            cancelled=lambda: self._cancel.is_cancelled,
        )

    async def _ask_client(self, request: PermissionRequest) -> Approval:
        approval = await self._client.ask_approval(self._begun, request, root=self._root)
        if approval.allowed:
            self._report_running()
        return approval

    def _report_running(self) -> None:
        """Report, once, that the call has begun to run."""
        if self._going is None:
            running = ToolEvent(call_id=self._begun.call_id, status="in_progress")
            self._going = self._loop.create_task(self._client.send_event(running))

    def _report_running_soon(self) -> None:
        """Report it, from another thread."""
        with suppress(RuntimeError):  # the loop has ended; the change has not
            self._loop.call_soon_threadsafe(self._report_running)

    def _final_event(self, answer: Answer) -> ToolEvent:
        files = self._record.files
        seen = preview_changes(files, root=self._root)
        return ToolEvent(
            call_id=self._begun.call_id,
            status="completed" if answer.ok else "failed",
            locations=changed_locations(files, root=self._root),
            raw_output=answer.data,
            text="\n".join((answer.text, *seen.notes)),
            diff=str(answer.data.get("diff") or "") or "".join(one.change.diff for one in files),
            diffs=seen.diffs,
            content=answer.content,
            change_id=next(reversed(self._record.change_ids), ""),
        )


class Reporter:
    """Calls tools on behalf of one ACP session, and reports every step to its client."""

    def __init__(
        self,
        client: "Client",
        session_id: str,
        session: Session,
        *,
        dialect: Dialect = "v1",
        patience: float = ANSWER_SECONDS,
        budget: AnswerBudget | None = None,
        unchecked: bool = False,
        root: str = "",
    ) -> None:
        """`root` is the first directory of the session as the client spells it; without it, as it really is."""
        self.session = session
        self.root = root or session.workspace.roots[0]
        self._client = ClientChannel(client, session_id, dialect=dialect)
        workspace = session.workspace
        self._approvals = ApprovalQueue(
            seconds=patience, board=workspace.questions, note_unanswered=workspace.record_unanswered
        )
        self._budget = budget or AnswerBudget()
        self._unchecked = unchecked

    @asynccontextmanager
    async def turn(self, prompt: str) -> AsyncGenerator[None]:
        """Mark the calls made inside as done for one prompt of the person."""
        marked = self.session.turn(prompt)
        await asyncio.to_thread(marked.__enter__)
        try:
            yield
        finally:
            marked.__exit__(None, None, None)

    async def call(
        self,
        tool: AnyTool | str,
        arguments: Mapping[str, Any],
        *,
        cancel: CancelToken | None = None,
        halt: CancelToken | None = None,
    ) -> Answer:
        """Call a tool; a refusal is an answer too. Cancelling stops it, unless a change is under way.

        `halt` is the earlier name of `cancel` and still works.
        """
        call = ReportedCall(
            tool_named(tool) if isinstance(tool, str) else tool,
            arguments,
            session=self.session,
            root=self.root,
            client=self._client,
            approvals=self._approvals,
            cancel=cancel or halt or CancelToken(),
        )
        return await call.run_and_report(budget=self._budget, unchecked=self._unchecked)

    async def run(
        self, argv: Sequence[str], *, reason: str = "", guard: int = GUARD_DELETIONS, cancel: CancelToken | None = None
    ) -> RunReceipt:
        """Run a command whose changes can be undone, and report it as a call; the client is asked while it waits.

        It is asked before the `guard`th deletion, and before a file changes that configures another program.
        """
        stop, loop = cancel or CancelToken(), asyncio.get_running_loop()
        session = self.session.with_call_id(self.session.workspace.new_id())
        title = ensure_utf8(reveal_text(shlex.join(argv)))
        begun = ToolEvent(call_id=session.call_id, status="pending", title=title, kind="execute")

        def ask(request: PermissionRequest) -> Approval:
            return self._approvals.ask(
                request,
                show=lambda _: run_on_loop(self._client.ask_approval(begun, request, root=self.root), loop),
                cancelled=lambda: stop.is_cancelled,
            )

        await self._client.send_event(begun)
        await self._client.send_event(ToolEvent(call_id=session.call_id, status="in_progress"))
        try:
            run = await asyncio.to_thread(
                start_run, session.workspace, argv, session=session, reason=reason, guard=guard, approver=ask
            )
            receipt = await finish_run(run, cancelled=lambda: stop.is_cancelled)
        except SureholdError as error:
            await self._client.send_event(ToolEvent(call_id=session.call_id, status="failed", text=str(error)))
            raise
        text = (receipt.stdout + receipt.stderr).decode("utf-8", "replace")
        status = "failed" if receipt.exit_code else "completed"
        counts = {name: getattr(receipt, name) for name in ("exit_code", "created", "changed", "deleted", "moved")}
        await self._client.send_event(
            ToolEvent(
                call_id=session.call_id,
                status=status,
                text=reveal_text(text, keep="\n\t"),
                raw_output=counts | {"change_id": receipt.change_id, "complete": receipt.complete},
                change_id=receipt.change_id,
            )
        )
        return receipt
