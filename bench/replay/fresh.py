"""Every changed file, once in every notation, through the real tools on a real workspace."""

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from replay.change import Difference
from replay.notations import Json, anchors_of, envelope_patch, operations, sequential_edits, string_edits, unified_patch
from replay.outcome import ANCHOR_TROUBLE, Outcome, Score
from surehold import Settings, open_workspace
from surehold.dialects.anchored.edit import edit
from surehold.errors import SureholdError
from surehold.library.session import AgentSession
from surehold.library.workspace import AgentWorkspace
from surehold.text.quoted.edits import SequentialEdits
from surehold.text.snapshot import Snapshot
from surehold.tools.call import Answer, CallContext
from surehold.workspace.proposal import Proposal, Sha256

_EVERYTHING = 1 << 40
_MOST_WORK = 200_000_000
"""Bytes to look at: every edit of a sequence searches the whole file again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A workspace in which every notation has a copy of the file for itself."""

    workspace: AgentWorkspace
    root: Path
    session: AgentSession

    def place(self, where: str, difference: Difference) -> str:
        """Put the old version down; return its path."""
        path = f"{where}/{difference.change.path}"
        self.file(path).parent.mkdir(parents=True, exist_ok=True)
        self.file(path).write_bytes(difference.change.before)
        return path

    def file(self, path: str) -> Path:
        return self.root / path

    def newcomer(self) -> "Bench":
        """Return it with another session, which has seen nothing yet."""
        return replace(self, session=self.workspace.session(agent="newcomer"))

    def edit(self, arguments: Json) -> Answer:
        """Call the tool `edit` as a model does."""
        return edit.call(CallContext(session=self.session), arguments)

    def anchors(self, path: str) -> list[str]:
        """Read a file as an agent does, and return the anchor of every line."""
        result = self.session.read_file(path, hashes=True, max_bytes=_EVERYTHING)
        return anchors_of(result.content) if result.content else []


@contextmanager
def open_bench() -> Generator[tuple[Bench, Path]]:
    """Yield a bench with a first session, and a scratch folder beside its root."""
    with TemporaryDirectory(prefix="surehold-replay-") as scratch:
        folder, root = Path(scratch), Path(scratch) / "root"
        root.mkdir()
        settings = Settings(state_dir=folder / "state", durability="none", protected=())
        with open_workspace(root, settings=settings) as workspace:
            yield Bench(workspace=workspace, root=root, session=workspace.session(agent="replay")), folder


def replay(bench: Bench, difference: Difference, score: Score) -> None:
    """Make one change in every notation."""
    where = {
        "anchored": _anchored,
        "edit_file": _edit_file,
        "multi_edit": _multi_edit,
        "unified": _unified,
        "envelope": _envelope,
    }
    path = difference.change.path
    score.files += 1
    score.hunks += len(difference.hunks)
    score.kinds[Path(path).suffix or "none"] += 1
    for name, way in where.items():
        score.tell(name, path, way(bench, difference, score))


def _anchored(bench: Bench, difference: Difference, score: Score) -> Outcome:
    path = bench.place("anchored", difference)
    call: Json = {"path": path, "operations": operations(difference, bench.anchors(path))}
    answer = bench.edit(call)
    if answer.error and answer.error.kind == "safety_check_failed":
        score.strict_refusals[answer.error.reason or ""] += 1
        score.note("strict", difference.change.path, answer.error.reason or "", answer.error.message)
        answer = bench.edit({**call, "safety_check": "warn"})
    if answer.error and answer.error.kind.startswith(ANCHOR_TROUBLE):
        problems = answer.error.details.get("problems", ())
        score.unaddressed += len({problem["index"] for problem in problems}) or 1
    return _judged(bench, path, difference, answer, tongue_tied=True)


def _edit_file(bench: Bench, difference: Difference, _score: Score) -> Outcome:
    if not difference.lines:
        return Outcome(verdict="left out", kind="empty file")
    path = bench.place("edit_file", difference)
    sha256 = hashlib.sha256(difference.change.before).hexdigest()
    call = {"path": path, "expectedSha256": sha256, "edits": string_edits(difference)}
    return _judged(bench, path, difference, bench.session.answer("edit_file", call))


def _multi_edit(bench: Bench, difference: Difference, _score: Score) -> Outcome:
    if not difference.lines or len(difference.hunks) * len(difference.change.before) > _MOST_WORK:
        return Outcome(verdict="left out", kind="empty file" if not difference.lines else "too much work")
    path = bench.place("multi_edit", difference)
    proposal = Proposal(
        path=path,
        edit=SequentialEdits(sequential_edits(difference)),
        proof=Sha256(hashlib.sha256(difference.change.before).hexdigest()),
    )
    try:
        bench.session.submit(proposal, tool="multi_edit", operation="edit")
    except SureholdError as error:
        return Outcome(verdict="refused", kind=error.kind, message=error.message)
    return _compared(bench, path, difference)


def _unified(bench: Bench, difference: Difference, _score: Score) -> Outcome:
    if difference.is_odd:
        return Outcome(verdict="left out", kind="git sees other lines")
    path = bench.place("unified", difference)
    answer = bench.session.answer("apply_patch", {"patch": unified_patch(difference, path)})
    return _judged(bench, path, difference, answer)


def _envelope(bench: Bench, difference: Difference, _score: Score) -> Outcome:
    if difference.is_odd or not difference.lines:
        return Outcome(verdict="left out", kind="other lines")
    path = bench.place("envelope", difference)
    answer = bench.session.answer("apply_patch", {"patch": envelope_patch(difference, path)})
    return _judged(bench, path, difference, answer, tongue_tied=True)


def _judged(bench: Bench, path: str, difference: Difference, answer: Answer, *, tongue_tied: bool = False) -> Outcome:
    """Compare bytes; a refusal must have left the old ones."""
    if answer.error is None:
        return _compared(bench, path, difference, tongue_tied=tongue_tied)
    if bench.file(path).read_bytes() != difference.change.before:
        return Outcome(verdict="wrong", kind="refused and written", message=answer.error.message)
    if tongue_tied and answer.error.kind == "no_change" and _same_lines(difference.change.before, difference):
        return Outcome(verdict="unsayable", message="Only line ends differ.")
    return Outcome(verdict="refused", kind=answer.error.kind, message=answer.error.message)


def _compared(bench: Bench, path: str, difference: Difference, *, tongue_tied: bool = False) -> Outcome:
    found = bench.file(path).read_bytes()
    if found == difference.change.after:
        return Outcome(verdict="exact")
    if (tongue_tied or not difference.keeps_spelling) and _same_lines(found, difference):
        return Outcome(
            verdict="unsayable", message="The lines are right; line ends, byte order mark or encoding are not."
        )
    return Outcome(verdict="wrong", kind="other bytes", message=_first_difference(found, difference.change.after))


def _same_lines(found: bytes, difference: Difference) -> bool:
    own, wanted = Snapshot(found), Snapshot(difference.change.after)
    return _texts(own) == _texts(wanted)


def _texts(snapshot: Snapshot) -> list[str]:
    return [snapshot.encoding.decode(line) for line in snapshot.lines.contents]


def _first_difference(found: bytes, wanted: bytes) -> str:
    at = next((n for n, (one, other) in enumerate(zip(found, wanted, strict=False)) if one != other), -1)
    return f"byte {at}: {found[at : at + 40]!r} instead of {wanted[at : at + 40]!r}"
