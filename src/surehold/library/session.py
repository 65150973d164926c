"""A session with a typed method for every tool."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from surehold.dialects.shared.delivery_record import DeliveryRecord
from surehold.errors import InvalidArgument
from surehold.library.arguments import require_flag, require_mapping, require_name, require_text
from surehold.library.call_threads import with_cancellation
from surehold.library.families import tool_named
from surehold.library.python_words import speak_python
from surehold.library.tool_methods import CANCELLED, ToolMethods
from surehold.stores.conversations import SessionTurn
from surehold.text.quoted.edits import StringEdit
from surehold.tools.call import Answer, AnswerBudget, CallContext
from surehold.workspace.access.permission import Permission
from surehold.workspace.paths import AnyPath
from surehold.workspace.proposal import Receipt
from surehold.workspace.session import Session
from surehold.workspace.workspace import Workspace

if TYPE_CHECKING:
    from surehold.dialects.anchored.edit import LineEditResult
    from surehold.text.anchored.operations import Operation


class AgentSession(ToolMethods, Session):
    """One agent's conversation with one workspace."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        id: str,  # noqa: A002 - it is the id
        agent: str = "",
        permission: Permission | None = None,
    ) -> None:
        super().__init__(workspace, id=id, agent=agent, permission=permission)
        self.deliveries = DeliveryRecord()  # here, so that the copies that `with_approver` makes share it

    @contextmanager
    def turn(self, title: str = "", *, id: str = "") -> Generator[SessionTurn]:  # noqa: A002 - it is the id
        """Mark what happens inside as done for one request of a person; an id that is known goes on with that turn."""
        require_text("title", title, example='session.turn("Rename the module")')
        require_name("id", id, example="session.turn(id=turn.id)")
        with super().turn(title, id=id) as begun:
            yield begun

    @overload
    def edit(
        self,
        path: AnyPath,
        *edits: StringEdit | tuple[str, str],
        expected_sha256: str = "",
        reason: str = "",
        dry_run: bool = False,
        idempotency_key: str = "",
    ) -> Receipt: ...
    @overload
    def edit(
        self,
        path: str,
        operations: "Sequence[Operation]",
        *,
        expected_sha256: str = "",
        safety_check: Literal["strict", "warn", "off"] = "strict",
        dry_run: bool = False,
        strict_order: bool = False,
        reason: str = "",
        idempotency_key: str = "",
    ) -> "LineEditResult": ...
    def edit(self, path: Any, *edits: Any, **options: Any) -> Any:
        """Replace quoted texts; or change lines, when given the operations of the tool `edit`, as `edit_lines` does."""
        if "operations" in options:
            if edits:
                message = "`edit` takes either quoted texts or operations."
                raise InvalidArgument(message, reason="two_kinds", action="Make two calls.")
            return self.edit_lines(path, options.pop("operations"), **options)
        if len(edits) == 1 and _are_operations(edits[0]):
            return self.edit_lines(path, edits[0], **options)
        return super().edit(path, *edits, **options)

    def undo(self, change_id: str = "", *, dry_run: bool = False) -> Receipt:
        """Take back a change, by default the newest that is not undone."""
        require_text("change_id", change_id, example="session.undo(done.change_id)")
        require_flag("dry_run", dry_run)
        with speak_python():
            return super().undo(change_id, dry_run=dry_run)

    def redo(self, change_id: str = "", *, dry_run: bool = False) -> Receipt:
        """Make a change again that was undone."""
        require_text("change_id", change_id, example="session.redo(done.change_id)")
        require_flag("dry_run", dry_run)
        with speak_python():
            return super().redo(change_id, dry_run=dry_run)

    def notify_compaction(self) -> None:
        """Forget what the host no longer shows: nothing is answered with `file_unchanged` until it was sent again."""
        self.deliveries.notify_compaction()

    def answer(self, name: str, arguments: Mapping[str, Any], *, budget: AnswerBudget | None = None) -> Answer:
        """Call a tool by its name with plain data, as a model does; a refusal is an answer too."""
        example = 'session.answer("read_file", {"path": "a.py"})'
        require_text("name", name, example=example)
        require_mapping("arguments", arguments, example=example)
        tool = tool_named(name)
        cancelled = CANCELLED.get()
        session = with_cancellation(self, tool, cancelled)
        context = CallContext(session=session, budget=budget or AnswerBudget(), cancelled=cancelled)
        return tool.call(context, arguments)


def _are_operations(given: object) -> bool:
    """Tell operations on lines from a pair of texts."""
    if not isinstance(given, list | tuple):
        return False
    return any(isinstance(one, Mapping) or hasattr(one, "op") for one in cast("Sequence[object]", given))
