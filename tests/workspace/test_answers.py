"""What comes of an answer: what is recorded of it, what it allows, and what the caller is told."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from surehold.errors import PermissionDenied, PermissionRequired
from surehold.stores.base import ApprovalRecord, LedgerQuery
from surehold.text.plan import Keep
from surehold.text.rewrite import WriteText
from surehold.workspace.access.permission import Approval, Approver, Permission, PermissionRequest, read_answer
from surehold.workspace.paths import Policy
from surehold.workspace.proposal import ChangeRecord, Exact, Proposal, Receipt, Unproven
from surehold.workspace.settings import Mode, PermissionState
from workspaces import Bench, call, make_bench

PREVIEW_CHARS = 8 * 1024


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench("memory", "memory", tmp_path, policy=Policy(ask=("asked",), allow=("allowed",)))
    for name in ("plain", "asked", "allowed"):
        made.put(name, b"old\n")
    yield made
    made.workspace.close()


def write(bench: Bench, permission: Permission, *paths: str, text: str = "new\n", dry_run: bool = False) -> Receipt:
    proposals = [Proposal(path=path, edit=WriteText(text), proof=Unproven()) for path in paths]
    return bench.workspace.write(*proposals, call=call(), permission=permission, dry_run=dry_run)


def approval_in_ledger(bench: Bench) -> ApprovalRecord | None:
    return bench.store.list_entries(LedgerQuery(limit=1))[0].call.approval


def yes(request: PermissionRequest) -> Approval:
    return Approval(allowed=True, where="page", who="ada")


def test_a_question_says_in_words_what_is_asked_for(bench: Bench) -> None:
    asked = list[PermissionRequest]()

    def approver(request: PermissionRequest) -> bool:
        asked.append(request)
        return True

    permission = Permission("default", approver=approver)
    for paths in (("plain",), ("plain", "asked")):
        write(bench, permission, *paths, text=f"{len(paths)}\n")
    move = Proposal(path="plain", to_path="asked", edit=Keep(), proof=Exact(), to_proof=Unproven())
    bench.workspace.write(move, call=call("move"), permission=permission)

    assert [one.summary for one in asked] == [
        "change plain",
        "change 2 files",
        "move plain to asked, over the file that is there",
    ]
    assert [(one.is_protected, one.command) for one in asked] == [(False, None)] * 3
    assert asked[0].diff == "--- plain\n+++ plain\n@@ -1 +1 @@\n-old\n+1\n"
    assert asked[1].diff.count("--- ") == 2
    assert asked[2].diff == ""  # both hold the same


@pytest.mark.parametrize(
    ("path", "mode", "always", "rule"),
    [
        ("plain", "acceptEdits", False, "mode acceptEdits"),
        ("plain", "acceptEdits", True, "mode acceptEdits"),
        ("plain", "default", True, "allowed for this session"),
        ("plain", "default", False, "mode default"),
        ("plain", "bypassPermissions", False, "mode bypassPermissions"),
        ("asked", "acceptEdits", True, "ask asked"),
        ("allowed", "default", True, "allow allowed"),
        ("allowed", "dontAsk", False, "allow allowed"),
    ],
)
def test_what_decided_is_recorded_and_a_change_without_a_question_is_announced(
    bench: Bench, path: str, mode: Mode, always: bool, rule: str
) -> None:
    is_free, told = rule not in {"mode default", "ask asked"}, list[str]()
    record = ChangeRecord(on_free=lambda: told.append("free"))
    agreed = PermissionState(mode=mode, always=always)

    write(bench, Permission(approver=yes, agreement=agreed).with_record(record), path)

    found = approval_in_ledger(bench)
    assert found
    assert (found.rule, found.asked, found.where) == (rule, not is_free, "" if is_free else "page")
    assert bool(told) is is_free
    assert len(record.receipts) == 1
    rehearsed = write(bench, Permission("plan", record=record), path, text="other\n", dry_run=True)
    assert (rehearsed.dry_run, len(record.change_ids)) == (True, 1)


def never_shown(request: PermissionRequest) -> bool:
    raise PermissionRequired("It is too large.", reason="cannot_be_shown")


def refuse(request: PermissionRequest) -> bool:
    return False


def never_answered(request: PermissionRequest) -> bool:
    raise PermissionRequired("It took too long.", reason="timed_out")


@pytest.mark.parametrize(
    ("approver", "reason", "was_asked"),
    [
        (None, "permission_required", False),
        (never_shown, "cannot_be_shown", False),
        (never_answered, "timed_out", True),
        (refuse, "approval_denied", True),
    ],
)
def test_a_refusal_is_recorded_with_whether_a_person_was_asked(
    bench: Bench, approver: Approver | None, reason: str, was_asked: bool
) -> None:
    with pytest.raises(PermissionDenied if reason == "approval_denied" else PermissionRequired) as refused:
        write(bench, Permission("default", approver=approver), "plain")

    found = approval_in_ledger(bench)
    assert found
    assert refused.value.reason == reason
    assert (found.asked, found.rule, bool(found.at)) == (was_asked, "mode default", approver is not never_shown)
    assert bench.get("plain") == b"old\n"


@pytest.mark.parametrize("more", [0, 1])
def test_without_a_person_the_refusal_shows_the_beginning_of_the_difference(bench: Bench, more: int) -> None:
    heading = len("--- plain\n+++ plain\n@@ -1 +1 @@\n-old\n+\n")
    with pytest.raises(PermissionRequired) as refused:
        write(bench, Permission("default"), "plain", text="x" * (PREVIEW_CHARS - heading + more) + "\n")

    details = refused.value.details
    assert (len(details["diff"]), details["diff_truncated"]) == (PREVIEW_CHARS, more == 1)
    assert details["why"] == "The mode default asks before `plain` is changed."


def test_a_note_is_told_and_its_absence_is_not(bench: Bench) -> None:
    def approver(request: PermissionRequest) -> Approval:
        return Approval(allowed=True, note="" if request.files[0].path == "plain" else "Only once.")

    permission = Permission("default", approver=approver)
    plain, noted = write(bench, permission, "plain"), write(bench, permission, "asked", "plain", text="2\n")

    assert (plain.warnings, plain.user_modified, plain.left_out) == ((), False, ())
    assert [one.warnings for one in noted.files] == [("The person who allowed this says: Only once.",), ()]


@pytest.mark.parametrize(("note", "message"), [("", ""), ("Not now", ": Not now"), ("Not now.", ": Not now")])
def test_a_no_carries_its_note(bench: Bench, note: str, message: str) -> None:
    def approver(request: PermissionRequest) -> Approval:
        return Approval(allowed=False, note=note)

    with pytest.raises(PermissionDenied) as refused:
        write(bench, Permission("default", approver=approver), "plain")

    assert refused.value.message == f"The change was not allowed{message}."
    assert refused.value.path == "plain"


def test_nothing_but_true_and_an_approval_allows() -> None:
    answer = Approval(allowed=True, note="yes")
    assert (read_answer(True), read_answer(False)) == (Approval(allowed=True), Approval(allowed=False))
    assert read_answer(answer) is answer
    assert (answer.always, answer.where, answer.contents, answer.left_out) == (False, "callback", {}, ())
    for other in (1, "yes", None, [True]):
        with pytest.raises(PermissionDenied) as refused:
            read_answer(other)
        assert refused.value.reason == "bad_approval"
