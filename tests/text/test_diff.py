import os
import shutil
import subprocess
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.marks import requirement
from surehold.text import plan as plans
from surehold.text.diff import Hunk, UnifiedDiff, find_hunks, render_hunks, split_lines, walk_hunks
from surehold.text.encoding import Encoding
from surehold.text.plan import EditPlan, Span, diff_between, diff_of_plan, splice_spans
from surehold.text.snapshot import Snapshot
from text.diffs import unified_diff

needs_patch = pytest.mark.skipif(shutil.which("patch") is None, reason="GNU patch is not installed")
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

pieces = st.sampled_from(
    [b"a\n", b"b\n", b"c\r\n", b"\n", b"\r\n", b" x\n", b"-y\n", b"+z\n", b"\\ w\n", b"d\re\n", "ü\n".encode()]
)
texts = st.tuples(st.lists(pieces, max_size=30), st.sampled_from([b"", b"end", b"e\r"])).map(
    lambda parts: b"".join(parts[0]) + parts[1]
)
contexts = st.integers(0, 4)


@st.composite
def edited(draw: st.DrawFn) -> tuple[bytes, bytes, list[tuple[int, int, int, int]]]:
    """Draw a text, an edit of it, and the spans of the edit."""
    before = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(before)), max_size=8)))
    spans: list[tuple[int, int, int, int]] = []
    after, copied = b"", 0
    for start, end in zip(cuts[::2], cuts[1::2], strict=False):
        new = draw(st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"new"]), max_size=4).map(b"".join))
        after += before[copied:start]
        spans.append((start, end, len(after), len(after) + len(new)))
        after += new
        copied = end
    return before, after + before[copied:], spans


def lines(text: str) -> list[bytes]:
    return split_lines(text.encode())


def diff(a: str, b: str, *, context: int = 3, limit: int | None = None) -> UnifiedDiff:
    return unified_diff(
        lines(a), lines(b), from_name="f", to_name="f", decode=bytes.decode, context=context, limit=limit
    )


def applied(before: bytes, found: Sequence[Hunk]) -> bytes:
    """Apply hunks as strictly as the format allows: every number and every old row must be right."""
    old, new = split_lines(before), list[bytes]()
    here = 0
    for hunk in found:
        start = hunk.old_start - (hunk.old_lines > 0)
        new += old[here:start]
        assert len(new) == hunk.new_start - (hunk.new_lines > 0)
        assert [row[1:] for row in hunk.lines if row[:1] in b" -"] == old[start : start + hunk.old_lines]
        added = [row[1:] for row in hunk.lines if row[:1] in b" +"]
        assert len(added) == hunk.new_lines
        new += added
        here = start + hunk.old_lines
    return b"".join([*new, *old[here:]])


def run(command: list[str], diff_text: str, files: dict[str, bytes]) -> dict[str, bytes]:
    """Run a tool that applies the diff on its standard input, and return the files that there are then."""
    with TemporaryDirectory() as folder:
        for name, data in files.items():
            Path(folder, name).write_bytes(data)
        env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            command, cwd=folder, input=os.fsencode(diff_text), capture_output=True, check=False, env=env
        )
        assert done.returncode == 0, (done.stdout, done.stderr, diff_text)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def patched(diff_text: str, files: dict[str, bytes]) -> dict[str, bytes]:
    return run(["patch", "-p0", "--binary", "--force", "--fuzz=0", "--no-backup-if-mismatch"], diff_text, files)


def git_applied(diff_text: str, files: dict[str, bytes], context: int = 3) -> dict[str, bytes]:
    zero = [] if context else ["--unidiff-zero"]
    return run(["git", "apply", "-p0", "--whitespace=nowarn", *zero], diff_text, files)


def test_a_changed_line_shows_three_lines_of_context() -> None:
    old = "".join(f"{n}\n" for n in range(1, 11))
    assert diff(old, old.replace("5\n", "five\n")) == UnifiedDiff(
        text="--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n", truncated=False, added=1, removed=1
    )


def test_equal_texts_have_no_diff() -> None:
    assert diff("a\nb", "a\nb") == UnifiedDiff(text="", truncated=False)
    assert find_hunks([b"a\n"], [b"a\n"]) == []
    assert list(walk_hunks(b"a\n", b"a\n", [])) == []
    assert list(walk_hunks(b"a\nb\n", b"a\nb\n", [(2, 3, 2, 3)])) == []


def test_an_empty_range_names_the_line_before_it() -> None:
    assert find_hunks(lines("a\nb\n"), lines("a\nx\nb\n"), context=0) == [
        Hunk(old_start=1, old_lines=0, new_start=2, new_lines=1, lines=(b"+x\n",))
    ]
    assert find_hunks([], lines("x\n")) == [Hunk(old_start=0, old_lines=0, new_start=1, new_lines=1, lines=(b"+x\n",))]
    assert find_hunks(lines("x\n"), []) == [Hunk(old_start=1, old_lines=1, new_start=0, new_lines=0, lines=(b"-x\n",))]


def test_a_count_of_one_is_left_out_of_the_header() -> None:
    (hunk,) = find_hunks(lines("a\n"), lines("b\nc\n"))
    assert hunk.header == "@@ -1 +1,2 @@"


def test_changes_whose_context_touches_share_a_hunk() -> None:
    old = [b"%d\n" % n for n in range(30)]
    near, far = list(old), list(old)
    near[10] = near[17] = b"x\n"
    far[10] = far[18] = b"x\n"
    assert [(each.old_start, each.old_lines) for each in find_hunks(old, near)] == [(8, 14)]
    assert [(each.old_start, each.old_lines) for each in find_hunks(old, far)] == [(8, 7), (16, 7)]


@requirement("text:diff:unified")
@pytest.mark.parametrize(
    ("old", "new", "rows"),
    [
        ("a", "b", ["-a", "\\ No newline at end of file", "+b", "\\ No newline at end of file"]),
        ("a", "a\n", ["-a", "\\ No newline at end of file", "+a"]),
        ("a\n", "a", ["-a", "+a", "\\ No newline at end of file"]),
        ("a\nz", "b\nz", ["-a", "+b", " z", "\\ No newline at end of file"]),
        ("a\nz\r", "b\nz\r", ["-a", "+b", " z\r", "\\ No newline at end of file"]),
    ],
)
def test_a_missing_final_newline_is_marked(old: str, new: str, rows: list[str]) -> None:
    assert diff(old, new).text.split("\n")[3:-1] == rows


def test_lines_that_end_in_a_lone_cr_get_a_row_each() -> None:
    found = find_hunks([b"a\r", b"b\r", b"c\r"], [b"a\r", b"B\r", b"c\r"])
    text = render_hunks(found, from_name="f", to_name="f", decode=bytes.decode).text
    assert text == "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\r\n-b\r\n+B\r\n c\r\n"


def test_rows_are_decoded_line_by_line() -> None:
    a, b = (
        ["one\n".encode("utf-16-le"), "two".encode("utf-16-le")],
        ["one\n".encode("utf-16-le"), "zwei\n".encode("utf-16-le")],
    )
    found = unified_diff(a, b, from_name="a", to_name="b", decode=lambda line: line.decode("utf-16-le"))
    assert found.text == "--- a\n+++ b\n@@ -1,2 +1,2 @@\n one\n-two\n\\ No newline at end of file\n+zwei\n"


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("plain.py", "--- plain.py\n"),
        ("/dev/null", "--- /dev/null\n"),
        ("two words", "--- two words\t\n"),
        ("größe", "--- größe\n"),
        ('say "hi"', '--- "say \\"hi\\""\n'),
        ("tab\tnewline\nbell\aesc\x1bdel\x7f", '--- "tab\\tnewline\\nbell\\aesc\\033del\\177"\n'),
        ("back\\slash", '--- "back\\\\slash"\n'),
        ("raw\udcff", '--- "raw\\377"\n'),
    ],
)
def test_names_are_quoted_as_git_does(name: str, header: str) -> None:
    found = unified_diff([], [b"x\n"], from_name=name, to_name="f", decode=bytes.decode)
    assert found.text.splitlines(keepends=True)[0] == header


@given(texts, texts, st.integers(0, 300))
def test_a_limit_cuts_after_a_whole_row(a: bytes, b: bytes, limit: int) -> None:
    whole, cut = diff(a.decode(), b.decode()), diff(a.decode(), b.decode(), limit=limit)
    assert len(cut.text.encode()) <= limit
    assert whole.text.startswith(cut.text)
    assert cut.truncated == (len(whole.text.encode()) > limit)
    assert not cut.text or cut.text.endswith("\n")
    assert not whole.text[len(cut.text) :].startswith("\\")


@given(texts, texts, contexts)
def test_hunks_turn_one_text_into_the_other(a: bytes, b: bytes, context: int) -> None:
    assert applied(a, find_hunks(split_lines(a), split_lines(b), context=context)) == b


@requirement("text:diff:unified")
@needs_patch
@given(texts, texts)
def test_patch_accepts_every_diff(a: bytes, b: bytes) -> None:
    text = diff(a.decode(), b.decode()).text
    assert patched(text, {"f": a}) == {"f": b}


@requirement("text:diff:unified")
@needs_git
@given(texts, texts, contexts)
def test_git_accepts_every_diff(a: bytes, b: bytes, context: int) -> None:
    text = diff(a.decode(), b.decode(), context=context).text
    assert (git_applied(text, {"f": a}, context) if text else {"f": a}) == {"f": b}


@needs_git
@needs_patch
@given(texts.filter(bool))
def test_both_create_and_delete_whole_files(data: bytes) -> None:
    created = unified_diff([], split_lines(data), from_name="/dev/null", to_name="f", decode=bytes.decode).text
    deleted = unified_diff(split_lines(data), [], from_name="f", to_name="/dev/null", decode=bytes.decode).text
    assert [patched(created, {}), git_applied(created, {})] == [{"f": data}] * 2
    assert [patched(deleted, {"f": data}), git_applied(deleted, {"f": data})] == [{}] * 2


@needs_git
@given(st.text(st.sampled_from("a ü\"'\\\t\n\a\x01\x7f🙂"), min_size=1, max_size=12))
def test_git_reads_every_quoted_name(name: str) -> None:
    text = unified_diff([], [b"x\n"], from_name="/dev/null", to_name=name, decode=bytes.decode).text
    assert git_applied(text, {}) == {name: b"x\n"}


@given(edited(), contexts)
def test_walked_hunks_turn_one_text_into_the_other(
    edit: tuple[bytes, bytes, list[tuple[int, int, int, int]]], context: int
) -> None:
    before, after, spans = edit
    found = list(walk_hunks(before, after, spans, context=context))
    above = before.count(b"\n", 0, spans[0][0]) if spans else 0
    assert applied(before, found) == after
    assert list(walk_hunks(before, after, spans, context=context, above=above)) == found


@needs_git
@needs_patch
@given(edited())
def test_both_accept_walked_hunks(edit: tuple[bytes, bytes, list[tuple[int, int, int, int]]]) -> None:
    before, after, spans = edit
    # A span may cut a character in two; what is not text must come through as well.
    text = render_hunks(walk_hunks(before, after, spans), from_name="f", to_name="f", decode=os.fsdecode).text
    assert patched(text, {"f": before}) == {"f": after}
    assert (git_applied(text, {"f": before}) if text else {"f": before}) == {"f": after}


@given(st.integers(1, 40), st.data(), contexts)
def test_walked_hunks_equal_those_of_the_whole_files(count: int, data: st.DataObject, context: int) -> None:
    # Lines that all differ leave no choice of alignment, so both ways must agree exactly.
    before = b"".join(b"line %d\r\n" % n for n in range(count))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(before)), min_size=2, max_size=6)))
    spans: list[tuple[int, int, int, int]] = []
    after, copied = b"", 0
    for index, (start, end) in enumerate(zip(cuts[::2], cuts[1::2], strict=False)):
        new = b"X%d\nY%d" % (index, index)
        after += before[copied:start]
        spans.append((start, end, len(after), len(after) + len(new)))
        after += new
        copied = end
    after += before[copied:]
    whole = find_hunks(split_lines(before), split_lines(after), context=context)
    assert list(walk_hunks(before, after, spans, context=context)) == whole


def test_an_insertion_among_equal_lines_keeps_its_context_on_both_sides() -> None:
    before = b"x\n" * 100
    assert list(walk_hunks(before, b"x\n" * 101, [(100, 100, 100, 102)])) == [
        Hunk(old_start=49, old_lines=6, new_start=49, new_lines=7, lines=(b" x\n",) * 3 + (b"+x\n",) + (b" x\n",) * 3)
    ]


@pytest.mark.parametrize(
    ("data", "expected"), [(b"", []), (b"a", [b"a"]), (b"a\n", [b"a\n"]), (b"\n\r\nb\rc", [b"\n", b"\r\n", b"b\rc"])]
)
def test_lines_are_split_after_lf_only(data: bytes, expected: list[bytes]) -> None:
    assert split_lines(data) == expected


def test_a_diff_is_cut_after_the_last_row_that_fits_wherever_its_hunks_end() -> None:
    rows = [f"row {number}\n" for number in range(100)]
    before = Snapshot("".join(rows).encode())
    starts = list(accumulate(map(len, rows[:-1]), initial=0))[::20]
    plan = splice_spans(before, [Span(start=at, end=at + 3, new=b"ROW") for at in starts])
    whole = diff_of_plan(plan, from_name="f", to_name="f", limit=None)

    for limit in range(len(whole.text) + 1):
        cut = diff_of_plan(plan, from_name="f", to_name="f", limit=limit)
        assert cut.truncated == (limit < len(whole.text))
        assert cut.text == whole.text[: whole.text.rfind("\n", 0, limit) + 1]
    assert list(walk_hunks(before.data, plan.after.data, plan.span_offsets())) == find_hunks(
        split_lines(before.data), split_lines(plan.after.data)
    )


@given(st.lists(st.sampled_from(["a", "b", "é", "\u0a0a", "𝄞", "\n", "\r\n"]), max_size=40), st.data())
def test_the_diff_of_a_wide_file_is_that_of_the_same_text_in_utf_8(signs: list[str], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(signs)), max_size=4)))
    cuts = cuts[: len(cuts) // 2 * 2]
    news = [data.draw(st.sampled_from(["", "x", "y\nz", "\u0a0a"])) for _ in cuts[::2]]

    def shown(encoding: Encoding) -> UnifiedDiff:
        whole = encoding.bom + encoding.encode("".join(signs))
        places = [len(encoding.bom) + len(encoding.encode("".join(signs[:cut]))) for cut in cuts]
        pairs = zip(places[::2], places[1::2], news, strict=True)
        spans = [Span(start=start, end=end, new=encoding.encode(new)) for start, end, new in pairs]
        return diff_of_plan(splice_spans(Snapshot(whole, encoding=encoding), spans), from_name="f", to_name="f")

    assert shown(Encoding(name="utf-16-le", bom=b"\xff\xfe", width=2)) == shown(Encoding(name="utf-8"))


@given(*[st.text(alphabet="\r\u010ab", max_size=8)] * 2)
def test_lone_carriage_returns_end_lines_in_utf_16_as_in_utf_8_whatever_the_last_byte_is(old: str, new: str) -> None:
    def shown(encoding: Encoding) -> tuple[UnifiedDiff, int]:
        before, after = (Snapshot(encoding.bom + encoding.encode(text), encoding=encoding) for text in (old, new))
        return diff_between(before, after, from_name="f", to_name="f"), after.line_count

    big = Encoding(name="utf-16-be", bom=b"\xfe\xff", width=2)
    assert shown(big) == shown(Encoding(name="utf-8"))


def test_the_diff_of_a_plan_shows_its_lines_with_context() -> None:
    base = b"".join(b"line %d\n" % n for n in range(1, 21))
    at = base.index(b"line 7\n")
    plan = splice_spans(Snapshot(base), [Span(start=at, end=at + 4, new=b"LINE")])

    diff = diff_of_plan(plan, from_name="a.txt", to_name="a.txt")

    assert diff.text == (
        "--- a.txt\n+++ a.txt\n@@ -4,7 +4,7 @@\n line 4\n line 5\n line 6\n-line 7\n+LINE 7\n line 8\n line 9\n line 10\n"
    )


@requirement("text:diff:large")
@given(st.lists(pieces, max_size=12), st.lists(pieces, max_size=6), st.lists(pieces, max_size=6))
def test_the_difference_of_large_files_is_the_same_when_only_what_is_between_their_equal_ends_is_compared(
    ends: list[bytes], gone: list[bytes], come: list[bytes]
) -> None:
    head, tail = b"".join(ends), b"".join(reversed(ends))
    before, after = (Snapshot(head + b"".join(middle) + tail) for middle in (gone, come))
    whole = diff_of_plan(EditPlan(before=before, after=after), from_name="f", to_name="f", limit=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "_NARROWED_BYTES", 0)
        found = diff_between(before, after, from_name="f", to_name="f")

    assert (found.added, found.removed) == (whole.added, whole.removed)


@requirement("text:diff:large")
def test_more_than_can_be_compared_line_by_line_is_named_with_sizes_and_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "MAX_COMPARED_BYTES", 10)
    before, after = Snapshot(b"one\ntwo\nthree\n"), Snapshot(b"1\n2\n3\n")

    found = diff_between(before, after, from_name="f", to_name="f")

    facts = f"(14 bytes, sha256 {before.sha256}; 6 bytes, sha256 {after.sha256})"
    assert found == UnifiedDiff(
        text=f"Files f and f differ: too large to compare line by line {facts}\n", truncated=False
    )
