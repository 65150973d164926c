"""Diffs made by others, applied by us: the result is the file they were made from, or what they make of it."""

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spec.marks import requirement
from surehold.errors import NotEncodable, PatchApplyError, PatchParseError
from surehold.text.diff import split_lines
from surehold.text.patch.parse import parse_patch
from surehold.text.snapshot import Snapshot
from text.diffs import unified_diff

pieces = st.sampled_from(
    [
        *[b"a\n", b"b\n", b"c\n", b"\n", b" x\n", b"\tx\n", b"-y\n", b"+z\n", b"\\ w\n", b"@@ -1 +1 @@\n"],
        *[b"-- a/f\n", b"++ b/f\n", b"*** End Patch\n", "ü€\n".encode(), b"diff --git a/f b/f\n", b"x \n"],
        *[b"c\r\n", b"a\r\n", b"\r\n", b"d\re\n"],
    ]
)
ends = st.sampled_from([b"", b"end", b"e\r", b" "])
texts = st.tuples(st.lists(pieces, max_size=40), ends).map(lambda parts: b"".join(parts[0]) + parts[1])


@st.composite
def edited(draw: st.DrawFn, before: bytes) -> bytes:
    """Draw a few changes of whole lines."""
    rows = split_lines(before)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(rows)))
        rows[at : at + draw(st.integers(0, 3))] = draw(st.lists(pieces, max_size=3))
    body = b"".join(rows)
    return body + draw(ends) if draw(st.booleans()) else body


@st.composite
def changes(draw: st.DrawFn) -> tuple[bytes, bytes]:
    before = draw(texts)
    return before, draw(st.one_of(texts, edited(before)))


def run(folder: str, *command: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}
    return subprocess.run(command, cwd=folder, input=data, capture_output=True, check=False, env=env)


def git_diff(before: bytes, after: bytes, context: int) -> str:
    return _made_by(before, after, "git", "diff", "--no-index", "--text", f"-U{context}", "--", "old/f", "new/f")


def gnu_diff(before: bytes, after: bytes, context: int) -> str:
    return _made_by(before, after, "diff", "--text", f"-U{context}", "old/f", "new/f")


def _made_by(before: bytes, after: bytes, *command: str) -> str:
    with TemporaryDirectory() as folder:
        for name, data in (("old", before), ("new", after)):
            Path(folder, name).mkdir()
            Path(folder, name, "f").write_bytes(data)
        done = run(folder, *command)
        assert done.returncode in {0, 1}, done.stderr
        text = done.stdout.decode()
    for old, new in (("a/old/f", "a/f"), ("b/new/f", "b/f"), ("--- old/f", "--- a/f"), ("+++ new/f", "+++ b/f")):
        text = text.replace(old, new, 2)
    return text


def own_diff(before: bytes, after: bytes, context: int) -> str:
    old, new = Snapshot(before), Snapshot(after)
    return unified_diff(
        old.lines.raw, new.lines.raw, from_name="a/f", to_name="b/f", decode=bytes.decode, context=context
    ).text


def ours(patch: str, before: bytes) -> bytes:
    (file,) = parse_patch(patch).files
    assert (file.operation, file.path) == ("update", "f")
    return file.edit.plan(Snapshot(before)).after.data


@requirement("files:apply_patch:git", "files:apply_patch:unified")
@pytest.mark.parametrize("made_by", [git_diff, gnu_diff, own_diff])
@given(change=changes(), context=st.sampled_from([1, 2, 3, 3, 5]))
def test_a_diff_of_another_tool_turns_the_old_file_into_the_new_one(
    made_by: Callable[[bytes, bytes, int], str], change: tuple[bytes, bytes], context: int
) -> None:
    before, after = change
    assume(before != after)
    # A row that ends in CR may be a line or the end of the file: in our own diff of such files that is not always told.
    assume(made_by is not own_diff or "cr" not in {Snapshot(before).lines.style, Snapshot(after).lines.style})
    assert ours(made_by(before, after, context), before) == after


@requirement("files:apply_patch:unified")
@given(before=texts.map(lambda data: data.replace(b"\r", b"")), data=st.data())
def test_a_diff_without_context_applies_where_its_numbers_say_except_when_all_it_says_is_above_the_first_line(
    before: bytes, data: st.DataObject
) -> None:
    after = data.draw(edited(before)).replace(b"\r", b"")
    assume(before != after)
    patch = git_diff(before, after, 0)
    shows_old_lines = "\n-" in patch.partition("\n@@")[2]
    if before and "\n@@ -0,0 +" in patch and not shows_old_lines:
        with pytest.raises(PatchApplyError) as caught:
            ours(patch, before)
        assert caught.value.reason == "context_needed"
    else:
        assert ours(patch, before) == after


@requirement("files:apply_patch:exact")
@pytest.mark.parametrize(
    ("made_by", "applier"),
    [
        (git_diff, ("git", "apply", "--whitespace=nowarn", "-")),
        (gnu_diff, ("patch", "-p1", "-s", "-F0", "--binary", "--no-backup-if-mismatch")),
    ],
)
@given(change=changes(), data=st.data())
def test_on_a_file_that_has_moved_on_we_refuse_or_do_what_the_other_tools_do(
    made_by: Callable[[bytes, bytes, int], str],
    applier: tuple[str, ...],
    change: tuple[bytes, bytes],
    data: st.DataObject,
) -> None:
    # Only LF: we let the lines of a file keep their ends, and others do not.
    before, after = (side.replace(b"\r", b"") for side in change)
    moved_on = data.draw(edited(before)).replace(b"\r", b"")
    assume(before not in {after, moved_on})
    patch = made_by(before, after, data.draw(st.integers(1, 3)))
    try:
        mine = ours(patch, moved_on)
    except PatchApplyError:
        return
    with TemporaryDirectory() as folder:
        Path(folder, "f").write_bytes(moved_on)
        done = run(folder, *applier, data=patch.encode())
        if done.returncode == 0:
            assert mine == Path(folder, "f").read_bytes()


@given(change=changes(), data=st.data())
def test_a_damaged_patch_is_refused_by_an_error_of_ours_or_it_applies(
    change: tuple[bytes, bytes], data: st.DataObject
) -> None:
    before, after = change
    assume(before != after)
    rows = data.draw(st.sampled_from([git_diff, gnu_diff]))(before, after, 2).split("\n")
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(rows) - 1))
        match data.draw(st.integers(0, 4)):
            case 0:
                del rows[at]
                rows = rows or [""]
            case 1:
                rows.insert(at, data.draw(st.sampled_from(rows)))
            case 2:
                cut = data.draw(st.integers(0, len(rows[at])))
                rows[at] = rows[at][:cut] + data.draw(st.text(max_size=3)) + rows[at][cut:]
            case 3:
                rows = rows[: at + 1]
            case _:
                rows[at] = rows[at][1:]
    with suppress(PatchParseError, PatchApplyError, NotEncodable):  # anything else is a bug
        for file in parse_patch("\n".join(rows)).files:
            assert file.edit.plan(Snapshot(before)).before.data == before
