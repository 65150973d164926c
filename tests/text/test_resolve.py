"""Which line an anchor means, and what is said when that cannot be known."""

import json

import pytest

from spec.marks import requirement
from surehold.errors import (
    AnchorAmbiguous,
    AnchorContextAmbiguous,
    AnchorLowEntropy,
    AnchorStale,
    RangeUnseen,
    SchemaInvalid,
)
from surehold.text import snapshot as text_lines
from surehold.text.anchored.operations import DeleteLine, DeleteRange, Operation, ReplaceLine
from surehold.text.encoding import Encoding
from surehold.text.snapshot import Snapshot
from text.anchored import File, lines, on_line, on_range, words

TWINS = File(b"first function\n  return x\nend of first\n\nsecond function\n  return x\nend of second\n")
BLOCKS = File(b"open block\n  same line\nclose block\n" * 5)
BRACES = File(
    b"".join(b"entry number %d\n" % n for n in range(1, 118)) + b"},\nalpha setting\nbeta setting\n},\ngamma setting\n"
)


def level(file: File, *operations: ReplaceLine, **settings: object) -> list[str]:
    return [each.resolution_level for each in file.plan(*operations, **settings).resolutions]


@requirement("anchored:replace_line:success", "anchored:resolution:level")
def test_replace_line_by_a_hash_that_matches_uniquely_replaces_that_line_only() -> None:
    file = lines(5)

    plan = file.plan(ReplaceLine(hash=file.hash(3), content="  return x + 1;"))

    assert plan.after.data == file.data.replace(b"line number 3\n", b"  return x + 1;\n")
    assert plan.resolutions[0].resolution_level == "hash"
    assert (plan.resolutions[0].start_line, plan.resolutions[0].end_line) == (3, 3)


@requirement("anchored:stale:unknown_hash")
def test_a_hash_that_no_line_has_is_stale_and_named() -> None:
    error = lines(5).refuse(ReplaceLine(hash="beef00", content="x"))

    assert isinstance(error, AnchorStale)
    assert (error.kind, error.step) == ("anchor_stale", "re-read_file")
    assert "beef00" in error.message
    assert error.details["hash"] == "beef00"


@requirement("anchored:stale:was_line")
def test_a_stale_anchor_that_was_never_shown_is_said_to_be_so() -> None:
    assert "never shown in this session" in lines(5).refuse(DeleteLine(hash="beef00")).message


@requirement("anchored:stale:was_line", "anchored:stale:fresh_rows")
def test_a_stale_anchor_that_was_shown_is_told_with_its_line_and_the_rows_that_are_there_now() -> None:
    old = lines(60)
    new = File(b"top\n" + old.data.replace(b"line number 42\n", b"another line\n"))

    error = new.refuse(ReplaceLine(hash=old.anchor(42), content="x"), shown=(old.shown(),))

    assert "it was line 42 `line number 42`" in error.message
    assert error.details["was"] == {"line": 42, "text": "line number 42"}
    assert error.details["fresh_rows"] == [new.row(line) for line in range(40, 47)]
    assert error.details["fresh_lines"] == [[40, 46]]


@requirement("anchored:resolution:adaptive_length")
def test_a_hash_that_matches_three_lines_at_six_digits_resolves_by_eight(monkeypatch: pytest.MonkeyPatch) -> None:
    file = File(b"one\ntwo\nsix\nother\n")
    digests = {
        b"one": 0xABCDEF_1111111111,
        b"two": 0xABCDEF_2222222222,
        b"six": 0xABCDEF_3333333333,
        b"other": 0x123456_4444444444,
    }

    def fake(found: list[bytes], _: Encoding) -> list[int]:
        return [digests.get(each, 7) for each in found]

    assert text_lines.line_digests([b"one"], file.snapshot.encoding) != [digests[b"one"]]
    for module in ("surehold.text.snapshot", "surehold.text.anchored.lines"):
        monkeypatch.setattr(f"{module}.line_digests", fake)

    plan = file.plan(ReplaceLine(hash="abcdef22", content="2"))
    error = file.refuse(ReplaceLine(hash="abcdef", content="2"))

    assert plan.after.data == b"one\n2\nsix\nother\n"
    assert plan.resolutions[0].resolution_level == "longer_hash"
    assert [each["anchor"] for each in error.details["candidates"]] == ["1#abcdef11", "2#abcdef22", "3#abcdef33"]


def test_two_different_lines_whose_first_six_digits_really_collide_are_told_apart_by_the_shown_anchor() -> None:
    seen, n = dict[str, int](), 0
    while True:
        digest = text_lines.digest_text(Snapshot(b"line %d" % n).digests[0])[:6]
        if digest in seen:
            break
        seen[digest], n = n, n + 1
    file = File(b"line %d\nother\nline %d\n" % (seen[digest], n))

    error = file.refuse(DeleteLine(hash=digest))

    assert isinstance(error, AnchorAmbiguous)
    assert all(len(file.hash(line)) >= 8 for line in (1, 3))
    assert file.edit(DeleteLine(hash=file.hash(3))) == b"line %d\nother\n" % seen[digest]
    assert file.edit(DeleteLine(hash=file.anchor(1))) == b"other\nline %d\n" % n


@requirement("anchored:anchor:spellings")
def test_four_digits_are_enough_when_they_are_unique_and_more_than_a_digest_has_match_nothing() -> None:
    file = lines(5)
    digest = text_lines.digest_text(file.snapshot.digests[1])

    for sent in (digest[:4], digest[:5].upper(), digest, f"2#{digest[:7]}", f"{digest[:6]}.1"):
        assert file.edit(DeleteLine(hash=sent)) == file.data.replace(b"line number 2\n", b"")
    assert "at most 16 digits" in file.refuse(DeleteLine(hash=digest + "0")).message


@requirement("anchored:anchor:copied_tail")
def test_a_copied_row_is_taken_with_its_text_and_refused_with_another() -> None:
    file = File(b"def f():\n    return x   \n\ttabbed\n")

    assert file.edit(DeleteLine(hash=file.row(2))) == b"def f():\n\ttabbed\n"
    assert file.edit(DeleteLine(hash=file.row(3))) == b"def f():\n    return x   \n"
    error = file.refuse(DeleteLine(hash=f"{file.anchor(2)}|    return y"))

    assert isinstance(error, AnchorStale)
    assert "does not read `    return y`; it is line 2 `    return x   `" in error.message


@requirement("anchored:resolution:line_number")
def test_an_exact_copied_line_number_decides_between_equal_lines() -> None:
    shown = (TWINS.shown(),)
    sent = f"6#{TWINS.hash(6)}"

    assert TWINS.edit(DeleteLine(hash=sent), shown=shown) == b"".join(
        TWINS.snapshot.lines.raw[:5] + TWINS.snapshot.lines.raw[6:]
    )
    assert level(TWINS, ReplaceLine(hash=sent, content="x"), shown=shown) == ["line"]
    assert level(TWINS, ReplaceLine(hash=TWINS.hash(6), line=6, content="x"), shown=shown) == ["line"]


@requirement("anchored:resolution:line_number")
@pytest.mark.parametrize("number", [1, 3, 5, 7, 900])
def test_a_line_number_never_decides_by_being_near(number: int) -> None:
    for operation in (DeleteLine(hash=f"{number}#{TWINS.hash(6)}"), DeleteLine(hash=TWINS.hash(6), line=number)):
        assert isinstance(TWINS.refuse(operation), AnchorAmbiguous)


@requirement("anchored:resolution:ladder")
def test_the_rungs_are_tried_in_their_order() -> None:
    shown = (TWINS.shown((5, 7)),)
    both = (TWINS.shown((1, 7)),)
    bare = TWINS.hash(6)

    assert level(TWINS, ReplaceLine(hash=bare, occurrence=1, content="y"), shown=shown) == ["occurrence"]
    assert level(TWINS, ReplaceLine(hash=TWINS.hash(1), content="y"), shown=shown) == ["hash"]
    assert level(TWINS, ReplaceLine(hash=f"2#{bare}", content="y"), shown=both) == ["line"]
    assert level(TWINS, ReplaceLine(hash=bare, content="y"), shown=shown) == ["sighting"]
    assert TWINS.plan(ReplaceLine(hash=bare, occurrence=1, content="y"), shown=shown).resolutions[0].start_line == 2
    assert TWINS.plan(ReplaceLine(hash=f"2#{bare}", content="y"), shown=both).resolutions[0].start_line == 2
    assert TWINS.plan(ReplaceLine(hash=bare, content="y"), shown=shown).resolutions[0].start_line == 6


@requirement("anchored:resolution:sighting")
def test_the_only_candidate_that_was_shown_is_taken() -> None:
    file = words("same a b c same d e f same")

    plan = file.plan(ReplaceLine(hash=file.hash(1), content="changed"), shown=(file.shown((4, 6)),))

    assert plan.resolutions[0].start_line == 5
    assert plan.resolutions[0].resolution_level == "sighting"


def test_two_candidates_that_were_shown_remain_ambiguous_although_a_third_was_not() -> None:
    file = words("same a b c same d e f same")

    assert isinstance(file.refuse(DeleteLine(hash=file.hash(1)), shown=(file.shown((1, 6)),)), AnchorAmbiguous)


@requirement("anchored:resolution:context")
def test_lines_10_and_25_are_told_apart_by_the_context_of_the_version_that_was_shown() -> None:
    rows = [b"line number %d\n" % n for n in range(1, 31)]
    rows[24] = b"  return shared;\n"
    old = File(b"".join(rows))
    rows[9] = b"  return shared;\n"
    new = File(b"".join(rows))

    plan = new.plan(ReplaceLine(hash=old.hash(25), content="x"), shown=(old.shown(),))

    assert plan.resolutions[0].start_line == 25
    assert plan.resolutions[0].resolution_level == "context"


@requirement("anchored:resolution:context")
def test_a_context_id_that_an_error_offered_decides() -> None:
    error = TWINS.refuse(DeleteLine(hash=TWINS.hash(6)))
    second = error.details["candidates"][1]

    shown = (TWINS.shown(),)  # the refusal counts as showing
    plan = TWINS.plan(DeleteLine(hash=f"{TWINS.hash(6)}@{second['context']}"), shown=shown)

    assert plan.resolutions[0].start_line == second["line"] == 6
    assert TWINS.edit(DeleteLine(hash=f"1#{TWINS.hash(6)}@{second['context']}"), shown=shown) == plan.after.data
    assert plan.resolutions[0].resolution_level == "context"
    assert isinstance(BLOCKS.refuse(DeleteLine(hash=f"{BLOCKS.hash(2)}@00000000")), AnchorContextAmbiguous)


def test_a_context_id_with_a_copied_number_or_an_occurrence_decides_between_equal_contexts() -> None:
    shown = (BLOCKS.shown(),)
    context = BLOCKS.refuse(DeleteLine(hash=BLOCKS.hash(5))).details["candidates"][1]["context"]

    for sent in (f"8#{BLOCKS.hash(5)}@{context}", f"{BLOCKS.hash(5)}.3@{context}"):
        assert BLOCKS.plan(DeleteLine(hash=sent), shown=shown).resolutions[0].start_line == 8
    for sent in (f"9#{BLOCKS.hash(5)}@{context}", f"{BLOCKS.hash(5)}@{context}", f"{BLOCKS.hash(5)}.6@{context}"):
        assert isinstance(BLOCKS.refuse(DeleteLine(hash=sent), shown=shown), AnchorAmbiguous | AnchorContextAmbiguous)


@requirement("anchored:ambiguous:single_line", "anchored:ambiguous:candidates")
def test_candidates_with_different_surroundings_are_ambiguous_and_each_offered_anchor_works() -> None:
    file = words("same a same b same c same d")

    error = file.refuse(ReplaceLine(hash=file.hash(1), content="x"))

    assert isinstance(error, AnchorAmbiguous)
    assert [(each["occurrence"], each["line"]) for each in error.details["candidates"]] == [
        (1, 1),
        (2, 3),
        (3, 5),
        (4, 7),
    ]
    assert error.details["candidate_count"] == 4
    shown = (file.shown(),)  # the refusal counts as showing
    for each in error.details["candidates"]:
        assert each["preview"] == "same"
        assert file.plan(DeleteLine(hash=each["anchor"]), shown=shown).resolutions[0].start_line == each["line"]
        assert (
            file.plan(DeleteLine(hash=file.hash(1), occurrence=each["occurrence"]), shown=shown)
            .resolutions[0]
            .start_line
            == each["line"]
        )


@requirement("anchored:ambiguous:context")
def test_candidates_that_are_equal_even_in_context_are_context_ambiguous() -> None:
    error = BLOCKS.refuse(ReplaceLine(hash=BLOCKS.hash(2), content="x"))

    assert isinstance(error, AnchorContextAmbiguous)
    assert [each["line"] for each in error.details["candidates"]] == [2, 5, 8, 11, 14]
    assert (
        BLOCKS.plan(DeleteLine(hash=BLOCKS.hash(2), occurrence=3), shown=(BLOCKS.shown(),)).resolutions[0].start_line
        == 8
    )


@requirement("anchored:ambiguous:range")
@pytest.mark.parametrize("which", ["start_hash", "end_hash"])
@pytest.mark.parametrize("op", ["replace_range", "delete_range"])
def test_an_ambiguous_end_of_a_range_is_context_ambiguous_and_says_which(which: str, op: str) -> None:
    start, end = (TWINS.hash(2), TWINS.anchor(7)) if which == "start_hash" else (TWINS.anchor(1), TWINS.hash(2))

    error = TWINS.refuse(on_range(op, start, end))

    assert isinstance(error, AnchorContextAmbiguous)
    assert error.details["which"] == which
    assert which in error.message
    assert [each["line"] for each in error.details["candidates"]] == [2, 6]


def test_both_ends_of_a_range_may_be_ambiguous_and_both_are_told() -> None:
    error = TWINS.refuse(DeleteRange(start_hash=TWINS.hash(2), end_hash=TWINS.hash(6)))

    assert [each["message"].split("`")[3] for each in error.details["problems"]] == ["start_hash", "end_hash"]


@requirement("anchored:occurrence:third")
def test_occurrence_3_of_lines_2_5_7_and_12_is_line_7() -> None:
    rows = [f"word{n}" for n in range(1, 13)]
    for blank in (2, 5, 7, 12):
        rows[blank - 1] = ""
    file = File("".join(row + "\n" for row in rows).encode())

    plan = file.plan(ReplaceLine(hash=file.hash(2), occurrence=3, content="new content"), shown=(file.shown(),))

    assert plan.resolutions[0].start_line == 7
    assert plan.after.data.split(b"\n")[6] == b"new content"
    assert plan.resolutions[0].resolution_level == "occurrence"


@requirement("anchored:occurrence:first")
def test_occurrence_1_of_lines_2_5_and_7_is_line_2() -> None:
    file = words("a same b c same d same")

    assert (
        file.edit(DeleteLine(hash=file.hash(2), occurrence=1), shown=(file.shown(),)) == words("a b c same d same").data
    )


@requirement("anchored:occurrence:out_of_range")
@pytest.mark.parametrize("nth", [0, -1, 6, 1_000_000])
def test_an_occurrence_out_of_range_is_ambiguous_with_given_and_available(nth: int) -> None:
    error = BLOCKS.refuse(DeleteLine(hash=BLOCKS.hash(2), occurrence=nth))

    assert isinstance(error, AnchorAmbiguous)
    assert (error.details["given"], error.details["available"]) == (nth, 5)
    assert error.reason == "occurrence_out_of_range"
    assert len(error.details["candidates"]) == 5


def test_two_operations_with_the_same_hash_and_different_occurrences_are_two_lines() -> None:
    sent = (DeleteLine(hash=BLOCKS.hash(2), occurrence=1), DeleteLine(hash=BLOCKS.hash(2), occurrence=3))

    assert [each.start_line for each in BLOCKS.plan(*sent, shown=(BLOCKS.shown(),)).resolutions] == [2, 8]


def test_an_occurrence_and_a_number_that_were_copied_together_must_agree() -> None:
    error = BLOCKS.refuse(DeleteLine(hash=f"2#{BLOCKS.hash(2)}.3"))

    assert isinstance(error, AnchorAmbiguous)
    assert error.reason == "contradiction"
    assert "occurrence 3" in error.message
    assert BLOCKS.refuse(DeleteLine(hash=f"5#{BLOCKS.hash(2)}.1")).reason == "contradiction"
    assert isinstance(BLOCKS.refuse(DeleteLine(hash=BLOCKS.hash(2), occurrence=3, line=5)), AnchorAmbiguous)
    assert (
        BLOCKS.plan(DeleteLine(hash=BLOCKS.hash(2), occurrence=3, line=4), shown=(BLOCKS.shown(),))
        .resolutions[0]
        .start_line
        == 8
    )


def test_two_different_occurrences_in_one_operation_are_refused() -> None:
    error = BLOCKS.refuse(DeleteLine(hash=f"{BLOCKS.hash(2)}.3", occurrence=2))

    assert isinstance(error, SchemaInvalid)
    assert "occurrence 3" in error.message


@requirement("anchored:low:bare_hash", "anchored:low:neighbours")
@pytest.mark.parametrize("op", ["replace_line", "insert_after", "insert_before", "delete_line"])
def test_a_low_line_by_a_bare_hash_is_refused_with_its_high_neighbours(op: str) -> None:
    error = BRACES.refuse(on_line(op, BRACES.hash(118)))

    assert isinstance(error, AnchorLowEntropy)
    assert error.step == "use_neighbor_anchor"
    assert (error.details["line"], error.details["content"], error.details["unique"]) == (118, "},", False)
    assert error.details["neighbor_anchors"] == [BRACES.anchor(line) for line in (115, 116, 117, 119, 120, 122)]


@requirement("anchored:low:neighbours")
def test_neighbours_are_named_as_in_the_seed() -> None:
    file = File(b"},\nalpha setting\nbeta setting\n")

    error = file.refuse(DeleteLine(hash=file.hash(1)))

    assert error.details["neighbor_anchors"] == [f"2#{file.hash(2)}", f"3#{file.hash(3)}"]
    assert error.details["unique"] is True
    assert error.details["operation"] == {"op": "delete_line", "hash": f"1#{file.hash(1)}"}
    assert file.edit(DeleteLine(hash=error.details["operation"]["hash"])) == b"alpha setting\nbeta setting\n"


@requirement("anchored:low:explicit")
def test_a_low_line_is_accepted_with_an_occurrence_or_its_copied_number() -> None:
    for sent in (
        DeleteLine(hash=BRACES.hash(118), occurrence=1),
        DeleteLine(hash=f"118#{BRACES.hash(118)}"),
        DeleteLine(hash=BRACES.anchor(118)),
        DeleteLine(hash=BRACES.row(118)),
        DeleteLine(hash=BRACES.hash(118), line=118),
        DeleteLine(hash=f"119#{BRACES.hash(119)}-1"),
    ):
        assert BRACES.plan(sent, shown=(BRACES.shown(),)).resolutions[0].start_line == 118


def test_a_low_line_with_a_number_that_does_not_fit_is_refused() -> None:
    file = File(b"},\nalpha setting\nbeta setting\n")

    assert isinstance(file.refuse(DeleteLine(hash=f"2#{file.hash(1)}")), AnchorLowEntropy)
    assert isinstance(
        BRACES.refuse(DeleteLine(hash=f"119#{BRACES.hash(118)}")), AnchorAmbiguous | AnchorContextAmbiguous
    )


@requirement("anchored:low:range_endpoint")
def test_ends_of_a_range_may_be_low() -> None:
    file = File(b"{\nalpha\n}\nbeta\n")

    assert file.edit(DeleteRange(start_hash=file.hash(1), end_hash=file.hash(3))) == b"beta\n"


@requirement("anchored:anchor:sparse")
def test_an_offset_counts_lines_from_a_line_that_is_verified() -> None:
    file = lines(9)
    shown = (file.shown(),)

    assert file.plan(DeleteLine(hash=f"4#{file.hash(4)}+2"), shown=shown).resolutions[0].start_line == 6
    assert file.plan(DeleteLine(hash=f"{file.hash(4)}-3"), shown=shown).resolutions[0].start_line == 1
    assert file.plan(DeleteLine(hash=f"4#{file.hash(4)}+2|line number 6"), shown=shown).resolutions[0].start_line == 6
    assert file.edit(DeleteRange(start_hash=f"4#{file.hash(4)}+1", end_hash=f"4#{file.hash(4)}+4"), shown=shown) == (
        b"".join(file.snapshot.lines.raw[:4] + file.snapshot.lines.raw[8:])
    )


@requirement("anchored:anchor:sparse")
@pytest.mark.parametrize("sent", ["4#{}+6", "4#{}-4", "5#{}+1", "4#{}+2|line number 7"])
def test_an_offset_that_cannot_be_verified_is_stale(sent: str) -> None:
    file = lines(9)

    error = file.refuse(DeleteLine(hash=sent.format(file.hash(4))))

    assert isinstance(error, AnchorStale)
    assert error.details["fresh_rows"]


def test_an_offset_from_one_of_several_equal_lines_is_ambiguous() -> None:
    sent = DeleteLine(hash=f"{TWINS.hash(2)}+1")

    assert isinstance(TWINS.refuse(sent), AnchorAmbiguous)
    assert isinstance(TWINS.refuse(sent, shown=(TWINS.shown(),)), AnchorAmbiguous)


@requirement("anchored:unseen:refused")
def test_a_range_over_lines_that_were_never_shown_is_refused_and_shows_them() -> None:
    file = lines(30)

    error = file.refuse(
        DeleteRange(start_hash=file.anchor(5), end_hash=file.anchor(20)),
        shown=(file.shown((1, 8), (12, 14), (18, 30)),),
    )

    assert isinstance(error, RangeUnseen)
    assert error.details["unseen"] == [[9, 11], [15, 17]]
    assert error.details["fresh_rows"] == [file.row(line) for line in (9, 10, 11, 15, 16, 17)]
    assert error.details["fresh_lines"] == [[9, 11], [15, 17]]


@requirement("anchored:unseen:refused")
def test_an_end_of_a_range_that_was_never_shown_is_shown_too() -> None:
    file = lines(30)
    for first, last, unseen in ((5, 9, [[9, 9]]), (4, 8, [[4, 4]])):
        error = file.refuse(
            DeleteRange(start_hash=file.anchor(first), end_hash=file.anchor(last)), shown=(file.shown((5, 8)),)
        )

        assert isinstance(error, RangeUnseen)
        assert error.details["unseen"] == unseen


@requirement("anchored:unseen:retry")
def test_a_plain_retry_works_once_the_refusal_counts_as_shown() -> None:
    old, new = lines(900), File(b"top\n" + lines(900).data)
    sent = DeleteRange(start_hash=old.anchor(5), end_hash=old.anchor(890))
    spans, calls = list[tuple[int, int]](), 0

    while True:
        shown = (new.shown(*spans),) if spans else ()
        try:
            after = new.edit(sent, shown=(*shown, old.shown((1, 8), (880, 900))))
        except RangeUnseen as error:
            spans += [(first, last) for first, last in error.details["fresh_lines"]]
            calls += 1
            continue
        break

    assert after == b"top\n" + b"".join(old.snapshot.lines.raw[:4] + old.snapshot.lines.raw[890:])
    assert calls == 3


def test_a_range_that_was_read_in_pages_is_seen() -> None:
    file = lines(30)
    sent = DeleteRange(start_hash=file.anchor(5), end_hash=file.anchor(20))

    assert file.plan(sent, shown=(file.shown((1, 10), (11, 20)),)).resolutions[0].end_line == 20


@requirement("anchored:moved_on:no_sighting")
def test_without_any_sighting_anchors_resolve_on_the_live_file_alone() -> None:
    old, new = lines(30), File(b"top\n" + lines(30).data)

    plan = new.plan(DeleteRange(start_hash=old.anchor(5), end_hash=old.anchor(20)))

    assert (plan.resolutions[0].start_line, plan.resolutions[0].end_line) == (6, 21)
    assert plan.resolutions[0].cross_version is False


@pytest.mark.parametrize(
    "sent",
    [
        ReplaceLine(hash="beef00", content="x"),
        DeleteLine(hash=TWINS.hash(2)),
        DeleteLine(hash=TWINS.hash(4)),
        DeleteRange(start_hash=TWINS.anchor(1), end_hash=TWINS.anchor(1)),
        DeleteLine(hash="nonsense"),
    ],
    ids=lambda sent: sent.as_sent().get("hash", "range"),
)
def test_every_refusal_is_plain_data_with_the_version_it_speaks_of(sent: Operation) -> None:
    details = TWINS.refuse(sent).details

    assert json.loads(json.dumps(details)) == details
    assert details["sha256"] == TWINS.snapshot.sha256
    assert details["operation_index"] == 0


def test_a_very_long_line_is_cut_in_a_refusal_and_its_row_can_still_be_copied() -> None:
    file = File(b"first line\n" + b"x" * 1_000_000 + b"\nlast line\n")

    error = file.refuse(DeleteLine(hash="beef00"))

    assert len(json.dumps(error.details)) < 3000
    assert file.edit(DeleteLine(hash=error.details["fresh_rows"][1])) == b"first line\nlast line\n"


def test_many_candidates_are_listed_up_to_a_hundred_and_counted() -> None:
    file = File(b"again and again\n" * 5000)

    error = file.refuse(DeleteLine(hash=file.hash(1)))

    assert error.details["candidate_count"] == 5000
    assert len(error.details["candidates"]) == 100


HANDLERS = File(
    b"".join(
        b"def handle_%s(request):\n    check(request)\n    return None\n\n" % name
        for name in (b"save", b"delete", b"list")
    )
)


def spellings(file: File, line: int, occurrence: int) -> list[tuple[str, dict[str, int]]]:
    """Return every way of saying which of several equal lines is meant."""
    bare = file.hash(line)
    return [
        (f"{line}#{bare}.{occurrence}", {}),
        (f"{line}#{bare}", {}),
        (f"{bare}.{occurrence}", {}),
        (bare, {"line": line}),
        (bare, {"occurrence": occurrence}),
        (bare, {"line": line, "occurrence": occurrence}),
    ]


@requirement("anchored:moved_on:no_sighting", "anchored:moved_on:no_sighting_retry")
@pytest.mark.parametrize("number", range(6))
def test_without_a_sighting_neither_number_nor_occurrence_decides_between_equal_lines(number: int) -> None:
    sent, more = spellings(HANDLERS, 7, 2)[number]

    error = HANDLERS.refuse(ReplaceLine(hash=sent, content="    return True", **more))

    assert isinstance(error, AnchorContextAmbiguous | AnchorAmbiguous)
    assert error.reason == "not_shown"
    assert HANDLERS.row(5) in error.details["fresh_rows"]
    assert error.shown
    retried = HANDLERS.plan(
        ReplaceLine(hash=sent, content="    return True", **more), shown=(HANDLERS.shown(*error.shown),)
    )
    assert retried.resolutions[0].start_line == 7


@requirement("anchored:moved_on:no_sighting")
@pytest.mark.parametrize("number", range(3))
def test_without_a_sighting_the_ends_of_a_range_must_be_unique(number: int) -> None:
    start, end = spellings(HANDLERS, 6, 2)[number][0], spellings(HANDLERS, 7, 2)[number][0]

    error = HANDLERS.refuse(DeleteRange(start_hash=start, end_hash=end))

    assert isinstance(error, AnchorContextAmbiguous)
    assert [each["error"] for each in error.details["problems"]] == ["anchor_context_ambiguous"] * 2
    assert isinstance(HANDLERS.refuse(DeleteRange(start_hash=HANDLERS.anchor(5), end_hash=end)), AnchorContextAmbiguous)


@requirement("anchored:moved_on:no_sighting")
def test_a_line_that_was_not_shown_is_not_found_by_its_number_although_others_were_shown() -> None:
    shown = (HANDLERS.shown((1, 2)),)

    assert HANDLERS.refuse(DeleteLine(hash=f"7#{HANDLERS.hash(7)}.2"), shown=shown).reason == "not_shown"
    assert HANDLERS.plan(DeleteLine(hash=HANDLERS.hash(5)), shown=shown).resolutions[0].start_line == 5


@requirement("anchored:moved_on:no_sighting")
@pytest.mark.parametrize("sent", ["5#{}+2", "{}+2", "5#{}+2|    return None"])
def test_without_a_sighting_an_offset_is_not_counted(sent: str) -> None:
    error = HANDLERS.refuse(DeleteLine(hash=sent.format(HANDLERS.hash(5))))

    assert isinstance(error, AnchorStale)
    assert error.reason == "uncounted"
    assert HANDLERS.row(7) in error.details["fresh_rows"]


@requirement("anchored:moved_on:named_version")
@pytest.mark.parametrize("number", range(6))
def test_a_caller_that_names_the_version_may_count_in_it(number: int) -> None:
    sent, more = spellings(HANDLERS, 7, 2)[number]

    plan = HANDLERS.plan(DeleteLine(hash=sent, **more), allow_rebase=False)

    assert plan.resolutions[0].start_line == 7
