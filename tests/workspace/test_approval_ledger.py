"""What the ledger says about approval: who was asked, by which rule, what they answered, and what was proposed."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from spec.marks import requirement
from surehold.dialects.anchored.edit import edit as anchored_edit
from surehold.dialects.claude.edit import edit
from surehold.dialects.claude.read import read
from surehold.dialects.files.edit_file import edit_file
from surehold.dialects.shared.read_file import read_file
from surehold.errors import Cancelled, PermissionDenied, PermissionRequired, StaleFile
from surehold.front.shared.ledger_json import approval_record, entry_summary
from surehold.stores.base import Entry
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import sha256_hex
from surehold.tools.call import CallContext
from surehold.workspace.access.permission import Approval, PermissionRequest
from surehold.workspace.paths import Policy
from surehold.workspace.proposal import Exact, Proposal
from surehold.workspace.settings import Mode
from workspaces import Bench, make_bench

RULES = Policy(ask=("asked",), allow=("allow*",))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench("memory", "local", tmp_path, policy=RULES)
    for name in ("plain", "asked", "allowed", ".bashrc"):
        made.put(name, b"old\n")
    yield made
    made.workspace.close()


def newest(bench: Bench) -> Entry:
    return bench.workspace.history.log()[0]


def yes(request: PermissionRequest) -> Approval:
    return Approval(allowed=True, where="page", who="ada", note="Mind the tests.")


@requirement("approval:ledger:rule")
@pytest.mark.parametrize(
    ("path", "mode", "asked", "rule"),
    [
        ("plain", "default", True, "mode default"),
        ("plain", "acceptEdits", False, "mode acceptEdits"),
        ("plain", "bypassPermissions", False, "mode bypassPermissions"),
        ("asked", "acceptEdits", True, "ask asked"),
        ("allowed", "default", False, "allow allow*"),
        (".bashrc", "acceptEdits", True, "protected .bashrc"),
    ],
)
def test_every_change_says_whether_it_was_asked_about_and_by_which_rule(
    bench: Bench, path: str, mode: Mode, asked: bool, rule: str
) -> None:
    bench.workspace.session(mode=mode, approver=yes).edit(path, ("old", "new"))

    approval = approval_record(newest(bench))
    assert approval
    assert (approval["asked"], approval["rule"]) == (asked, rule)
    assert (approval["where"], approval["who"], approval["note"]) == (
        ("page", "ada", "Mind the tests.") if asked else (None, None, None)
    )
    assert bool(approval["at"]) is asked
    assert (approval["edited"], approval["proposal_sha256"]) == (False, None)
    assert bench.workspace.history.verify().ok


def test_a_change_that_was_allowed_for_the_session_says_so(bench: Bench) -> None:
    session = bench.workspace.session(mode="default", approver=lambda request: Approval(allowed=True, always=True))
    session.edit("plain", ("old", "new"))
    session.edit("plain", ("new", "newer"))

    assert entry_summary(newest(bench))["approval"] == {
        "asked": False,
        "rule": "allowed for this session",
        "edited": False,
    }


@requirement("approval:ledger:proposal")
def test_what_the_agent_proposed_is_kept_beside_what_the_person_wrote(bench: Bench) -> None:
    def other(request: PermissionRequest) -> Approval:
        return Approval(allowed=True, contents={"plain": "mine\n"})

    bench.workspace.session(mode="default", approver=other).edit("plain", ("old", "new"))
    entry, history = newest(bench), bench.workspace.history

    approval = approval_record(entry)
    assert approval
    assert (approval["edited"], approval["where"]) == (True, "callback")
    assert bench.workspace.store.read_blob(approval["proposal_sha256"]) == b"new\n"
    assert "+mine" in history.diff(entry.change_id)
    assert "+new" in history.proposed_diff(entry.change_id)
    history.gc(keep=timedelta(days=30))
    assert bench.workspace.store.has_blob(approval["proposal_sha256"])
    history.undo(entry.change_id)
    assert bench.get("plain") == b"old\n"


@requirement("approval:ledger:refused")
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Approval(allowed=False, where="form", note="No."), PermissionDenied),
        (PermissionRequired("No answer came within 600 seconds."), PermissionRequired),
        (Cancelled("The call was cancelled while it waited for approval."), Cancelled),
        (None, PermissionRequired),
    ],
)
def test_what_was_refused_or_withdrawn_can_be_looked_at_later(
    bench: Bench, answer: Approval | Exception | None, expected: type[Exception]
) -> None:
    def person(request: PermissionRequest) -> Approval:
        if isinstance(answer, Exception):
            raise answer
        assert answer
        return answer

    large = b"".join(b"line %d\n" % n for n in range(20_000))
    session = bench.workspace.session(mode="default", approver=person if answer else None)
    with pytest.raises(expected):
        session.apply(Proposal(path="plain", edit=WriteBytes(large), proof=Exact()))

    entry, history = newest(bench), bench.workspace.history
    assert not entry.ok
    assert entry.call.approval
    assert entry.call.approval.asked is (answer is not None)
    assert history.diff(entry.change_id).endswith("+line 19999\n")
    assert entry.change.after
    assert bench.workspace.store.read_blob(entry.change.after.sha256) == large
    assert (bench.get("plain"), history.trash()) == (b"old\n", ())
    assert not bench.workspace.store.knows_version("plain", entry.change.after.sha256), "it never was in the file"
    with pytest.raises(Exception, match="changed nothing"):
        history.undo(entry.change_id)


def test_a_refused_deletion_puts_nothing_into_the_trash(bench: Bench) -> None:
    session = bench.workspace.session(mode="default", approver=lambda request: Approval(allowed=False))
    session.read("plain")
    with pytest.raises(PermissionDenied):
        session.delete("plain")

    assert "-old" in newest(bench).change.diff
    assert bench.workspace.history.trash() == ()


def test_a_change_that_was_allowed_and_came_too_late_keeps_its_answer_and_its_diff(bench: Bench) -> None:
    def busy(request: PermissionRequest) -> Approval:
        bench.put("plain", b"old\nand more\n")
        return yes(request)

    with pytest.raises(StaleFile):
        bench.workspace.session(mode="default", approver=busy).edit("plain", ("old", "new"))

    entry = newest(bench)
    assert (entry.ok, entry.error_kind) == (False, "stale_file")
    assert entry.call.approval
    assert entry.call.approval.who == "ada"
    assert "+new" in entry.change.diff


@requirement("approval:gate:carried")
def test_lines_of_earlier_versions_count_as_seen_after_an_approval_too(bench: Bench) -> None:
    lines = [f"line {n}\n" for n in range(1, 41)]
    bench.put("plain", "".join(lines).encode())
    session = bench.workspace.session(mode="default", approver=yes)
    context = CallContext(session=session)
    path = str(bench.root / "plain")

    def change(old: str, new: str) -> str:
        return edit.call(context, {"file_path": path, "old_string": old, "new_string": new}).text

    read.call(context, {"file_path": path, "offset": 1, "limit": 10})
    bench.put("plain", "".join(["outside\n", *lines]).encode())
    read.call(context, {"file_path": path, "offset": 12, "limit": 30})  # the rest of the new version

    answers = [change("line 1\n", "one\n")]  # known from the earlier version
    answers += [change(f"line {n}\n", f"number {n}\n") for n in range(20, 30)]  # until that version is forgotten
    answers += [change("line 9\n", "nine\n")]
    assert [text for text in answers if "Nothing was written" in text] == []


@requirement("approval:callback:answer")
@pytest.mark.parametrize("answer", [True, False, None, "yes", 1])
def test_a_callback_says_true_or_false_and_nothing_else_allows(bench: Bench, answer: Any) -> None:
    session = bench.workspace.session(mode="default", approver=lambda request: answer)
    if answer is True:
        assert session.create("made", "x").change_id
        return
    with pytest.raises(PermissionDenied) as refused:
        session.create("made", "x")
    assert bench.get("made") is None
    if answer is not False:
        assert "True, False or" in str(refused.value)


@requirement("approval:page:parts")
def test_the_answer_does_not_count_edits_that_a_person_wrote_otherwise(bench: Bench) -> None:
    session = bench.workspace.session(
        mode="default", approver=lambda request: Approval(allowed=True, contents={"plain": "mine\n"})
    )
    context = CallContext(session=session)
    read_file.call(context, {"path": "plain"})
    edits = [{"oldText": "old", "newText": "new"}]
    quoted = edit_file.call(context, {"path": "plain", "edits": edits, "expectedSha256": sha256_hex(b"old\n")})
    assert quoted.text.startswith("plain: written as the person who allowed it wanted.\n")
    bench.put("plain", b"old\n")
    shown = read_file.call(context, {"path": "plain", "hashes": True})
    row = next(line for line in shown.text.splitlines() if line.endswith("|old"))
    operation = {"op": "replace_line", "hash": row.partition("|")[0].rstrip("!~"), "content": "new"}
    anchored = anchored_edit.call(context, {"path": "plain", "operations": [operation]})
    assert anchored.text.startswith("Written to plain, as the person who allowed it wanted: 1 -> 1 lines (+0).\n")
