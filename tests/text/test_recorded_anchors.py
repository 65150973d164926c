"""What operations by anchors come to, whichever versions were shown, and what is said when they are refused."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product
from typing import Any

from surehold.text.anchored.edits import AnchoredEdits
from surehold.text.anchored.lines import anchored_diff
from surehold.text.anchored.operations import (
    DeleteLine,
    DeleteRange,
    InsertAfter,
    InsertBefore,
    Operation,
    ReplaceLine,
    ReplaceRange,
)
from surehold.text.measure import TextRoom
from surehold.text.snapshot import Snapshot
from text.anchored import File, lines
from text.recorded_answers import answer_of, check_answers

TEN = lines(10)
TWINS = File(b"first function\n  return x\nend of first\n\nsecond function\n  return x\nend of second\n")
BRACES = File(b"if one {\n  call()\n}\nif two {\n  call()\n}\n\n\nx = 1\nlast words")
CRLF = File(b"alpha first\r\nbeta second\r\ngamma third\r\n")
OLD = File(b"top of file\n" + TEN.data.replace(b"number 4", b"number four").replace(b"line number 7\n", b""))


def pointed_operations(anchor: str, **more: Any) -> list[Operation]:
    return [
        ReplaceLine(hash=anchor, content="new one\nnew two", **more),
        ReplaceLine(hash=anchor, content="", **more),
        InsertAfter(hash=anchor, content="new\n", **more),
        InsertBefore(hash=anchor, content="new\r\nmore", **more),
        DeleteLine(hash=anchor, **more),
    ]


def spellings(file: File, line: int) -> list[str]:
    """Spell the anchor of a line as callers do, well and badly."""
    whole, digits = file.anchor(line), file.hash(line)
    number, _, rest = whole.partition("#")
    return [
        whole,
        digits,
        digits.upper(),
        file.row(line),
        f"{number}#{digits}",
        f"{int(number) + 1}#{rest}",
        f"{digits}.1",
        f"{digits}.2",
        f"{digits}.9",
        f"{digits[:4]}",
        f"{digits}+1",
        f"{digits}-1",
        f"beef00{digits[6:]}",
        f" {whole} ",
        f"{whole}|another content",
        number,
        f"#{digits}",
        "",
        "EOF",
        "BOF",
        "not an anchor",
        f"{number}:{digits}",
        f"line {number}",
    ]


def single_answers() -> Iterator[tuple[str, str]]:
    for name, file, line in (
        ("ten", TEN, 4),
        ("twins", TWINS, 6),
        ("braces", BRACES, 3),
        ("braces", BRACES, 8),
        ("crlf", CRLF, 3),
    ):
        shown = {
            "unseen": (),
            "seen": (file.shown(),),
            "seen in part": (file.shown((1, line - 1)),),
            "read": (file.reread(),),
        }
        for spelled, (known, versions) in product(spellings(file, line), shown.items()):
            edits = AnchoredEdits(operations=(ReplaceLine(hash=spelled, content="new"),), shown=versions)
            yield f"{name} {line} {spelled!r} {known}", answer_of(edits, Snapshot(file.data))
        for op in pointed_operations(file.anchor(line)):
            yield (
                f"{name} {line} {op}",
                answer_of(AnchoredEdits(operations=(op,), shown=(file.shown(),)), Snapshot(file.data)),
            )
        for occurrence, number in (
            (1, None),
            (2, None),
            (3, None),
            (None, line),
            (None, line - 1),
            (None, 99),
            (2, line),
        ):
            op = DeleteLine(hash=file.hash(line), occurrence=occurrence, line=number)
            yield (
                f"{name} {line} {occurrence} {number}",
                answer_of(AnchoredEdits(operations=(op,)), Snapshot(file.data)),
            )


def test_one_operation_with_every_spelling_of_its_anchor() -> None:
    check_answers("anchors", single_answers())


def range_answers() -> Iterator[tuple[str, str]]:
    for file, (first, last) in product((TEN, BRACES), ((2, 5), (5, 2), (3, 3), (1, 10), (3, 6))):
        for op in (
            ReplaceRange(start_hash=file.anchor(first), end_hash=file.anchor(last), content="new\nnewer"),
            DeleteRange(start_hash=file.anchor(first), end_hash=file.anchor(last)),
        ):
            for known, versions in (
                ("seen", (file.shown(),)),
                ("its edges", (file.shown((first, first), (last, last)),)),
                ("unseen", ()),
            ):
                for strict in (False, True):
                    edits = AnchoredEdits(operations=(op,), shown=versions, strict_order=strict)
                    yield (
                        f"{op.op} {first} {last} of {len(file.rows)} {known} {strict}",
                        answer_of(edits, Snapshot(file.data)),
                    )


def test_ranges_in_both_orders_seen_and_unseen() -> None:
    check_answers("anchored_ranges", range_answers())


def several_answers() -> Iterator[tuple[str, str]]:
    chosen = (
        ReplaceLine(hash=TEN.anchor(3), content="three"),
        InsertAfter(hash=TEN.anchor(3), content="after three"),
        InsertBefore(hash=TEN.anchor(4), content="before four"),
        DeleteRange(start_hash=TEN.anchor(3), end_hash=TEN.anchor(5)),
        ReplaceLine(hash=TEN.anchor(10), content=TEN.row(9)),
        InsertAfter(hash="EOF", content="end"),
        InsertBefore(hash="BOF", content="begin"),
        ReplaceLine(hash=TEN.anchor(8), content="line number 8"),
    )
    for pair in permutations(chosen, 2):
        edits = AnchoredEdits(operations=pair, shown=(TEN.shown(),))
        yield " and ".join(map(str, pair)), answer_of(edits, Snapshot(TEN.data))
    twice = (chosen[0], chosen[0], replace(chosen[0], content="other"))
    yield "twice and once more", answer_of(AnchoredEdits(operations=twice, shown=(TEN.shown(),)), Snapshot(TEN.data))
    for data in (b"", b"one", b"one\n", b"\xef\xbb\xbfone\n", b"one\rtwo\r", b"one\r\ntwo"):
        for op in (
            InsertAfter(hash="EOF", content="new"),
            InsertBefore(hash="BOF", content="new\nmore\n"),
            DeleteLine(hash="EOF"),
        ):
            yield f"{data!r} {op}", answer_of(AnchoredEdits(operations=(op,)), Snapshot(data))
    yield "none", answer_of(AnchoredEdits(operations=()), Snapshot(b""))
    yield "no file", answer_of(AnchoredEdits(operations=chosen[:1]), Snapshot(None))


def test_two_operations_in_one_call() -> None:
    check_answers("anchored_pairs", several_answers())


def moved_answers() -> Iterator[tuple[str, str]]:
    now = Snapshot(TEN.data)
    for line in range(1, 11):
        for name, shown in (
            ("old", (OLD.shown(),)),
            ("both", (TEN.shown((1, 3)), OLD.shown())),
            ("old in part", (OLD.shown((3, 6)),)),
        ):
            for rebase in (True, False):
                for op in (
                    ReplaceLine(hash=OLD.anchor(line), content="new"),
                    DeleteRange(start_hash=OLD.anchor(line), end_hash=OLD.anchor(min(line + 2, 10))),
                ):
                    edits = AnchoredEdits(operations=(op,), shown=shown, allow_rebase=rebase)
                    yield f"{name} {rebase} {op.op} {line}", answer_of(edits, now)
    for room in (0, 20, 60, 200):
        edits = AnchoredEdits(
            operations=(DeleteLine(hash=OLD.anchor(5)), DeleteLine(hash="beef00")),
            shown=(OLD.shown(),),
            refusal_room=TextRoom(size=room),
        )
        yield f"room {room}", answer_of(edits, now)


def test_anchors_of_an_earlier_version() -> None:
    check_answers("anchors_moved", moved_answers())


def diff_answers() -> Iterator[tuple[str, str]]:
    for file, ops in (
        (TEN, [DeleteLine(hash=TEN.anchor(4))]),
        (TEN, [ReplaceLine(hash=TEN.anchor(1), content="one\ntwo"), DeleteLine(hash=TEN.anchor(10))]),
        (BRACES, [InsertAfter(hash="EOF", content="new")]),
        (CRLF, [DeleteRange(start_hash=CRLF.anchor(1), end_hash=CRLF.anchor(3))]),
    ):
        plan = AnchoredEdits(operations=tuple(ops), shown=(file.shown(),)).plan(Snapshot(file.data))
        for size in (0, 30, 60, 90, 120, 160, 1000):
            yield (
                f"{size} of {ops}",
                str(anchored_diff(plan, room=TextRoom(size=size))).encode("unicode_escape").decode(),
            )


def test_differences_with_anchors_cut_to_their_room() -> None:
    check_answers("anchored_diffs", diff_answers())
