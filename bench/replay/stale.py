"""Edits for a file that moved on since it was read.

One agent reads version A. Another one makes some of the real hunks, which gives B. Then the first sends the others, three
at a time, with the anchors of A. Hunks never touch each other's lines, so every batch could be applied; what must come
out is known without any alignment: B with the hunks of the batch.

`single`: every batch meets B, in a session that has only read A.
`chained`: one session sends batch after batch without reading again, so that its own edits move the file, too.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from replay.change import Difference, Hunk, applied
from replay.fresh import Bench
from replay.notations import operations
from replay.outcome import Score
from surehold.tools.call import Answer

BATCH = 3
_MOST_SINGLE, _MOST_CHAINED = 12, 24
"""Batches of one file: a rewritten one must not outweigh all others."""


@dataclass(slots=True, kw_only=True)
class _Moved:
    """A file that another agent changed after it was read."""

    bench: Bench
    difference: Difference
    score: Score
    path: str
    theirs: list[Hunk]
    batches: list[list[Hunk]]
    anchors: list[str] = field(default_factory=list[str])

    def begin(self) -> bool:
        """Read A, and let another agent make B of it; tell whether it came to that."""
        self.anchors = self.bench.anchors(self.path)
        answer = self.send(self.bench.newcomer(), self.theirs)
        return answer.ok and self.is_now(self.theirs)

    def send(self, sender: Bench, hunks: Sequence[Hunk]) -> Answer:
        """Send hunks with the anchors of A; safety is judged elsewhere, half a change need not parse."""
        sent = operations(self.difference, self.anchors, hunks)
        return sender.edit({"path": self.path, "operations": sent, "safety_check": "off"})

    def put(self, hunks: Sequence[Hunk]) -> None:
        """Put a version down as an outside program does."""
        self.bench.file(self.path).write_bytes(self._truth(hunks))

    def is_now(self, hunks: Sequence[Hunk]) -> bool:
        """Tell whether the file is A with these hunks, to the byte."""
        return self.bench.file(self.path).read_bytes() == self._truth(hunks)

    def judge(self, mode: str, batch: Sequence[Hunk], made: Sequence[Hunk], answer: Answer) -> bool:
        """Compare the file with what it must be now; False when it is anything else."""
        path, lines, score = self.difference.change.path, [hunk.start + 1 for hunk in batch], self.score
        if not self.is_now((*made, *batch) if answer.ok else made):
            score.stale[mode]["wrong"] += 1
            score.note(mode, path, "WRONG", f"hunks at lines {lines}")
            return False
        score.stale[mode]["applied" if answer.ok else "refused"] += 1
        if answer.error:
            kind = f"{answer.error.kind} ({answer.error.reason})" if answer.error.reason else answer.error.kind
            score.stale_refusals[mode][kind] += 1
            score.note(mode, path, kind, f"hunks at lines {lines}: {answer.error.message}")
        return True

    def _truth(self, hunks: Sequence[Hunk]) -> bytes:
        before = self.difference.before
        text = "".join(applied(self.difference.lines, sorted(hunks)))
        return before.encoding.bom + before.encoding.encode(text)


def replay_stale(bench: Bench, difference: Difference, score: Score, *, deal: int = 0) -> None:
    """Send three-operation batches with the anchors of a version that is no longer there.

    Each deal gives other hunks to the other agent.
    """
    theirs, own = _dealt(difference, deal)
    batches = [own[at : at + BATCH] for at in range(0, len(own) - BATCH + 1, BATCH)]
    if not (theirs and batches and difference.keeps_spelling and difference.keeps_line_ends):
        return
    path = bench.place(f"stale-{deal}", difference)
    moved = _Moved(bench=bench, difference=difference, score=score, path=path, theirs=theirs, batches=batches)
    if not moved.begin():
        score.not_begun += 1  # that edit is judged elsewhere
        return
    _chained(moved)
    _single(moved)


def _single(moved: _Moved) -> None:
    pick = random.Random(moved.path)
    for batch in pick.sample(moved.batches, min(_MOST_SINGLE, len(moved.batches))):
        moved.put([])
        sender = moved.bench.newcomer()
        sender.anchors(moved.path)
        moved.put(moved.theirs)
        moved.judge("single", batch, moved.theirs, moved.send(sender, batch))


def _chained(moved: _Moved) -> None:
    made = list(moved.theirs)
    for batch in moved.batches[:_MOST_CHAINED]:
        answer = moved.send(moved.bench, batch)
        if not moved.judge("chained", batch, made, answer):
            return
        made += batch if answer.ok else ()


def _dealt(difference: Difference, deal: int) -> tuple[list[Hunk], list[Hunk]]:
    """Deal the hunks to both agents, always in the same way; each gets them from top to bottom."""
    pick = random.Random(f"{difference.change.path} {deal}")
    theirs, own = list[Hunk](), list[Hunk]()
    for hunk in difference.hunks:
        (theirs if pick.random() < 0.5 else own).append(hunk)
    return theirs, own
