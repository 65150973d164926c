"""A workspace for the scripted models of the frameworks, and what an outside program does to its files."""

from dataclasses import dataclass
from pathlib import Path

from surehold.app import Settings, open_workspace
from surehold.library.session import AgentSession
from surehold.library.workspace import AgentWorkspace
from surehold.workspace.access.permission import Approver
from surehold.workspace.settings import Mode


@dataclass(frozen=True)
class Project:
    """One directory, one agent."""

    root: Path
    workspace: AgentWorkspace
    session: AgentSession

    def put(self, path: str, data: bytes) -> None:
        """Write a file as a program that knows nothing of Surehold."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(data)

    def files(self) -> dict[str, bytes]:
        found = sorted(path for path in self.root.rglob("*") if path.is_file())
        return {str(path.relative_to(self.root)): path.read_bytes() for path in found}

    def sha256(self, path: str) -> str:
        return self.workspace.read(path).sha256

    def undo_all(self) -> None:
        self.workspace.undo(session=self.session.id)


def make_project(directory: Path, *, mode: Mode | None = None, approver: Approver | None = None) -> Project:
    root = directory / "project"
    root.mkdir()
    workspace = open_workspace(root, settings=Settings(state_dir=directory / "state"))
    return Project(root, workspace, workspace.session(agent="tester", mode=mode, approver=approver))
