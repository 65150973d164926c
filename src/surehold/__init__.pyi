"""The public names. Written by scripts/write_stubs.py; do not edit."""

from surehold import adapters as adapters
from surehold import aio as aio
from surehold.app import Settings, open_workspace
from surehold.errors import SureholdError
from surehold.library.command_run import RunReceipt
from surehold.library.model_calls import dispatch, tools_for
from surehold.library.session import AgentSession as Session
from surehold.library.workspace import AgentWorkspace as Workspace
from surehold.text.anchored.operations import (
    DeleteLine,
    DeleteRange,
    InsertAfter,
    InsertBefore,
    ReplaceLine,
    ReplaceRange,
)
from surehold.text.plan import Delete, Keep
from surehold.text.quoted.edits import SequentialEdits, SnapshotEdits, StringEdit
from surehold.text.rewrite import InsertLines, WriteBytes, WriteText
from surehold.text.snapshot import Snapshot
from surehold.workspace.access.permission import Approval, PermissionRequest
from surehold.workspace.history import History
from surehold.workspace.proposal import Absent, Exact, Proposal, Receipt, Seen, Sha256, Unchanged, Unproven
from surehold.workspace.settings import Limits, ReadGateSettings
from surehold.workspace.undo.switch_board import ChangeView
from surehold.workspace.workspace import CheckpointManager, FileWriteTracker

__all__ = [
    "Absent",
    "Approval",
    "ChangeView",
    "CheckpointManager",
    "Delete",
    "DeleteLine",
    "DeleteRange",
    "Exact",
    "FileWriteTracker",
    "History",
    "InsertAfter",
    "InsertBefore",
    "InsertLines",
    "Keep",
    "Limits",
    "PermissionRequest",
    "Proposal",
    "ReadGateSettings",
    "Receipt",
    "ReplaceLine",
    "ReplaceRange",
    "RunReceipt",
    "Seen",
    "SequentialEdits",
    "Session",
    "Settings",
    "Sha256",
    "Snapshot",
    "SnapshotEdits",
    "StringEdit",
    "SureholdError",
    "Unchanged",
    "Unproven",
    "Workspace",
    "WriteBytes",
    "WriteText",
    "dispatch",
    "open_workspace",
    "tools_for",
]

__version__: str
