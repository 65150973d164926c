"""The public names. Written by scripts/write_stubs.py; do not edit."""

from surehold.app import Settings, open_workspace
from surehold.errors import SureholdError
from surehold.library.model_calls import dispatch, tools_for
from surehold.text.plan import Delete, Keep
from surehold.text.quoted.edits import SequentialEdits, SnapshotEdits, StringEdit
from surehold.text.rewrite import InsertLines, WriteBytes, WriteText
from surehold.text.snapshot import Snapshot
from surehold.workspace.access.permission import Approval, PermissionRequest
from surehold.workspace.history import History
from surehold.workspace.proposal import Absent, Exact, Proposal, Receipt, Seen, Sha256, Unchanged, Unproven
from surehold.workspace.session import Session
from surehold.workspace.settings import Limits
from surehold.workspace.workspace import CheckpointManager, FileWriteTracker, Workspace

__all__ = [
    "Absent",
    "Approval",
    "CheckpointManager",
    "Delete",
    "Exact",
    "FileWriteTracker",
    "History",
    "InsertLines",
    "Keep",
    "Limits",
    "PermissionRequest",
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
