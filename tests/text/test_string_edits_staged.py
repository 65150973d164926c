"""Sequential edits against the plain way: build the whole text after every edit, and look at all of it again."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spec.marks import requirement
from surehold.errors import OldTextNotFound, OverlappingEdits, SureholdError
from surehold.text.encoding import RAW, Encoding
from surehold.text.escape import quote_line
from surehold.text.plan import EditOutcome, Span, splice_spans
from surehold.text.quoted.edits import SequentialEdits, SnapshotEdits, StringEdit
from surehold.text.quoted.matching import Haystack
from surehold.text.quoted.sequential import NeedleSearch, StagedText
from surehold.text.snapshot import Snapshot

ENCODINGS = (
    Encoding(name="utf-8"),
    Encoding(name="utf-8", bom=b"\xef\xbb\xbf"),
    Encoding(name="utf-16-le", bom=b"\xff\xfe", width=2),
    Encoding(name="utf-16-be", width=2),
    Encoding(name="utf-32-le", width=4),
    Encoding(name="shift_jis"),
    Encoding(name="gbk"),
    Encoding(name="iso8859-1"),
    RAW,
)
SIGNS = ("a", "b", "a", "b", "aa", "ab", "\\", "\n", "\r\n", "\r", "é", "ソ", "表", "\u0a0a", "\ufeff", "𝄞")


@dataclass
class Plainly:
    """The reference: one edit after the other, each on the whole text, with the origin of every byte."""

    before: Snapshot
    staged: Snapshot = field(init=False)
    applied: list[EditOutcome] = field(default_factory=list[EditOutcome])
    origins: list[int | None] = field(init=False)
    taken: list[list[list[int]]] = field(default_factory=list[list[list[int]]])

    def __post_init__(self) -> None:
        self.staged = self.before
        self.origins = list(range(len(self.before.data)))

    def make(self, edit: StringEdit) -> None:
        index = len(self.applied)
        try:
            plan = SnapshotEdits((edit,)).plan(self.staged)
        except OldTextNotFound:
            takers = self.takers(edit)
            if others := [taker for taker, is_whole in takers.items() if not is_whole]:
                raise OverlappingEdits("", edit_index=index, prior_index=others[0]) from None
            if takers:
                message = f"edit {next(iter(takers))} already replaced {quote_line(edit.old, 80)}."
                raise OldTextNotFound(message, old_text=edit.old, already_applied=False) from None
            raise
        (one,), ranges = plan.applied, plan.applied[0].ranges
        if self.staged.lines.style == "none":  # the breaks of the original count where there is none any more
            plan = splice_spans(self.staged, [span._replace(new=self.broken(span.new)) for span in plan.spans])
            ranges = tuple(plan.line_spans())
        self.applied.append(EditOutcome(index=index, occurrences=one.occurrences, ranges=ranges, tier=one.tier))
        runs = list[list[int]]()
        for span in reversed(plan.spans):
            runs += _runs(self.origins[span.start : span.end])
            self.origins[span.start : span.end] = [None] * len(span.new)
        self.taken.append(runs)
        self.staged = plan.after

    def broken(self, new: bytes) -> bytes:
        """Return new bytes with the line ends of the original."""
        encoding = self.before.encoding
        dominant = encoding.decode(self.before.lines.dominant)
        return encoding.encode(encoding.decode(new).replace("\n", dominant))

    def takers(self, edit: StringEdit) -> dict[int, bool]:
        """Return the edits that took a byte of the only place that the text had at the beginning, and which took just it."""
        places = Haystack(self.before).find(edit.old)
        if places.count != 1:
            return {}
        wanted = list(range(*places.found[0]))
        found = (i for i, runs in enumerate(self.taken) if {*wanted} & {at for run in runs for at in run})
        return {i: self.taken[i] == [wanted] for i in found}


def _runs(origins: list[int | None]) -> list[list[int]]:
    runs, last = list[list[int]](), -2
    for origin in origins:
        if origin is None:
            last = -2
            continue
        if origin == last + 1:
            runs[-1].append(origin)
        else:
            runs.append([origin])
        last = origin
    return runs


def told(error: SureholdError) -> tuple[Any, ...]:
    """What a refusal says, apart from which edit it is about."""
    details = {key: value for key, value in error.details.items() if key not in ("edit_index", "line", "closest")}
    message = "" if isinstance(error, OverlappingEdits) else re.sub(r"^Edit \d+: ", "", error.message)
    return type(error), message, details


def plainly(before: Snapshot, edits: tuple[StringEdit, ...]) -> Any:
    reference = Plainly(before)
    try:
        for edit in edits:
            reference.make(edit)
    except SureholdError as error:
        return told(error), len(reference.applied)
    return reference.staged.data, tuple(reference.applied)


def staged(before: Snapshot, edits: tuple[StringEdit, ...]) -> Any:
    try:
        plan = SequentialEdits(edits).plan(before)
    except SureholdError as error:
        return told(error), error.details.get("edit_index")
    data, at = list[bytes](), 0
    for span in plan.spans:
        assert at <= span.start <= span.end
        data += (before.data[at : span.start], span.new)
        at = span.end
    assert b"".join((*data, before.data[at:])) == plan.after.data
    return plan.after.data, plan.applied


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Snapshot, tuple[StringEdit, ...]]:
    """A text, and edits that mostly quote what is there by then."""
    encoding = draw(st.sampled_from(ENCODINGS))
    signs = [sign for sign in SIGNS if encoding.can_encode(sign)]
    ends = draw(st.sampled_from((["\n"], ["\r\n"], ["\n", "\r\n"], ["\n", "\r\n", "\r"], ["\r"], [])))
    drawn = [sign for sign in signs if not sign.isspace()] + ends * 2
    text = "".join(draw(st.lists(st.sampled_from(drawn), max_size=30)))
    before = Snapshot(encoding.bom + encoding.encode(text), encoding=encoding)
    reference, edits = Plainly(before), list[StringEdit]()
    for _ in range(draw(st.integers(4, 9))):
        source = draw(st.sampled_from((reference.staged.text, reference.staged.text, text)))
        start = draw(st.integers(0, max(len(source) - 1, 0)))
        old = source[start : start + draw(st.integers(1, 9))] or "a"
        if draw(st.booleans()):
            old = old.replace("\r\n", "\n")
        new = "".join(draw(st.lists(st.sampled_from(signs), max_size=5)))
        edit = StringEdit(old=old, new=new, replace_all=draw(st.integers(0, 9)) == 0)
        try:
            reference.make(edit)
        except SureholdError:
            if draw(st.integers(0, 3)):  # most calls go well, or only their last edit fails
                continue
            edits.append(edit)
            break
        edits.append(edit)
    while len(edits) < 4:
        edits.append(StringEdit(old="b", new="ab"))
    return before, tuple(edits)


@requirement("multi_edit:edit:staged", "multi_edit:edit:unique", "text:strings:sequential_mode")
@settings(max_examples=300, deadline=None)
@given(scenes())
def test_staged_edits_come_to_what_the_plain_way_comes_to(scene: tuple[Snapshot, tuple[StringEdit, ...]]) -> None:
    before, edits = scene

    found, expected = staged(before, edits), plainly(before, edits)

    if found[1] is None:  # an encoding refuses without a number
        found = (found[0], expected[1])
    assert found == expected


def test_wide_bytes_that_lie_across_characters_are_no_place() -> None:
    encoding = Encoding(name="utf-16-le", bom=b"\xff\xfe", width=2)
    before = Snapshot(encoding.bom + encoding.encode("one Łš two\n"), encoding=encoding)
    across = encoding.encode("Łš")[1:3].decode("utf-16-le")
    edits = (StringEdit(old=across, new="x"), StringEdit(old="two", new="2"))

    assert staged(before, edits) == plainly(before, edits)
    with pytest.raises(OldTextNotFound):
        SequentialEdits(edits).plan(before)


def test_a_deletion_at_the_end_of_a_wide_text_names_the_last_line_that_is_left() -> None:
    encoding = Encoding(name="utf-16-le", bom=b"\xff\xfe", width=2)
    before = Snapshot(encoding.bom + encoding.encode("one\ntwo"), encoding=encoding)
    edits = (StringEdit(old="two", new=""), StringEdit(old="one", new="1"))

    assert staged(before, edits) == plainly(before, edits)
    assert SequentialEdits(edits).plan(before).applied[0].ranges[0].new_start_line == 1


def test_edits_of_what_the_one_before_wrote_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = list[int]()
    made = StagedText.replace_spans

    def counted(staged: StagedText, after: Snapshot, spans: Sequence[Span], owners: Sequence[int]) -> None:
        steps.append(len(owners))
        made(staged, after, spans, owners)

    monkeypatch.setattr(StagedText, "replace_spans", counted)
    rows = [f"name_{number:04d} = {number}\n" for number in range(500)]
    chain = [StringEdit(old=f"name_0250 = {n}\n", new=f"# {n}\nname_0250 = {n + 1}\n") for n in range(250, 350)]
    onward = [StringEdit(old=f"350\n{''.join(rows[251:300])}", new="none\n")]

    plan = SequentialEdits((*chain, *onward)).plan(Snapshot("".join(rows).encode()))

    assert steps == [2]
    notes = [f"# {n}\n" for n in range(250, 350)]
    assert plan.after.data == "".join([*rows[:250], *notes, "name_0250 = none\n", *rows[300:]]).encode()
    assert [one.ranges[0].start_line for one in plan.applied] == [*range(251, 351), 351]


def _everywhere(text: bytes, part: bytes) -> tuple[int, ...]:
    return tuple(at for at in range(len(text)) if text.startswith(part, at))


@given(st.text("ab", max_size=400), st.lists(st.text("ab", min_size=1, max_size=60), max_size=6), st.data())
def test_one_pass_finds_every_place_of_every_needle(words: str, others: list[str], data: st.DataObject) -> None:
    text = words.encode()
    starts = data.draw(st.lists(st.integers(0, max(len(text) - 15, 0)), max_size=6))
    quoted = [text[start : start + data.draw(st.integers(1, 60))] for start in starts]
    needles = {*(other.encode() for other in others), *filter(None, quoted)}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surehold.text.quoted.sequential._SEARCHED_NEEDLES", 0)
        patch.setattr("surehold.text.quoted.sequential._SEARCHED_BYTES", -1)
        found = NeedleSearch(needles).find_in(text)

    for needle in needles:
        places = found[needle]
        assert places == _everywhere(text, needle) or (places is None and len(_everywhere(text, needle)) > 256)


def test_a_thousand_needles_in_much_text_have_the_places_that_a_search_finds() -> None:
    rows = [f"    total_{number:07d} = compute(first, second)  # step\n" for number in range(12_000)]
    text = "".join(rows).encode()
    long = [f"total_{number:07d} = compute(first".encode() for number in range(0, 12_000, 24)]
    short = [f"_{number:07d}".encode() for number in range(5, 12_000, 24)]
    rare = [b"_0000012", b"nowhere to be found in this text"]

    found = NeedleSearch([*long, *short, *rare, b"x"]).find_in(text)

    assert found == {**{needle: (text.index(needle),) for needle in (*long, *short, rare[0])}, rare[1]: (), b"x": ()}


def test_the_places_of_a_needle_that_occurs_very_often_are_not_listed() -> None:
    assert NeedleSearch([b"abab"]).find_in(b"ab" * 10_000) == {b"abab": None}


def test_a_thousand_edits_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = list[int]()
    made = StagedText.replace_spans

    def counted(staged: StagedText, after: Snapshot, spans: Sequence[Span], owners: Sequence[int]) -> None:
        steps.append(len(spans))
        made(staged, after, spans, owners)

    monkeypatch.setattr(StagedText, "replace_spans", counted)
    rows = [f"name_{number:05d} = {number}\r\n" for number in range(20_000)]
    edits = [StringEdit(old=f"name_{n:05d} = {n}\n", new=f"name_{n:05d} = {n}\n# {n}\n") for n in range(0, 20_000, 20)]

    plan = SequentialEdits(tuple(edits)).plan(Snapshot("".join(rows).encode()))

    assert steps == [1000]
    assert (
        plan.after.data
        == "".join(f"{row}# {number}\r\n" if number % 20 == 0 else row for number, row in enumerate(rows)).encode()
    )
    assert len(plan.spans) == len(plan.applied) == 1000
    assert [one.ranges[0].start_line for one in plan.applied] == [1 + n * 20 + n for n in range(1000)]


def test_edits_of_neighbouring_lines_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = list[int]()
    made = StagedText.replace_spans

    def counted(staged: StagedText, after: Snapshot, spans: Sequence[Span], owners: Sequence[int]) -> None:
        steps.append(len(spans))
        made(staged, after, spans, owners)

    monkeypatch.setattr(StagedText, "replace_spans", counted)
    rows = [f"name_{number:04d} = {number}\n" for number in range(500)]
    edits = [StringEdit(old=f"name_{n:04d} = {n}\n", new=f"name_{n:04d} = {-n}\n# {n}\n") for n in range(1, 500)]

    plan = SequentialEdits(tuple(edits)).plan(Snapshot("".join(rows).encode()))

    assert steps == [499]
    assert plan.after.data == "".join([rows[0], *(edit.new for edit in edits)]).encode()


def test_edits_made_at_once_say_which_of_them_followed_the_line_endings_of_the_file() -> None:
    edits = SequentialEdits((StringEdit(old="a\nb", new="x\ny"), StringEdit(old="c", new="C")))

    plan = edits.plan(Snapshot(b"a\r\nb\r\nc\r\nd\r\n"))

    assert (plan.after.data, [one.tier for one in plan.applied]) == (b"x\r\ny\r\nC\r\nd\r\n", ["line_endings", "exact"])


@pytest.mark.parametrize(("ending", "count"), [("\r\n", 1), ("\r", 1), ("\n", 1), ("\r\n", 3)])
def test_a_text_whose_last_line_end_an_edit_took_gets_line_ends_of_its_own_kind(ending: str, count: int) -> None:
    rows = [f"row {number}" for number in range(count + 1)]
    joined = StringEdit(old="\n".join(rows), new="one")

    plan = SequentialEdits((joined, StringEdit(old="one", new="x\ny"))).plan(Snapshot(ending.join(rows).encode()))

    assert plan.after.data == f"x{ending}y".encode()
