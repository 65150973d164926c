"""Surehold: file tools for AI agents that never lose an edit.

```python
from surehold import open_workspace

with open_workspace("my-project") as workspace:
    session = workspace.session(agent="me")
    page = session.read_file("README.md")
    done = session.edit_file("README.md", [("colour", "color")], expected_sha256=page.sha256)
    workspace.undo(done.change_id)
```

`help(surehold.Session)` lists the methods, one for each tool; `surehold.aio` has the same names, awaitable.
"""

__version__ = "0.1.0"

_HOMES = {
    name: module
    for module, names in {
        "app": ("Settings", "open_workspace"),
        "errors": ("SureholdError",),
        "library.model_calls": ("dispatch", "tools_for"),
        "library.command_run": ("RunReceipt",),
        "text.anchored.operations": (
            *("DeleteLine", "DeleteRange", "InsertAfter", "InsertBefore", "ReplaceLine", "ReplaceRange"),
        ),
        "text.plan": ("Delete", "Keep"),
        "text.quoted.edits": ("SequentialEdits", "SnapshotEdits", "StringEdit"),
        "text.rewrite": ("InsertLines", "WriteBytes", "WriteText"),
        "text.snapshot": ("Snapshot",),
        "workspace.access.permission": ("Approval", "PermissionRequest"),
        "workspace.history": ("History",),
        "workspace.proposal": ("Absent", "Exact", "Proposal", "Receipt", "Seen", "Sha256", "Unchanged", "Unproven"),
        "library.session": ("Session",),
        "library.workspace": ("Workspace",),
        "workspace.settings": ("Limits", "ReadGateSettings"),
        "workspace.undo.switch_board": ("ChangeView",),
        "workspace.workspace": ("CheckpointManager", "FileWriteTracker"),
    }.items()
    for name in names
}
"""Every public name and the module it is defined in. Type checkers read `__init__.pyi`, which `make fix` writes from it."""

_CLASSES = {"Session": "AgentSession", "Workspace": "AgentWorkspace"}
"""Public names of classes that are called otherwise where they are defined."""

_MODULES = ("adapters", "aio")
"""The public modules."""

__all__ = sorted(_HOMES)  # noqa: PLE0605 # pyright: ignore[reportUnsupportedDunderAll] - the stub names them one by one


def __getattr__(name: str) -> object:
    """Load a public name when it is first used: `import surehold` alone costs nothing."""
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"surehold.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'surehold' has no attribute {name!r}")
    return getattr(import_module(f"surehold.{_HOMES[name]}"), _CLASSES.get(name, name))


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))})
