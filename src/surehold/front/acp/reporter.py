"""What an agent wraps around the tools, so that its client sees every call and is asked before a change.

```python
reporter = Reporter(conn, session_id, workspace.session(agent="my-agent", mode="default"))
answer = await reporter.call("multi_edit_text_file", {"path": "/project/a.py", "edits": […]})
```
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from surehold.dialects.families import tool_named
from surehold.front.acp.call import AnyTool, ReportedCall
from surehold.front.acp.event import Dialect
from surehold.front.acp.halt import Halt
from surehold.front.acp.messenger import Messenger
from surehold.tools.context import Budget
from surehold.tools.spec import Answer
from surehold.workspace.session import Session

if TYPE_CHECKING:
    from acp.interfaces import Client

PATIENCE = 600.0
"""Seconds that a person has for an answer."""


class Reporter:
    """Calls tools on behalf of one ACP session, and tells its client about every step."""

    def __init__(
        self,
        client: "Client",
        session_id: str,
        session: Session,
        *,
        dialect: Dialect = "v1",
        patience: float = PATIENCE,
        budget: Budget | None = None,
        unchecked: bool = False,
        root: str = "",
    ) -> None:
        """`root` is the first directory of the session as the client spells it; without it, as it really is."""
        self.session = session
        self.root = root or session.workspace.roots[0]
        self._messenger = Messenger(client, session_id, dialect=dialect)
        self._patience = patience
        self._budget = budget or Budget()
        self._unchecked = unchecked

    async def call(self, tool: AnyTool | str, arguments: Mapping[str, Any], *, halt: Halt | None = None) -> Answer:
        """Call a tool; a refusal is an answer too. Pulling the brake stops it, unless a change is under way."""
        call = ReportedCall(
            tool_named(tool) if isinstance(tool, str) else tool,
            arguments,
            session=self.session,
            root=self.root,
            messenger=self._messenger,
            halt=halt or Halt(),
            patience=self._patience,
        )
        return await call.run(budget=self._budget, unchecked=self._unchecked)
