"""What a patch wants of each file."""

from dataclasses import dataclass
from typing import Literal

from surehold.text.patch_apply import AddPatched, DeletePatched, PatchHunks
from surehold.text.patch_hunk import Hunk
from surehold.text.plan import Delete, Edit, Keep

Format = Literal["envelope", "unified", "git"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePatch:
    """One file of a patch."""

    operation: Literal["add", "update", "delete", "move"]
    path: str
    line: int
    """Where it begins in the patch."""
    to_path: str = ""
    hunks: tuple[Hunk, ...] = ()
    mode: int | None = None
    """New permission bits, such as 0o755."""
    quotes_content: bool = False
    """A deletion shows all that it deletes, and that must be what is there."""

    @property
    def edit(self) -> Edit:
        """The recipe for the file's bytes."""
        if self.operation == "add":
            text = "".join(row.text + "\n" * row.ended for hunk in self.hunks for row in hunk.rows)
            return AddPatched(path=self.path, text=text)
        if self.operation == "delete":
            return DeletePatched(path=self.path, hunks=self.hunks) if self.quotes_content else Delete()
        return PatchHunks(path=self.path, hunks=self.hunks) if self.hunks else Keep()


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A whole patch, and in which notation it was written."""

    format: Format
    files: tuple[FilePatch, ...]

    @property
    def hunk_count(self) -> int:
        """How many hunks there are; the content of an added file is one."""
        return sum(len(file.hunks) for file in self.files)
