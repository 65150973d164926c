"""Files to work on, and workspaces to do it in."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from surehold import Session, Settings, Workspace, open_workspace

_LINE = "    total_{number:07d} = compute(first, second)  # step\n"
NAME = "sample.py"


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory that is gone afterwards."""
    with TemporaryDirectory(prefix="surehold-bench-") as folder:
        yield Path(folder)


def source(size: int) -> str:
    """About that many bytes of lines that are all different."""
    return "".join(_LINE.format(number=number) for number in range(max(size // len(_LINE.format(number=0)), 1)))


@dataclass(slots=True, kw_only=True)
class Edited:
    """One file whose middle line is edited again and again through a session."""

    workspace: Workspace
    session: Session
    line: str
    text: str

    def edit(self, number: int) -> None:
        new = f"{self.line.removesuffix('step')}step {number % 1000:03d}"
        self.session.edit(NAME, (f"{self.text}\n", f"{new}\n"))
        self.text = new


@contextmanager
def edited(folder: Path, size: int, *, durability: Literal["full", "none"] = "full") -> Iterator[Edited]:
    """Open a workspace with one file of that size."""
    root = folder / f"root-{size}-{durability}"
    root.mkdir()
    text = source(size)
    (root / NAME).write_text(text, encoding="utf-8")
    settings = Settings(state_dir=folder / f"state-{size}-{durability}", durability=durability)
    lines = text.splitlines()
    line = lines[len(lines) // 2].strip()
    with open_workspace(root, settings=settings) as workspace:
        yield Edited(workspace=workspace, session=workspace.session(agent="bench"), line=line, text=line)
