"""The envelope against a slow and simple reading of its rules."""

import random
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.marks import requirement
from surehold.errors import NotEncodable, PatchApplyError, PatchParseError
from surehold.text.patch.apply import Patch
from surehold.text.patch.parse import parse_patch
from surehold.text.snapshot import Snapshot

contents = st.sampled_from(["a", "b", "c", "d", "", " x", "-y", "+z", "@@", "*** End Patch", "ü", "\ty", "\\ w"])
line_ends = st.sampled_from(["\n", "\n", "\r\n"])
ROWS = [
    *["*** Begin Patch", "*** End Patch", "*** Add File: n", "*** Delete File: o", "*** Update File: f"],
    *["*** Move to: m", "*** Move File: p -> q", "*** End of File", "@@", "@@ a", "@@ -1,2 +1,2 @@", "-a", "+b", " c"],
    *["", " ", "-", "+", "\\ No newline at end of file", "*** What", "```", "EOF", "<<EOF", "--- a/f", "+++ b/f"],
    *["diff --git a/f b/f", "rename from f", "rename to g", "new mode 100755", "index 1..2 100644", "-- ", "From x"],
]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A file and hunks that occur in it, each with the first line it changes and the lines it removes and adds."""

    lines: list[tuple[str, str]]
    final_newline: bool
    hunks: list[tuple[int, int, int, int, list[str]]]
    """First line shown, first changed, behind the last changed, behind the last shown, new lines."""

    @property
    def data(self) -> bytes:
        text = "".join(content + end for content, end in self.lines)
        return (text if self.final_newline or not self.lines else text.removesuffix(self.lines[-1][1])).encode()

    @property
    def patch(self) -> str:
        rows = list[str]()
        for first, start, end, last, new in self.hunks:
            shown = [content for content, _ in self.lines]
            rows += ["@@", *(f" {row}" for row in shown[first:start]), *(f"-{row}" for row in shown[start:end])]
            rows += [*(f"+{row}" for row in new), *(f" {row}" for row in shown[end:last])]
        return "\n".join(["*** Begin Patch", "*** Update File: f", *rows, "*** End Patch"])

    def places(self, hunk: tuple[int, int, int, int, list[str]]) -> int:
        shown = [content for content, _ in self.lines]
        block = shown[hunk[0] : hunk[3]]
        return sum(shown[at : at + len(block)] == block for at in range(len(shown) - len(block) + 1))

    def is_repeated(self, hunk: tuple[int, int, int, int, list[str]]) -> bool:
        """Tell whether it only adds lines, has context on one side of them, and they are on the other side already."""
        first, start, end, last, new = hunk
        shown = [content for content, _ in self.lines]
        if start != end or not any(line.strip() for line in new):
            return False
        below = last == end and shown[end : end + len(new)] == new
        above = first == start and start >= len(new) and shown[start - len(new) : start] == new
        return below or above


@st.composite
def cases(draw: st.DrawFn) -> Case:
    lines = draw(st.lists(st.tuples(contents, line_ends), min_size=1, max_size=25))
    while not lines[-1][0]:  # an empty last line without newline would not be there at all
        lines[-1] = (draw(contents), lines[-1][1])
    hunks = list[tuple[int, int, int, int, list[str]]]()
    at = 0
    while at < len(lines) and len(hunks) < 4:
        first = draw(st.integers(at, len(lines) - 1))
        start = draw(st.integers(first, min(first + 3, len(lines) - 1)))
        end = draw(st.integers(start, min(start + 2, len(lines))))
        last = draw(st.integers(max(end, first + 1), max(first + 1, min(end + 3, len(lines)))))
        new = draw(st.lists(contents, min_size=int(start == end), max_size=3))
        if new != [content for content, _ in lines[start:end]]:
            hunks.append((first, start, end, last, new))
        at = last
    return Case(lines=lines, final_newline=draw(st.booleans()), hunks=hunks)


@requirement("files:apply_patch:envelope", "files:apply_patch:exact", "text:splice:outside")
@given(case=cases().filter(lambda case: bool(case.hunks)))
def test_hunks_that_stand_once_are_applied_and_others_are_refused(case: Case) -> None:
    (file,) = parse_patch(case.patch).files
    before = Snapshot(case.data)
    if any(case.places(hunk) > 1 for hunk in case.hunks):
        with pytest.raises(PatchApplyError) as caught:
            file.edit.plan(before)
        assert caught.value.reason == "context_ambiguous"
        return

    if any(case.is_repeated(hunk) for hunk in case.hunks):
        with pytest.raises(PatchApplyError) as caught:
            file.edit.plan(before)
        assert caught.value.reason == "already_applied"
        return

    plan = file.edit.plan(before)

    expected = [content for content, _ in case.lines]
    for _, start, end, _, new in reversed(case.hunks):
        expected[start:end] = new
    _, _, end, _, new = case.hunks[-1]
    if not case.final_newline and end == len(case.lines) and new[-1:] == [""]:
        expected.pop()  # an empty last line without newline is not a line
    assert [row.decode() for row in plan.after.lines.contents] == expected
    kept, at = list[bytes](), 0
    for _, start, end, _, _ in case.hunks:
        kept.append(b"".join(before.lines.raw[at:start]))
        at = end
    kept.append(b"".join(before.lines.raw[at:]))
    edges = [0, *(edge for span in plan.span_offsets() for edge in span[2:]), plan.after.size]
    assert b"".join(kept) == b"".join(plan.after.data[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True))
    assert all(one.end <= other.start for one, other in pairwise(plan.spans))
    assert [done.index for done in plan.applied] == list(range(len(case.hunks)))


@given(rows=st.lists(st.one_of(st.sampled_from(ROWS), st.text(max_size=6)), max_size=14), begins=st.booleans())
def test_any_text_is_a_patch_or_refused_with_its_line(rows: list[str], begins: bool) -> None:
    text = "\n".join(["*** Begin Patch", "*** Update File: f", *rows] if begins else rows)
    patch = read(text)
    if isinstance(patch, PatchParseError):
        number = patch.details["line"]
        assert 1 <= number <= text.count("\n") + 2
        assert patch.message.startswith(f"Line {number} of the patch: ")
        return
    assert patch.files
    for file in patch.files:
        with suppress(PatchApplyError, NotEncodable):  # anything else is a bug
            assert file.edit.plan(Snapshot(b"a\nb\nc\n")).before.data == b"a\nb\nc\n"


def read(text: str) -> Patch | PatchParseError:
    try:
        return parse_patch(text)
    except PatchParseError as error:
        return error


@requirement("files:apply_patch:exact")
@pytest.mark.parametrize("kinds", [1, 2, 3, 40])
def test_in_a_file_of_few_kinds_of_lines_the_only_place_is_found(kinds: int) -> None:
    chance = random.Random(kinds)
    lines = [chance.choice("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"[:kinds]) for _ in range(5000)]
    text = "".join(lines)
    found = 0
    for size in (1, 2, 7, 12, 15, 33, 70):
        for _ in range(8):
            at = chance.randrange(len(lines) - size)
            rows = [f"-{lines[at]}", "+new", *(f" {line}" for line in lines[at + 1 : at + size])]
            patch = "\n".join(["*** Begin Patch", "*** Update File: f", "@@", *rows, "*** End Patch"])
            plan = parse_patch(patch).files[0].edit.plan
            before = Snapshot("".join(f"{line}\n" for line in lines).encode())
            block = text[at : at + size]
            if text.find(block) == text.rfind(block):
                assert plan(before).after.lines.contents[at] == b"new"
                found += 1
            else:
                with pytest.raises(PatchApplyError) as caught:
                    plan(before)
                assert caught.value.details["lines"][0] == text.find(block) + 1
    assert found or kinds == 1
