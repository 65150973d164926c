"""A session reads, searches, edits and overwrites while others change the file: nothing that it did not see is changed."""

import itertools
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from spec.marks import requirement
from surehold.dialects.claude.edit import edit
from surehold.dialects.claude.write import write
from surehold.tools.call import Answer, CallContext
from workspaces import make_bench

_FRESH = itertools.count()
_REFUSALS = {"not_read", "partially_read", "stale"}


def fresh(word: str) -> str:
    """Return a line that no session has seen yet."""
    return f"{word} {next(_FRESH)} of its own"


class GateMachine(RuleBasedStateMachine):
    """The model: which texts were ever in front of the session's eyes, and what the file must say."""

    @initialize(count=st.integers(4, 12))
    def open(self, count: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.bench = make_bench("memory", "memory", Path(self.folder.name))
        self.session = self.bench.workspace.session()
        self.lines = [fresh("first") for _ in range(count)]
        self.shown = set[str]()
        self.put()

    def put(self) -> None:
        self.bench.put("file.txt", "".join(f"{line}\n" for line in self.lines).encode())

    @rule(start=st.integers(1, 12), count=st.sampled_from([1, 2, 3, 100]))
    def read(self, start: int, count: int) -> None:
        page = self.session.page("file.txt", start=start, count=count)
        self.shown |= {row.decode().rstrip("\n") for row in page.rows}

    @rule(place=st.integers(0, 30), kind=st.sampled_from(["replace", "insert", "delete"]))
    def outside(self, place: int, kind: str) -> None:
        at = place % max(len(self.lines), 1)
        if kind == "insert" or not self.lines:
            self.lines.insert(at, fresh("outside"))
        elif kind == "replace":
            self.lines[at] = fresh("outside")
        elif len(self.lines) > 1:
            del self.lines[at]
        self.put()

    @rule(place=st.integers(0, 30), size=st.integers(1, 3))
    def edit(self, place: int, size: int) -> None:
        at = place % len(self.lines)
        old, new, known = self.lines[at : at + size], [fresh("edited")], set(self.shown)
        answer = edit.call(
            CallContext(session=self.session),
            {"file_path": "file.txt", "old_string": "\n".join(old), "new_string": "\n".join(new)},
        )
        if self.heard(answer):
            assert set(old) <= known
            self.lines[at : at + size] = new
            self.shown |= set(new)

    @rule(count=st.integers(1, 5))
    def write(self, count: int) -> None:
        new = [fresh("written") for _ in range(count)]
        content, known = "".join(f"{line}\n" for line in new), set(self.shown)
        answer = write.call(CallContext(session=self.session), {"file_path": "file.txt", "content": content})
        if self.heard(answer):
            assert set(self.lines) <= known
            self.lines = new
            self.shown |= set(new)

    def heard(self, answer: Answer) -> bool:
        """Look at everything that an answer shows; tell whether the change was made."""
        if answer.ok:
            rows = [row for hunk in answer.data["structuredPatch"] for row in hunk["lines"]]
            self.shown |= {row[1:] for row in rows}
            return True
        assert answer.data["error"]["kind"] in _REFUSALS, answer.text
        for row in answer.text.split("\n"):
            self.shown.add(row.partition("→")[2] or row[1:])
        return False

    @invariant()
    def the_file_says_what_it_must(self) -> None:
        if hasattr(self, "bench"):
            assert self.bench.get("file.txt") == "".join(f"{line}\n" for line in self.lines).encode()

    def teardown(self) -> None:
        if hasattr(self, "bench"):
            self.bench.workspace.close()
            self.folder.cleanup()


TestGateMachine = requirement(
    "claude:gate:lines_seen", "claude:gate:stale", "claude:gate:own_writes", "claude:gate:adds_up"
)(GateMachine.TestCase)
TestGateMachine.settings = settings(max_examples=80, stateful_step_count=25, deadline=None)
