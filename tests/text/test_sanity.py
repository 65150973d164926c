from collections.abc import Callable
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold import Receipt, Session, Settings, open_workspace
from surehold.errors import SafetyCheckFailed
from surehold.syntax.languages import parsers_for
from surehold.text.plan import EditPlan, Span, splice_spans
from surehold.text.quoted.edits import SequentialEdits, SnapshotEdits, StringEdit
from surehold.text.sanity.check import SanityCheck, SanityMode, SanityReport
from surehold.text.sanity.subject import SanityFinding
from surehold.text.snapshot import ABSENT, Snapshot
from surehold.workspace.proposal import Proposal, Unproven
from text.sanity_scenes import change, kinds, report

PYTHON = "import os\n\n\ndef first():\n    return os.sep\n\n\ndef second(value):\n    return (value, 2)\n"
BROKEN = PYTHON.replace("(value, 2)", "(value, 2")


def strict(path: str) -> SanityCheck:
    return SanityCheck(path=path, mode="strict", parse=parsers_for)


@requirement("anchored:sanity:parse", "anchored:sanity:settings")
def test_an_edit_after_which_the_file_does_not_parse_is_refused() -> None:
    with pytest.raises(SafetyCheckFailed) as caught:
        SanityCheck(path="a.py", parse=parsers_for)(change(PYTHON, BROKEN))

    assert caught.value.as_dict() == {
        "kind": "safety_check_failed",
        "reason": "parse_error",
        "code": -32014,
        "message": "Operation 0 looks like a mistake: the file was valid Python and would not be any more: "
        "line 9: '(' was never closed.",
        "path": None,
        "suggested_action": "Correct that operation, or send the operations that belong together in one call; "
        'if it is intended, send it with `safety_check: "warn"`.',
        "recoverable": True,
        "details": {
            "safety_status": "suspicious",
            "safety_warnings": [
                {
                    "kind": "parse_error",
                    "message": "The file was valid Python and would not be any more: line 9: '(' was never closed.",
                    "line": 9,
                    "operation": 0,
                }
            ],
            "operation": 0,
            "line": 9,
        },
    }


@requirement("anchored:sanity:settings")
@pytest.mark.parametrize(("mode", "status", "count"), [("warn", "suspicious", 1), ("off", "off", 0)])
def test_warn_and_off_refuse_nothing(mode: SanityMode, status: str, count: int) -> None:
    check = SanityCheck(path="a.py", mode=mode, parse=parsers_for)
    plan = change(PYTHON, BROKEN)

    assert check.report_on(plan).status == status
    assert len(check(plan)) == count


@requirement("anchored:sanity:broken_before")
def test_a_file_that_did_not_parse_before_is_not_blocked() -> None:
    worse = BROKEN.replace("import os\n", "import os (\n")

    assert report("a.py", BROKEN, worse, "strict") == SanityReport(
        status="clean",
        findings=(
            SanityFinding(
                kind="syntax_not_checked",
                fault="the file was not valid Python before this edit, so its syntax was not checked",
            ),
        ),
    )


def test_an_edit_that_repairs_a_file_is_clean() -> None:
    assert report("a.py", BROKEN, PYTHON) == SanityReport(status="clean")


@requirement("anchored:sanity:broken_before")
def test_what_is_put_into_an_empty_file_is_not_held_against_the_grammar() -> None:
    assert kinds("a.py", "\n", "this is no Python\n") == []


@requirement("anchored:sanity:time_box")
def test_a_file_too_large_to_parse_is_not_blocked_and_the_report_says_so() -> None:
    large = "value = 1\n" * 110_000

    found = report("a.py", large, large + "value = (\n")

    assert found.status == "clean"
    assert found.warnings == ("The file is larger than 1 MB, so its syntax was not checked.",)


@requirement("anchored:sanity:time_box")
def test_a_text_full_of_errors_is_given_up_in_time() -> None:
    found = report("a.rs", "fn main() {}\n", "fn main() {}\n" + "x y\n" * 25_000)

    assert found.status == "clean"
    assert found.findings[0].message == "The syntax was not checked: the parser took too long."


@requirement("anchored:sanity:names_operation")
@pytest.mark.parametrize("guilty", range(5))
def test_of_five_operations_the_one_that_broke_the_file_is_named(guilty: int) -> None:
    functions = "".join(f"def number_{n}():\n    return [{n}]\n\n\n" for n in range(5))
    edits = [StringEdit(old=f"[{n}]", new=f"[{n}, 0]") for n in range(5)]
    edits[guilty] = StringEdit(old=f"[{guilty}]", new=f"[{guilty}, 0")
    edits.reverse()

    found = strict("a.py").report_on(SnapshotEdits(tuple(edits)).plan(Snapshot(functions.encode())))

    assert [(f.kind, f.operation, f.line) for f in found.findings] == [("parse_error", 4 - guilty, 4 * guilty + 2)]


@requirement("anchored:sanity:names_operation")
def test_the_culprit_may_be_far_above_the_place_where_the_parser_gets_lost() -> None:
    lines = [f"x{n} = '{n}'\n" for n in range(40)]
    before = "".join(lines)
    edits = [StringEdit(old=f"'{n}'", new=f"'{n}!'") for n in range(40)]
    edits[3] = StringEdit(old="'3'", new="'''3!'")

    found = strict("a.py").report_on(SnapshotEdits(tuple(edits)).plan(Snapshot(before.encode())))

    assert [(f.kind, f.operation) for f in found.findings] == [("parse_error", 3)]


@requirement("anchored:sanity:names_operation")
def test_two_operations_that_break_the_file_only_together_are_blamed_on_the_second() -> None:
    before = b"a = 1\nb = 2\n"
    opens, closes = Span(start=0, end=6, new=b"a = '''1\n"), Span(start=6, end=12, new=b"b = 2'''\n")

    assert strict("a.py").report_on(splice_spans(Snapshot(before), (opens, closes))).status == "clean"
    twice = splice_spans(Snapshot(before), (opens, Span(start=6, end=12, new=b"b = '''2'''\n")))
    assert [f.operation for f in strict("a.py").report_on(twice).findings] == [0]


@requirement("anchored:sanity:names_operation")
def test_edits_made_one_after_the_other_are_told_apart_by_their_lines() -> None:
    edits = SequentialEdits((StringEdit(old="os.sep", new="os.path"), StringEdit(old="(value, 2)", new="(value, 2")))

    found = strict("a.py").report_on(edits.plan(Snapshot(PYTHON.encode())))

    assert [f.operation for f in found.findings] == [1]


def submit(session: Session, old: str, new: str) -> Receipt:
    edit = SnapshotEdits((StringEdit(old=old, new=new),))
    proposal = Proposal(path="a.py", edit=edit, proof=Unproven(), checks=(strict("a.py"),))
    return session.submit(proposal, tool="edit", operation="edit")


@requirement("anchored:sanity:rolled_back", "anchored:sanity:clean")
def test_a_refused_edit_leaves_the_file_as_it_was_and_a_clean_one_is_written(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    file = tmp_path / "root" / "a.py"
    file.write_text(PYTHON)
    with open_workspace(tmp_path / "root", settings=Settings(state_dir=tmp_path / "state")) as workspace:
        session = workspace.session(agent="test")

        with pytest.raises(SafetyCheckFailed) as caught:
            submit(session, "(value, 2)", "(value, 2")
        assert [warning["kind"] for warning in caught.value.details["safety_warnings"]] == ["parse_error"]
        assert (file.read_text(), workspace.checkpoints.open()) == (PYTHON, ())

        submit(session, "(value, 2)", "(value, 3)")
        assert (file.read_text(), workspace.checkpoints.open()) == (PYTHON.replace("2)", "3)"), ())


def test_a_file_that_is_created_or_deleted_is_only_looked_at_for_foreign_marks() -> None:
    created = EditPlan(before=ABSENT, after=Snapshot(b"def broken(\n"))
    deleted = EditPlan(before=Snapshot(b"x = 1\n"), after=ABSENT)
    marked = EditPlan(before=ABSENT, after=Snapshot(b"<<<<<<< HEAD\nx = 1\n"))

    assert strict("a.py").report_on(created) == SanityReport(status="clean")
    assert strict("a.py").report_on(deleted) == SanityReport(status="clean")
    assert [f.kind for f in strict("a.py").report_on(marked).findings] == ["conflict_marker"]


def test_bytes_that_are_not_text_are_not_judged() -> None:
    plan = EditPlan(before=Snapshot(b"x\0\0\0\1"), after=Snapshot(b"(\0\0\0\1"))

    assert strict("a.py").report_on(plan) == SanityReport(status="clean")


def test_nothing_is_said_about_an_edit_that_changes_nothing() -> None:
    plan = splice_spans(Snapshot(BROKEN.encode()), (Span(start=0, end=6, new=b"import"),))

    assert strict("a.py").report_on(plan) == SanityReport(status="clean")


ENCODINGS: dict[str, Callable[[str], bytes]] = {
    "byte order mark": lambda text: text.encode("utf-8-sig"),
    "UTF-16": lambda text: text.encode("utf-16"),
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "CR": lambda text: text.replace("\n", "\r").encode(),
    "Latin-1": lambda text: text.replace("\n\n\n", "\n# coding: latin-1 é\n\n", 1).encode("latin-1"),
}


@requirement("anchored:sanity:parse")
@pytest.mark.parametrize("name", ENCODINGS)
def test_files_in_every_encoding_are_parsed(name: str) -> None:
    good, bad, fine = map(ENCODINGS[name], (PYTHON, BROKEN, PYTHON.replace("2)", "3)")))

    assert [(f.kind, f.line, f.operation) for f in report("a.py", good, bad).findings] == [("parse_error", 9, 0)]
    assert report("a.py", good, fine) == SanityReport(status="clean")


def test_python_in_no_encoding_at_all_is_not_blocked() -> None:
    found = report("a.py", PYTHON.encode() + b"# \xff\x80\n", BROKEN.encode() + b"# \xff\x80\n")

    assert (found.status, found.warnings) == (
        "clean",
        ("The syntax was not checked: it contains bytes that are not text.",),
    )
