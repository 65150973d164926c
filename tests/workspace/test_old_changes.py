"""Old changes of a large file are undone and shown under many later ones, without a merge or a version for each of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold.errors import UndoConflict
from surehold.stores.base import Entry, LedgerQuery
from surehold.stores.sqlite import entry_rows
from surehold.text.carry import CarriedText, LineHunk
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import sha256_hex
from surehold.workspace.past.net_diff import net_diff
from surehold.workspace.past.selectors import Selectors
from surehold.workspace.proposal import Proposal, Sha256
from surehold.workspace.undo import replay
from workspaces import Bench, call, make_bench

pytestmark = requirement("history:undo:old")
LINES, LATER = 300, 60
_FEW = 8
"""How many versions may be read for a whole selection: the first, the last, and those beside a conflict."""


class Story:
    """One file that two agents edit, each line at most once; what they did can be put together by hand."""

    def __init__(self, bench: Bench, *, ending: bytes = b"\n", word: bytes = b"line") -> None:
        self.bench, self.ending = bench, ending
        self.lines = [b"%s %d" % (word, number) + ending for number in range(LINES)]
        self.edits = list[tuple[str, int, bytes]]()
        bench.put("a.txt", b"".join(self.lines))

    def edit(self, agent: str, line: int) -> str:
        number = len(self.edits)
        kept = b"line %d" % line + self.ending
        new = (b"%s %d" % (agent.encode(), number) + self.ending, kept + b"more" + self.ending, b"")[number % 3]
        self.edits.append((agent, line, new))
        before, after = self.bench.get("a.txt") or b"", self.text()
        proposal = Proposal(path="a.txt", edit=WriteBytes(after), proof=Sha256(sha256_hex(before)))
        return self.bench.workspace.write(proposal, call=call("edit", agent=agent)).change_id

    def text(self, without: str = "") -> bytes:
        lines = [*self.lines]
        for agent, line, new in self.edits:
            lines[line] = lines[line] if agent == without else new
        return b"".join(lines)

    def entries_of(self, agent: str) -> list[Entry]:
        return [one for one in self.bench.store.list_entries(LedgerQuery(limit=10_000)) if one.call.agent == agent]


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(make_bench("sqlite", "local", tmp_path))


def count_calls(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> list[object]:
    calls, real = list[object](), getattr(owner, name)

    def counted(*args: object) -> object:
        calls.append(args)
        return real(*args)

    monkeypatch.setattr(owner, name, counted)
    return calls


def first_then_second(story: Story) -> None:
    for number in range(LATER):
        story.edit("ada" if number < LATER // 4 else "bob", 5 * number)


def in_turns(story: Story) -> None:
    for number in range(LATER):
        story.edit("ada" if number % 2 else "bob", 5 * number)


def from_the_end(story: Story) -> None:
    for number in range(LATER):
        story.edit("ada" if number % 3 else "bob", LINES - 1 - 2 * number)


@pytest.mark.parametrize("tell", [first_then_second, in_turns, from_the_end])
def test_a_selection_is_undone_with_few_reads_and_no_merge(
    story: Story, monkeypatch: pytest.MonkeyPatch, tell: Callable[[Story], None]
) -> None:
    tell(story)
    reads = count_calls(monkeypatch, story.bench.store, "read_blob")
    merges = count_calls(monkeypatch, replay, "merge_changes")

    (diff,) = net_diff(story.bench.workspace, story.entries_of("ada"))
    story.bench.workspace.history.undo_selected(Selectors(agent="ada"))

    assert diff.before.data == story.text("ada")
    assert story.bench.get("a.txt") == story.text("ada")
    assert len(reads) <= 2 * _FEW
    assert not merges


def test_each_entry_is_read_once_to_undo_many_and_to_make_them_again(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_then_second(story)
    done, undone = story.text(), story.text(without="bob")
    decoded, history = count_calls(monkeypatch, entry_rows, "entry_of_row"), story.bench.workspace.history
    for times in range(4):
        decoded.clear()
        receipt = history.undo_selected(Selectors(agent="bob"))
        assert story.bench.get("a.txt") == undone
        history.undo(receipt.change_id)
        assert story.bench.get("a.txt") == done
        own, switching = LATER - LATER // 4, 2 * times + 1
        assert len(decoded) <= 2 * own + 6 * switching + _FEW


def test_one_old_change_is_undone_and_made_again(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    first_then_second(story)
    oldest = min(story.entries_of("ada"), key=lambda one: one.seq).change_id
    merges = count_calls(monkeypatch, replay, "merge_changes")
    now = story.text()

    story.bench.workspace.history.undo(oldest)

    assert story.bench.get("a.txt") == now.replace(b"ada 0\n", b"line 0\n")
    story.bench.workspace.history.redo(oldest)
    assert story.bench.get("a.txt") == now
    assert not merges


def test_a_conflict_costs_one_merge_and_names_the_lines(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    first_then_second(story)
    story.edit("bob", 0)
    for number in range(1, 20):
        story.edit("bob", 5 * number + 2)
    merges = count_calls(monkeypatch, replay, "merge_changes")

    with pytest.raises(UndoConflict) as refused:
        story.bench.workspace.history.undo_selected(Selectors(agent="ada"))

    assert refused.value.details["conflicts"] == [
        {"path": "a.txt", "why": "later changes touch the same lines (1)", "lines": [1]}
    ]
    assert len(merges) <= 4
    story.bench.workspace.history.undo_selected(Selectors(agent="ada"), partial=True)
    assert b"line 10\n" in (story.bench.get("a.txt") or b"").splitlines(keepends=True)


@pytest.mark.parametrize(("ending", "word"), [(b"\r\n", b"line"), (b"\n", "Zeile ß".encode())], ids=["CRLF", "UTF-8"])
def test_other_terminators_and_characters_come_out_byte_for_byte(tmp_path: Path, ending: bytes, word: bytes) -> None:
    story = Story(make_bench("sqlite", "local", tmp_path), ending=ending, word=word)
    in_turns(story)

    story.bench.workspace.history.undo_selected(Selectors(agent="ada"))

    assert story.bench.get("a.txt") == story.text("ada")


def test_a_diff_that_lies_is_noticed_and_the_bytes_count(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    in_turns(story)
    read = CarriedText.read_change

    def misread(text: CarriedText, diff: str) -> tuple[LineHunk, ...]:
        return tuple(one._replace(rows=(*one.rows, b"a lie\n")) for one in read(text, diff))

    monkeypatch.setattr(CarriedText, "read_change", misread)

    story.bench.workspace.history.undo_selected(Selectors(agent="ada"))

    assert story.bench.get("a.txt") == story.text("ada")
