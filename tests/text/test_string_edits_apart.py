"""Many edits of much text: found by one pass, and made at once where they cannot meet. Here little text is taken for much."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from surehold.errors import MultipleMatches, SureholdError
from surehold.text.encoding import Encoding
from surehold.text.quoted.edits import SequentialEdits, StringEdit
from surehold.text.quoted.sequential import Replacement, StagedText
from surehold.text.snapshot import Snapshot
from text.test_string_edits_staged import Plainly, plainly, staged

ENCODINGS = (
    Encoding(name="utf-8"),
    Encoding(name="utf-8", bom=b"\xef\xbb\xbf"),
    Encoding(name="utf-16-le", bom=b"\xff\xfe", width=2),
    Encoding(name="shift_jis"),
)
PARTS = ("first part of a row ", "second part of a row ", "表示するソ", "." * 25, "0123456789abcdef", "-" * 50)
FAR = [f"place {number} has its own words" + " and then some of the common kind" * 4 + "\n" for number in range(9)]


def much(patch: pytest.MonkeyPatch) -> None:
    """Let a text of any size be passed over in one go, for any number of needles."""
    patch.setattr("surehold.text.quoted.sequential._SEARCHED_NEEDLES", 0)
    patch.setattr("surehold.text.quoted.sequential._SEARCHED_BYTES", -1)


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Snapshot, tuple[StringEdit, ...]]:
    """A text of long rows, and edits that quote much of it; what they write is mostly quoted too."""
    encoding, end = draw(st.sampled_from(ENCODINGS)), draw(st.sampled_from(("\n", "\n", "\r\n")))
    rows = draw(st.lists(st.lists(st.sampled_from(PARTS), max_size=3), min_size=2, max_size=8))
    text = "".join(f"{number}{''.join(row)}{number}{end}" for number, row in enumerate(rows))
    before = Snapshot(encoding.bom + encoding.encode(text), encoding=encoding)
    reference, edits = Plainly(before), dict[str, StringEdit]()

    def quoted(shortest: int) -> str:
        source = draw(st.sampled_from((reference.staged.text, reference.staged.text, text))) or "nothing"
        start = draw(st.integers(0, len(source) - 1))
        return source[start : start + draw(st.integers(shortest, 45))]

    for _ in range(draw(st.integers(4, 7))):
        old = quoted(15)
        new = draw(st.sampled_from(("", "new", "a\nb", quoted(0), quoted(0), f"{old}!", f"<{old}")))
        try:
            reference.make(StringEdit(old=old, new=new))
        except SureholdError:
            if draw(st.integers(0, 3)):  # most calls go well, or only their last edit fails
                continue
            edits[f"{old} again"] = StringEdit(old=old, new=new)
            break
        edits[f"{old} {len(edits)}"] = StringEdit(old=old, new=new)
    while len(edits) < 4:
        edits[f"{len(edits)}"] = StringEdit(old="row 0 is nowhere", new="x")
    return before, tuple(edits.values())


@settings(max_examples=200, deadline=None)
@example(
    (
        Snapshot(b"00\n1first part of a row 1\n"),
        (StringEdit(old="00\n1first part ", new=""), StringEdit(old="00\n1first part ", new="of a")),
    )
)
@given(scenes())
def test_long_texts_are_edited_as_the_plain_way_does(scene: tuple[Snapshot, tuple[StringEdit, ...]]) -> None:
    before, edits = scene

    with pytest.MonkeyPatch.context() as patch:
        much(patch)
        found, expected = staged(before, edits), plainly(before, edits)

    assert found == expected


@settings(max_examples=100, deadline=None)
@given(st.permutations(range(9)), st.lists(st.integers(0, 9), min_size=9, max_size=9))
def test_edits_far_from_each_other_come_to_the_same_whether_they_meet_or_not(order: list[int], ways: list[int]) -> None:
    before = Snapshot("".join(FAR).encode())
    quotes = {number: f"place {number} has its own words" for number in range(9)}
    news = ("", "x", "longer than before, and by far so", "place 3 has its own words", "place 5 has its own")
    edits = tuple(
        StringEdit(old=quotes[number], new=news[way] if way < len(news) else quotes[number].upper())
        for number, way in zip(order, ways, strict=True)
    )

    with pytest.MonkeyPatch.context() as patch:
        much(patch)
        found, expected = staged(before, edits), plainly(before, edits)

    assert found == expected


def test_needles_that_begin_like_very_many_others_are_found() -> None:
    rows = [f"{' ' * 36}{number:03d}\n" + "." * 80 + "\n" for number in range(300)]
    before = Snapshot("".join(rows).encode())
    edits = tuple(StringEdit(old=f"{' ' * 36}{number:03d}", new=f"{number}") for number in range(0, 300, 3))
    back = tuple(StringEdit(old=f"\n{number}\n", new=f"\n{' ' * 36}{number:03d}\n") for number in range(3, 300, 3))
    again = tuple(StringEdit(old=edit.old, new="x" * number) for number, edit in enumerate(edits[1:]))

    with pytest.MonkeyPatch.context() as patch:
        much(patch)
        found, expected = staged(before, (*edits, *back, *again)), plainly(before, (*edits, *back, *again))

    assert found == expected
    assert len(found[1]) == len(edits) + len(back) + len(again)


def made_at_once(before: Snapshot, edits: list[tuple[bytes, bytes]], patch: pytest.MonkeyPatch) -> list[int]:
    """Return where the edits are made that are made at once."""
    much(patch)
    places = StagedText(before).replace_many([Replacement(old, new) for old, new in edits], first=0)
    return [start for start, _ in places]


def test_edits_that_cannot_meet_are_told_from_those_that_might(monkeypatch: pytest.MonkeyPatch) -> None:
    before = Snapshot("".join(FAR).encode())
    four, seven = b"place 4 has its own words", b"place 7 has its own words"
    both = [before.data.index(seven), before.data.index(four)]
    one = both[:1]

    assert made_at_once(before, [(seven, b"new"), (four, b"")], monkeypatch) == both
    assert made_at_once(before, [(seven, seven + b"!"), (four, b"new")], monkeypatch) == both  # its own is no other's
    assert made_at_once(before, [(seven, b"place 4 has its own words"), (four, b"new")], monkeypatch) == one
    assert made_at_once(before, [(four, b"place 7 has its own words"), (seven, b"new")], monkeypatch) == both[1:]
    part = b"4 has its own words and then"
    assert made_at_once(before, [(seven, b"new"), (part, b"new")], monkeypatch) == [both[0], before.data.index(part)]
    near = b"7 has its own words and", b" then some of the common kind and then some"
    assert made_at_once(before, [(seven, b"new"), (near[0], b"new")], monkeypatch) == one
    assert made_at_once(before, [(seven, b"new"), (b"and then some of the common kind", b"new")], monkeypatch) == one
    assert made_at_once(before, [(seven, b"new"), (b"nowhere to be found in this text", b"new")], monkeypatch) == one
    assert made_at_once(before, [(near[1], b"new"), (seven, b"new")], monkeypatch) == []


def test_what_an_edit_joins_may_be_another_ones_text(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [*FAR[:4], "the words be[a part to go away]fore are one\n", *FAR[4:]]
    before = Snapshot("".join(rows).encode())
    much(monkeypatch)
    edits = [StringEdit(old=f"place {n} has its own words", new=f"{n}") for n in range(4)]
    gone = StringEdit(old="[a part to go away]", new="")

    plan = SequentialEdits((*edits, gone, StringEdit(old="the words before are one", new="done"))).plan(before)

    assert b"\ndone\n" in plan.after.data
    assert plan.applied[-1].ranges[0].start_line == 5


def test_two_edits_side_by_side_may_make_another_ones_text_together(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = (
        "[a part that is longer than any probe, and goes away]",
        "[another part, which is as long and goes too]",
    )
    rows = ["the words before are one\n", *FAR, f"the {one}words be{other}fore are one\n"]
    before = Snapshot("".join(rows).encode())
    much(monkeypatch)
    olds = (one, other, "the words before are one", "place 3 has its own words")
    edits = tuple(StringEdit(old=old, new="") for old in olds)

    with pytest.raises(MultipleMatches) as refused:
        SequentialEdits(edits).plan(before)

    assert (refused.value.details["edit_index"], refused.value.details["lines"]) == (2, [1, 11])


def test_what_goes_from_between_cr_and_lf_leaves_a_crlf_to_follow() -> None:
    before = Snapshot(b"one\r---\ntwo\nthree\n")
    edits = (("---", ""), ("two", "2"), ("one", "one\nmore"), ("three", "3"))

    plan = SequentialEdits(tuple(StringEdit(old=old, new=new) for old, new in edits)).plan(before)

    assert plan.after.data == b"one\r\nmore\r\n2\n3\n"
