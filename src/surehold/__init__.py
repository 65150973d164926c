"""Surehold: file tools for AI agents that never lose an edit.

```python
from surehold import open_workspace

workspace = open_workspace("my-project")
agent = workspace.session(agent="me")
page = agent.read("README.md")
receipt = agent.edit("README.md", ("colour", "color"))
agent.undo(receipt.change_id)
```
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surehold.app import Settings, open_workspace
    from surehold.errors import SureholdError
    from surehold.text.plan import Delete, Keep
    from surehold.text.quoted.edits import SequentialEdits, SnapshotEdits, StringEdit
    from surehold.text.rewrite import WriteBytes, WriteText
    from surehold.text.snapshot import Snapshot
    from surehold.workspace.history import History
    from surehold.workspace.proposal import Absent, Exact, Proposal, Seen, Sha256, Unproven
    from surehold.workspace.receipt import Receipt
    from surehold.workspace.session import Session
    from surehold.workspace.settings import Limits
    from surehold.workspace.tracking import CheckpointManager, FileWriteTracker
    from surehold.workspace.workspace import Workspace

__version__ = "0.1.0"

_HOMES = {
    "Absent": "workspace.proposal",
    "CheckpointManager": "workspace.tracking",
    "Delete": "text.plan",
    "Exact": "workspace.proposal",
    "FileWriteTracker": "workspace.tracking",
    "History": "workspace.history",
    "Keep": "text.plan",
    "Limits": "workspace.settings",
    "Proposal": "workspace.proposal",
    "Receipt": "workspace.receipt",
    "Seen": "workspace.proposal",
    "SequentialEdits": "text.quoted.edits",
    "Session": "workspace.session",
    "Settings": "app",
    "Sha256": "workspace.proposal",
    "Snapshot": "text.snapshot",
    "SnapshotEdits": "text.quoted.edits",
    "StringEdit": "text.quoted.edits",
    "SureholdError": "errors",
    "Unproven": "workspace.proposal",
    "Workspace": "workspace.workspace",
    "WriteBytes": "text.rewrite",
    "WriteText": "text.rewrite",
    "open_workspace": "app",
}

__all__ = [
    "Absent",
    "CheckpointManager",
    "Delete",
    "Exact",
    "FileWriteTracker",
    "History",
    "Keep",
    "Limits",
    "Proposal",
    "Receipt",
    "Seen",
    "SequentialEdits",
    "Session",
    "Settings",
    "Sha256",
    "Snapshot",
    "SnapshotEdits",
    "StringEdit",
    "SureholdError",
    "Unproven",
    "Workspace",
    "WriteBytes",
    "WriteText",
    "open_workspace",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: `import surehold` alone costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'surehold' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"surehold.{_HOMES[name]}"), name)
