"""Many changes of one file, undone, shown and blamed as one: against one change, one diff, and `git blame`."""

import random
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sample import NAME, scratch
from table import Row
from timing import interleave

from surehold import Settings, Workspace, open_workspace
from surehold.text.plan import diff_between
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import Snapshot
from surehold.workspace.past.blame import blame_file
from surehold.workspace.past.net_diff import net_diff
from surehold.workspace.past.selectors import Selectors
from surehold.workspace.proposal import CallAuthor, Proposal, Sha256

_LINES, _CHANGES = 10_000, 1_000
_OLDER, _NEWER = "older", "newer"
"""The agents: one makes the first half of the changes, the other the second."""
_OTHER_NAME = "other.py"
_REPEAT = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Past:
    workspace: Workspace
    folder: Path
    versions: list[bytes] = field(default_factory=list[bytes])

    def write(self, data: bytes, agent: str, *, path: str = NAME, before: bytes = b"") -> None:
        proof = Sha256(Snapshot(before or self.versions[-1]).sha256)
        call = CallAuthor(agent=agent, session=agent).make_call("write", "write")
        self.workspace.write(Proposal(path=path, edit=WriteBytes(data), proof=proof), call=call)

    def write_and_back(self, data: bytes) -> None:
        """Make one change of the same bytes to another file."""
        self.write(data, "one", path=_OTHER_NAME, before=self.versions[-1])
        self.write(self.versions[-1], "one", path=_OTHER_NAME, before=data)

    def undo_and_redo(self, agent: str) -> None:
        done = self.workspace.history.undo_selected(Selectors(agent=agent))
        self.workspace.history.undo(done.change_id)

    def diff(self, agent: str) -> bytes:
        """Show what an agent did as one, and return the file without it."""
        (found,) = net_diff(self.workspace, self.workspace.history.select_done(Selectors(agent=agent)))
        return found.before.data

    def diff_once(self, before: bytes) -> None:
        diff_between(Snapshot(before), Snapshot(self.versions[-1]), from_name=NAME, to_name=NAME)

    def git_blame(self) -> None:
        subprocess.run(["git", "blame", NAME], cwd=self.folder / "git", check=True, stdout=subprocess.DEVNULL)


def rows() -> list[Row]:
    with scratch() as folder, _made_past(folder) as past:
        older, newer = past.diff(_OLDER), past.diff(_NEWER)
        shown = interleave(lambda _: past.diff_once(newer), lambda _: past.diff(_NEWER), repeat=_REPEAT)
        _commit_versions(past)
        blamed = interleave(lambda _: past.git_blame(), lambda _: blame_file(past.workspace, NAME), repeat=_REPEAT)
        undone = interleave(lambda _: past.write_and_back(newer), lambda _: past.undo_and_redo(_NEWER), repeat=_REPEAT)
        below = interleave(lambda _: past.write_and_back(older), lambda _: past.undo_and_redo(_OLDER), repeat=_REPEAT)
    half = _CHANGES // 2
    return [
        Row(
            name=f"undo {half} changes as one and back over one change and back",
            measured=undone.ratio,
            goal=3,
            note=undone.note,
        ),
        Row(name=f"the same under {half} later changes", measured=below.ratio, note=below.note),
        Row(name=f"net diff of {half} changes over one diff", measured=shown.ratio, goal=2, note=shown.note),
        Row(name=f"blame over git blame, {_CHANGES:,} changes", measured=blamed.ratio, goal=5, note=blamed.note),
    ]


@contextmanager
def _made_past(folder: Path) -> Generator[_Past]:
    root = folder / "root"
    root.mkdir()
    chosen = random.Random(1)
    lines = [f"line {number} of a text, as long as lines of code are\n" for number in range(_LINES)]
    (root / NAME).write_text("".join(lines), encoding="utf-8")
    with open_workspace(root, settings=Settings(state_dir=folder / "state", durability="none")) as workspace:
        past = _Past(workspace=workspace, folder=folder, versions=["".join(lines).encode()])
        for number, third in enumerate(chosen.sample(range(_LINES // 3), _CHANGES)):
            kept = lines[3 * third]
            lines[3 * third] = (f"changed {number}\n", f"{kept}added {number}\n", "")[number % 3]
            data = "".join(lines).encode()
            past.write(data, _OLDER if number < _CHANGES // 2 else _NEWER)
            past.versions.append(data)
        (root / _OTHER_NAME).write_bytes(past.versions[-1])
        yield past


def _commit_versions(past: _Past) -> None:
    """Replay the versions into a git repository."""
    git = ["git", "init", "-q", str(past.folder / "git")]
    subprocess.run(git, check=True)
    stream = list[bytes]()
    for number, data in enumerate(past.versions):
        stream.append(
            b"commit refs/heads/main\ncommitter bench <b@example.org> %d +0000\ndata 0\n" % (1_700_000_000 + number)
        )
        stream.append(b"M 100644 inline %s\ndata %d\n%s\n" % (NAME.encode(), len(data), data))
    where = past.folder / "git"
    subprocess.run(["git", "fast-import", "--quiet"], cwd=where, input=b"".join(stream), check=True)
    subprocess.run(["git", "checkout", "-q", "-f", "main"], cwd=where, check=True)
