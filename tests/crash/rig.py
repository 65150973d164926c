"""Runs an operation in a process of its own, with a fault at one system call, and looks at what is left."""

import itertools
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from crash import operation as program
from surehold.errors import SureholdError
from surehold.stores.base import Call, LedgerQuery
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.text.snapshot import sha256_hex
from surehold.workspace.proposal import Exact, Proposal
from surehold.workspace.workspace import Workspace
from waiting import HANG_SECONDS

_NAMES = "creat,rename,renameat,renameat2,link,linkat,unlink,unlinkat,symlink,symlinkat,mkdir,mkdirat,rmdir,open,openat"
_FACTS = "chmod,fchmod,fchmodat,chown,fchown,fchownat,setxattr,fsetxattr,removexattr,fremovexattr,utimensat,flock"
BYTES = ("write", "pwrite64", "pwritev", "ftruncate", "truncate", "fallocate", "fsync", "fdatasync", "msync")
ANSWER = "writev"
MUTATING = (*_NAMES.split(","), *_FACTS.split(","), *BYTES, ANSWER)
"""Every system call that changes a file, makes it durable or locks it. `openat` reads as well; no harm in that."""
_IDLE = re.compile(r"(fsync|fdatasync|msync|flock|open|openat)\((?!.*\bO_(CREAT|TRUNC|TMPFILE)\b)")
"""Calls that change nothing: a kill before one leaves what a kill before the call after it leaves."""
_SERIES_END = 2
"""Of a long series of writes to one file, as of the pages of one commit, so many are struck at its begin and at its end."""
SOAK = bool(os.environ.get("SUREHOLD_SOAK"))

File = tuple[bytes, int, int]
"""Bytes, mode, number of names."""
Tree = dict[str, File]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What happens at the n-th call of one kind."""

    syscall: str
    number: int
    error: str = ""
    """The error it returns; empty when the process is killed instead, before the call."""
    lasting: bool = False
    """Every later call of that kind fails too."""

    def __str__(self) -> str:
        return f"{self.error or 'KILL'} at {self.syscall} {self.number}{'+' if self.lasting else ''}"

    @property
    def options(self) -> list[str]:
        what = f"error={self.error}" if self.error else "signal=KILL"
        when = f"when={self.number}{'+' if self.lasting else ''}"
        return ["-e", f"trace={self.syscall}", "-e", f"inject={self.syscall}:{what}:{when}"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended."""

    killed: bool = False
    injected: bool = False
    """Whether the fault happened at all: after the last call of its kind it does not."""
    lasting: bool = False
    acknowledged: bool = False
    refused: tuple[str, ...] = ()
    """Kind, reason and message, when it ended with an error of ours."""
    broken: str = ""
    """The traceback, when it ended with any other."""


@dataclass(frozen=True, kw_only=True)
class Copy:
    """A workspace to ruin."""

    place: Path

    @property
    def root(self) -> Path:
        return self.place / "root"

    @property
    def state(self) -> Path:
        return self.place / "state"

    @contextmanager
    def opened(self) -> Generator[Workspace]:
        with program.open_at(self.root, self.state, durable=False) as workspace:
            yield workspace


class Nursery:
    """The process whose children perform the operation."""

    def __init__(self, operation: str) -> None:
        command = [sys.executable, program.__file__, operation]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, copy: Copy, fault: Fault | None = None) -> tuple[Outcome, str]:
        """Perform the operation once; return how it ended and what strace saw."""
        self._say(json.dumps({"root": str(copy.root), "state": str(copy.state)}))
        log = copy.place / "trace"
        with _attached(self._hear()["ready"], log, fault):
            self._say("go")
            said = self._hear()
            while "exit" not in said:
                said |= self._hear()
        seen = log.read_text(errors="replace")
        killed = said["exit"] == -9
        outcome = Outcome(
            killed=killed,
            injected=killed or "(INJECTED)" in seen,
            lasting=fault is not None and fault.lasting,
            acknowledged="done" in said,
            refused=tuple(said.get("failed", ())),
            broken=said.get("broke", ""),
        )
        return outcome, seen

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        word, _, value = self._process.stdout.readline().partition(" ")
        assert value, "the nursery died"
        return {word: json.loads(value)}


@contextmanager
def _attached(pid: int, log: Path, fault: Fault | None) -> Generator[None]:
    """Let strace follow a process that waits at its gate, from before the gate opens until the process has ended."""
    chosen = fault.options if fault else ["-e", f"trace={','.join(MUTATING)}"]
    command = ["strace", "-f", "-p", str(pid), "-o", str(log), "-e", "signal=none", *chosen]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr is not None
        said = tracer.stderr.readline()
        assert "attached" in said, said
        yield
        tracer.wait(timeout=HANG_SECONDS)


@dataclass(kw_only=True)
class Rig:
    """One operation, the workspace it starts from, and what it should leave."""

    operation: str
    directory: Path
    template: Copy
    before: Tree
    after: Tree = field(default_factory=dict[str, File])
    past: int
    """The newest entry before the operation."""
    runs: int = 0
    violations: list[str] = field(default_factory=list[str])

    def every(
        self,
        nursery: Nursery,
        template: Copy,
        error: str = "",
        *,
        lasting: bool = False,
        chosen: Callable[[int], bool] = bool,
    ) -> Iterator[tuple[Fault, Copy, Outcome]]:
        """Perform it with a fault at every chosen call, kind by kind; the long runs go on until none is left to strike."""
        for syscall, telling in self._kinds(nursery, template, killing=not error).items():
            if error and (syscall == ANSWER or (lasting and syscall not in BYTES)):
                continue
            for number in filter(chosen, itertools.count(1) if SOAK else telling):
                fault = Fault(syscall=syscall, number=number, error=error, lasting=lasting)
                with self.copy(template) as copy:
                    outcome, _ = nursery.run(copy, fault)
                    self.runs += 1
                    yield fault, copy, outcome
                if not outcome.injected:
                    break

    def _kinds(self, nursery: Nursery, template: Copy, *, killing: bool) -> dict[str, list[int]]:
        """Learn from one untouched run which kinds of calls there are, and which of each show what others do not."""
        with self.copy(template) as copy:
            outcome, seen = nursery.run(copy)
            assert outcome.acknowledged, outcome
            self.after = self.after or tree(copy.root)
        threads = defaultdict[str, list[str]](list)  # strace counts for each thread
        for thread, _, call in (line.partition(" ") for line in seen.splitlines()):
            threads[thread].append(call.strip())
        telling = defaultdict[str, set[int]](set)
        for calls in threads.values():
            numbers = Counter[str]()
            for call, within in zip(calls, _within_series(calls), strict=True):
                numbers[name := call.partition("(")[0]] += 1
                telling[name].update([] if within or (killing and _IDLE.match(call)) else [numbers[name]])
        return {name: sorted(telling[name]) for name in sorted(telling.keys() & set(MUTATING))}

    @contextmanager
    def copy(self, of: Copy) -> Generator[Copy]:
        place = Path(tempfile.mkdtemp(dir=self.directory))
        try:
            subprocess.run(["cp", "-a", f"{of.place}/.", str(place)], check=True)
            yield Copy(place=place)
        finally:
            shutil.rmtree(place)

    def check(self, copy: Copy, outcome: Outcome, story: str) -> None:
        """Recover, then note every promise that is broken."""
        self.violations += [f"{self.operation}: {story}: {problem}" for problem in _problems(self, copy, outcome)]


@contextmanager
def rig(operation: str, directory: Path, *, size: int) -> Generator[tuple[Rig, Nursery]]:
    """Prepare a workspace, and the process that will work on copies of it."""
    template = Copy(place=directory / "template")
    template.place.mkdir()
    program.prepare(template.root, template.state, size)
    with template.opened() as workspace:
        past = workspace.history.log(LedgerQuery(limit=1))[0].seq
    made = Rig(operation=operation, directory=directory, template=template, before=tree(template.root), past=past)
    with ExitStack() as stack:
        yield made, stack.enter_context(Nursery(operation))


def _within_series(calls: Sequence[str]) -> Iterator[bool]:
    """Tell of each call whether it is in the middle of a series of writes to one file."""
    for _, group in itertools.groupby(calls, lambda call: call.partition(",")[0] if "write" in call else ""):
        series = list(group)
        inside = len(series) - 2 * _SERIES_END if "write" in series[0] else 0
        for number in range(len(series)):
            yield _SERIES_END <= number < _SERIES_END + inside


def tree(root: Path) -> Tree:
    """Return every file below a directory, temporary ones included."""
    files: Tree = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            status = path.lstat()
            files[str(path.relative_to(root))] = (path.read_bytes(), stat.S_IMODE(status.st_mode), status.st_nlink)
    return files


def _problems(rig: Rig, copy: Copy, outcome: Outcome) -> Iterator[str]:
    if outcome.broken:
        yield f"an error that is not ours: {outcome.broken}"
    if not (outcome.killed or outcome.acknowledged or outcome.refused or outcome.broken):
        yield "it ended without an answer"
    inode = (copy.root / "linked.txt").stat().st_ino
    with copy.opened() as workspace:
        now = tree(copy.root)
        yield from _tree_problems(rig, outcome, now)
        yield from _ledger_problems(rig, workspace, now)
        if (copy.root / "linked.txt").stat().st_ino != inode:
            yield "a hard link was split"
        if now == rig.after:
            yield from _undo_problems(rig, workspace, copy)
        yield from _edit_problems(workspace, copy)


def _tree_problems(rig: Rig, outcome: Outcome, now: Tree) -> Iterator[str]:
    if litter := sorted(path for path in now if ".surehold-" in path):
        yield f"litter: {litter}"
    if now not in (rig.before, rig.after):
        yield f"neither before nor after: {_difference(now, rig.before)} / {_difference(now, rig.after)}"
    if outcome.acknowledged and now != rig.after:
        yield "an acknowledged change is gone"
    unknown = outcome.refused[:2] == ("unknown", "recovery_required")
    if unknown and not outcome.lasting:
        yield f"one error is not a reason not to know: {outcome.refused}"
    if outcome.refused and now != rig.before and not unknown:
        yield f"refused ({outcome.refused}), and yet it happened"


def _ledger_problems(rig: Rig, workspace: Workspace, now: Tree) -> Iterator[str]:
    if workspace.store.open_intents():
        yield "an intent is still open"
    if not (verdict := workspace.history.verify()).ok:
        yield f"the history is broken: {verdict}"
    for path in {*rig.before, *rig.after} - {"second.txt"}:
        head = workspace.store.head_of(path)
        known = head.version.sha256 if head and head.version else ""
        there = sha256_hex(now[path][0]) if path in now else ""
        if known != there:
            yield f"the ledger says {known[:8]} of {path}, the disk {there[:8]}"
    entries = workspace.history.log(LedgerQuery(after_seq=rig.past, limit=1000))
    if any(entry.call.operation == "external" for entry in entries):
        yield "our own bytes were taken for an outside edit"
    if any(entry.ok for entry in entries) != (now == rig.after):
        yield f"on disk: {now == rig.after}, in the ledger: {[(e.call.operation, e.ok) for e in entries]}"


def _undo_problems(rig: Rig, workspace: Workspace, copy: Copy) -> Iterator[str]:
    newest = next(entry for entry in workspace.history.log(LedgerQuery(after_seq=rig.past)) if entry.ok)
    try:
        workspace.history.undo(newest.change_id)
    except SureholdError as error:
        yield f"it cannot be undone: {error}"
    else:
        if (now := tree(copy.root)) != rig.before:
            yield f"undone, and yet not as before: {_difference(now, rig.before)}"


def _edit_problems(workspace: Workspace, copy: Copy) -> Iterator[str]:
    """See that ordinary work goes on."""
    first = (copy.root / "b.txt").read_bytes().partition(b"\n")[0].decode()
    edit = Proposal(path="b.txt", edit=SnapshotEdits((StringEdit(old=f"{first}\n", new="next\n"),)), proof=Exact())
    try:
        workspace.write(edit, call=Call(tool="edit", operation="edit", writer="edit"))
    except SureholdError as error:
        yield f"an ordinary edit fails afterwards: {error}"


def _difference(one: Tree, other: Tree) -> list[str]:
    def brief(file: File | None) -> str:
        return "absent" if file is None else f"{file[0][:24]!r} ({len(file[0])} bytes, {file[1]:o}, {file[2]} names)"

    paths = sorted(path for path in {*one, *other} if one.get(path) != other.get(path))
    return [f"{path}: {brief(one.get(path))} for {brief(other.get(path))}" for path in paths]
