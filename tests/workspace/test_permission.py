"""Modes and path classes as one table, and what an approval is worth."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from spec.marks import requirement
from surehold.errors import InvalidArgument, PermissionDenied, PermissionRequired, StaleFile, SureholdError, to_python
from surehold.text.plan import Keep
from surehold.text.rewrite import WriteText
from surehold.workspace.access.permission import Approval, PermissionRequest
from surehold.workspace.paths import Policy
from surehold.workspace.proposal import Exact, Proposal, Unproven
from surehold.workspace.settings import MODES, Mode
from workspaces import Bench, make_bench, real_workspace

RULES = Policy(deny=("secret",), ask=("asked",), allow=("allowed", "link-to-plain"))

FREE, ASKED = "free", "asked"
TABLE: dict[str, dict[str, str]] = {
    # path class: what happens with a person to ask, by mode
    "plain": {"default": ASKED, "acceptEdits": FREE, "bypassPermissions": FREE, "plan": "plan_mode", "dontAsk": "dont_ask"},
    "asked": {"default": ASKED, "acceptEdits": ASKED, "bypassPermissions": FREE, "plan": "plan_mode", "dontAsk": "dont_ask"},
    "allowed": {"default": FREE, "acceptEdits": FREE, "bypassPermissions": FREE, "plan": "plan_mode", "dontAsk": FREE},
    ".bashrc": {"default": ASKED, "acceptEdits": ASKED, "bypassPermissions": FREE, "plan": "plan_mode", "dontAsk": "protected_path"},
    "secret": dict.fromkeys(MODES, "policy"),
    "/etc/passwd": dict.fromkeys(MODES, "absolute"),
    "../outside": dict.fromkeys(MODES, "dotdot"),
    "link-to-plain": {"default": ASKED, "acceptEdits": FREE, "bypassPermissions": FREE, "plan": "plan_mode", "dontAsk": "dont_ask"},
    "link-to-protected": {"default": ASKED, "acceptEdits": ASKED, "bypassPermissions": FREE, "plan": "plan_mode", "dontAsk": "protected_path"},
    "link-to-secret": dict.fromkeys(MODES, "policy"),
    "link-out": dict.fromkeys(MODES, "symlink_escape"),
}  # fmt: skip
ALONE = {"plain": "permission_required", "asked": "permission_required", "link-to-plain": "permission_required"}
"""The outcome when there is no one to ask; protected paths are refused as protected."""


@dataclass
class Person:
    """A person who is asked, and always says the same."""

    answer: Approval = field(default_factory=lambda: Approval(allowed=True))
    asked: list[PermissionRequest] = field(default_factory=list[PermissionRequest])

    def __call__(self, request: PermissionRequest) -> Approval:
        self.asked.append(request)
        return self.answer


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench("memory", "local", tmp_path, policy=RULES)
    for name in ("plain", "asked", "allowed", ".bashrc", "secret"):
        made.put(name, b"old\n")
    (tmp_path / "outside").write_bytes(b"old\n")
    for link, target in (
        ("link-to-plain", "plain"),
        ("link-to-protected", ".bashrc"),
        ("link-to-secret", "secret"),
        ("link-out", "../outside"),
    ):
        (made.root / link).symlink_to(target)
    yield made
    made.workspace.close()


def attempt(bench: Bench, path: str, mode: Mode, person: Person | None) -> str:
    session = bench.workspace.session(mode=mode, approver=person)
    try:
        session.edit(path, ("old", "new"))
    except SureholdError as error:
        assert (bench.root / "plain").read_bytes() == b"old\n", "refused, and written all the same"
        return error.reason
    assert (bench.root / path).read_bytes() == b"new\n"
    return ASKED if person and person.asked else FREE


@requirement("claude:permission:modes", "claude:permission:order", "claude:permission:protected")
@pytest.mark.parametrize(("path", "mode"), [(path, mode) for path in TABLE for mode in MODES])
def test_modes_and_path_classes_with_somebody_to_ask(bench: Bench, path: str, mode: Mode) -> None:
    assert attempt(bench, path, mode, Person()) == TABLE[path][mode]


@requirement("claude:permission:no_channel", "claude:permission:protected")
@pytest.mark.parametrize(("path", "mode"), [(path, mode) for path in TABLE for mode in MODES])
def test_modes_and_path_classes_with_nobody_to_ask(bench: Bench, path: str, mode: Mode) -> None:
    expected = TABLE[path][mode]
    expected = ALONE.get(path, "protected_path") if expected == ASKED else expected

    assert attempt(bench, path, mode, None) == expected


@requirement("claude:permission:no_channel")
def test_without_a_channel_the_refusal_carries_the_diff_and_how_to_grant(bench: Bench) -> None:
    with pytest.raises(PermissionRequired) as refused:
        bench.workspace.session(mode="default").edit("plain", ("old", "new"))

    assert "-old\n+new\n" in refused.value.details["diff"]
    assert "--mode acceptEdits" in refused.value.action
    assert refused.value.recoverable


@requirement("claude:permission:channels")
def test_the_person_is_shown_both_versions_and_why_they_are_asked(bench: Bench) -> None:
    person = Person()
    bench.workspace.session(agent="robot", mode="default", approver=person).edit("plain", ("old", "new"))

    (request,) = person.asked
    (one,) = request.files
    assert (one.path, one.plan.before.data, one.plan.after.data) == ("plain", b"old\n", b"new\n")
    assert request.call.agent == "robot"
    assert request.why == "The mode default asks before `plain` is changed."
    assert "+new" in request.diff


@requirement("approval:shown:moves")
def test_the_diff_of_a_move_shows_what_it_overwrites_and_what_a_protected_name_gets(bench: Bench) -> None:
    person = Person(Approval(allowed=False))
    session = bench.workspace.session(mode="default", approver=person)
    bench.put("other", b"other\n")
    for path in ("other", ".envrc"):
        move = Proposal(path="plain", to_path=path, edit=Keep(), proof=Unproven(), to_proof=Unproven())
        with pytest.raises(PermissionDenied):
            session.submit(move, operation="move")

    over, protected = (request.diff for request in person.asked)
    assert over == "--- other\n+++ other\n@@ -1 +1 @@\n-other\n+old\n"
    assert protected == "--- /dev/null\n+++ .envrc\n@@ -0,0 +1 @@\n+old\n"


@pytest.mark.parametrize("operation", ["create", "write", "edit", "delete", "move", "restore", "undo", "redo"])
def test_every_kind_of_change_is_asked_about(tmp_path: Path, operation: str) -> None:
    person = Person()
    root = tmp_path / "r"
    root.mkdir()
    with real_workspace(root) as workspace:
        free = workspace.session()
        free.create("a", "old\n")
        trashed = _prepared(free, operation)
        session = workspace.session(mode="default", approver=person)
        if (root / "a").exists():
            session.read("a")

        _changes(session, trashed)[operation]()

        assert len(person.asked) == 1


def _prepared(free: Any, operation: str) -> str:
    if operation == "restore":
        free.delete("a")
        return str(free.workspace.store.list_trash()[0].id)
    if operation in ("undo", "redo"):
        free.edit("a", ("old", "new"))
    if operation == "redo":
        free.undo()
    return ""


def _changes(session: Any, trashed: str) -> dict[str, Any]:
    return {
        "create": lambda: session.create("b", "x"),
        "write": lambda: session.write("a", "x"),
        "edit": lambda: session.edit("a", ("old", "new")),
        "delete": lambda: session.delete("a"),
        "move": lambda: session.move("a", "b"),
        "restore": lambda: session.restore(trashed),
        "undo": session.undo,
        "redo": session.redo,
    }


def test_a_no_is_recorded_and_says_why(bench: Bench) -> None:
    person = Person(Approval(allowed=False, note="Not on a Friday."))

    with pytest.raises(PermissionDenied) as refused:
        bench.workspace.session(mode="default", approver=person).edit("plain", ("old", "new"))

    assert (refused.value.reason, refused.value.message) == (
        "approval_denied",
        "The change was not allowed: Not on a Friday.",
    )
    assert bench.get("plain") == b"old\n"
    entry = bench.workspace.history.log()[0]
    assert (entry.ok, entry.error_kind) == (False, "permission_denied")


def test_nobody_is_asked_about_a_change_that_is_refused_anyway(bench: Bench) -> None:
    person = Person()
    session = bench.workspace.session(mode="default", approver=person)

    with pytest.raises(SureholdError):
        session.edit("plain", ("not there", "new"))
    assert session.edit("plain", ("old", "old "), dry_run=True).dry_run
    assert session.write("plain", "old\n", expected_sha256=session.read("plain").sha256).change_id == ""
    assert person.asked == []


def test_always_ends_the_questions_of_the_mode_but_not_those_of_rules(bench: Bench) -> None:
    person = Person(Approval(allowed=True, always=True))
    session = bench.workspace.session(mode="default", approver=person)

    session.edit("plain", ("old", "new"))
    session.edit("plain", ("new", "newer"))
    assert len(person.asked) == 1
    session.edit("asked", ("old", "new"))
    session.edit(".bashrc", ("old", "new"))
    assert len(person.asked) == 3


def test_always_holds_for_one_conversation_only_and_ends_when_the_mode_is_switched(bench: Bench) -> None:
    person = Person(Approval(allowed=True, always=True))
    session = bench.workspace.session(mode="default", approver=person)
    session.edit("plain", ("old", "1"))
    bench.workspace.session(mode="default", approver=person).edit("plain", ("1", "2"))
    assert len(person.asked) == 2

    session.permission.switch_mode("default")
    session.with_approver(person).edit("plain", ("2", "3"))
    assert len(person.asked) == 3


@requirement("claude:permission:user_modified")
def test_whoever_is_asked_may_want_other_content(bench: Bench) -> None:
    person = Person(Approval(allowed=True, contents={"plain": "mine\n"}))

    receipt = bench.workspace.session(mode="default", approver=person).edit("plain", ("old", "new"))

    assert bench.get("plain") == b"mine\n"
    assert receipt.user_modified
    assert "-old\n+mine\n" in receipt.diff


@requirement("claude:permission:user_modified")
def test_the_same_content_is_no_modification(bench: Bench) -> None:
    person = Person(Approval(allowed=True, contents={"plain": "new\n"}))

    assert not bench.workspace.session(mode="default", approver=person).edit("plain", ("old", "new")).user_modified
    assert bench.get("plain") == b"new\n"


def test_content_for_another_file_is_refused(bench: Bench) -> None:
    person = Person(Approval(allowed=True, contents={"asked": "mine\n"}))

    with pytest.raises(SureholdError, match="which this change does not write"):
        bench.workspace.session(mode="default", approver=person).edit("plain", ("old", "new"))
    assert (bench.get("plain"), bench.get("asked")) == (b"old\n", b"old\n")


@dataclass(frozen=True, kw_only=True)
class Answered:
    """An answer about a change of `plain`, `asked` and `gone`, which is moved to `here`, and what comes of it."""

    answer: Approval
    refused: str = ""
    files: dict[str, bytes | None] = field(default_factory=dict[str, bytes | None])
    """What these hold afterwards, where that is not what they held before."""
    left_out: tuple[str, ...] = ()
    user_modified: bool = False


ALL = {"plain": b"new", "asked": b"new", "gone": None, "here": b"gone\n"}
ANSWERS = {
    "everything": Answered(answer=Approval(allowed=True), files=ALL),
    "a part": Answered(
        answer=Approval(allowed=True, left_out=("plain",)),
        files={one: data for one, data in ALL.items() if one != "plain"},
        left_out=("`plain` stays as it is: the person left it out.",),
        user_modified=True,
    ),
    "other content of a part": Answered(
        answer=Approval(allowed=True, left_out=("plain",), contents={"asked": "mine"}),
        files={"asked": b"mine", "gone": None, "here": b"gone\n"},
        left_out=("`plain` stays as it is: the person left it out.",),
        user_modified=True,
    ),
    "a move cannot be left out": Answered(answer=Approval(allowed=True, left_out=("gone",)), refused="strange_content"),
    "nor what is not asked about": Answered(answer=Approval(allowed=True, left_out=("x",)), refused="strange_content"),
    "content of what is left out": Answered(
        answer=Approval(allowed=True, left_out=("plain",), contents={"plain": "x"}), refused="strange_content"
    ),
}


@pytest.mark.parametrize("answered", ANSWERS.values(), ids=ANSWERS)
def test_a_person_allows_some_files_of_a_change(bench: Bench, answered: Answered) -> None:
    bench.put("gone", b"gone\n")
    session = bench.workspace.session(mode="default", approver=Person(answered.answer))
    proposals = [Proposal(path=name, edit=WriteText("new"), proof=Unproven()) for name in ("plain", "asked")]
    proposals.append(Proposal(path="gone", to_path="here", edit=Keep(), proof=Unproven()))
    before = {name: bench.get(name) for name in ALL}

    if answered.refused:
        with pytest.raises(InvalidArgument, match="which this change does not write") as caught:
            session.apply(*proposals)
        assert caught.value.reason == answered.refused
    else:
        receipt = session.apply(*proposals)
        assert (receipt.left_out, receipt.user_modified) == (answered.left_out, answered.user_modified)
        assert [one.path for one in receipt.files if one.left_out] == list(answered.answer.left_out)

    assert {name: bench.get(name) for name in ALL} == {**before, **answered.files}


def test_a_person_who_leaves_out_every_file_that_would_change_allows_nothing(bench: Bench) -> None:
    person = Person(Approval(allowed=True, left_out=("plain",)))
    same = Proposal(path="asked", edit=WriteText("old\n"), proof=Unproven())  # it has this content

    for also in ((), (same,)):
        with pytest.raises(PermissionDenied) as refused:
            bench.workspace.session(mode="default", approver=person).apply(
                Proposal(path="plain", edit=WriteText("new"), proof=Unproven()), *also
            )
        assert (refused.value.reason, refused.value.path) == ("nothing_left", "plain")
    assert bench.get("plain") == b"old\n"
    assert [entry.ok for entry in bench.workspace.history.log()] == [False, False]


@requirement("claude:gate:checked_again")
def test_a_file_that_changes_while_somebody_is_asked_is_not_written(bench: Bench) -> None:
    def busy(request: PermissionRequest) -> Approval:
        bench.put("plain", b"old\nand mine\n")
        return Approval(allowed=True)

    with pytest.raises(StaleFile) as refused:
        bench.workspace.session(mode="default", approver=busy).edit("plain", ("old", "new"))

    assert refused.value.reason == "changed_while_asked"
    assert "+and mine" in refused.value.details["changes_since"]
    assert bench.get("plain") == b"old\nand mine\n"


@requirement("claude:gate:checked_again")
def test_a_file_that_appears_while_somebody_is_asked_is_not_overwritten(bench: Bench) -> None:
    def busy(request: PermissionRequest) -> Approval:
        bench.put("new", b"theirs\n")
        return Approval(allowed=True)

    with pytest.raises(StaleFile):
        bench.workspace.session(mode="default", approver=busy).create("new", "x")
    assert bench.get("new") == b"theirs\n"


def test_a_link_that_leads_elsewhere_after_the_question_is_not_followed(bench: Bench) -> None:
    bench.put("twin", b"old\n")

    def busy(request: PermissionRequest) -> Approval:
        (bench.root / "link-to-plain").unlink()
        (bench.root / "link-to-plain").symlink_to("twin")
        return Approval(allowed=True)

    with pytest.raises(StaleFile, match="now resolves to a different file"):
        bench.workspace.session(mode="default", approver=busy).edit("link-to-plain", ("old", "new"))
    assert (bench.get("plain"), bench.get("twin")) == (b"old\n", b"old\n")


def test_other_writers_need_not_wait_while_somebody_is_asked(bench: Bench) -> None:
    def busy(request: PermissionRequest) -> Approval:
        bench.workspace.session().edit("allowed", ("old", "meanwhile"))
        return Approval(allowed=True)

    bench.workspace.session(mode="default", approver=busy).edit("plain", ("old", "new"))
    assert (bench.get("plain"), bench.get("allowed")) == (b"new\n", b"meanwhile\n")


def test_one_question_is_asked_for_a_change_of_several_files(bench: Bench) -> None:
    from surehold.text.quoted.edits import SnapshotEdits, StringEdit

    person = Person()
    edit = SnapshotEdits((StringEdit(old="old", new="new"),))
    bench.workspace.session(mode="default", approver=person).apply(
        *(Proposal(path=name, edit=edit, proof=Exact()) for name in ("plain", "allowed"))
    )

    assert [one.path for one in person.asked[0].files] == ["plain", "allowed"]
    assert len(person.asked) == 1


def test_a_library_session_asks_when_there_is_somebody_and_accepts_edits_when_not(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    with real_workspace(tmp_path / "r", approver=Person()) as asked, real_workspace(tmp_path / "r") as alone:
        assert asked.session().permission.mode == "default"
        assert alone.session().permission.mode == "acceptEdits"
        assert asked.session(mode="plan").permission.mode == "plan"


def test_an_unknown_mode_is_refused_when_it_is_chosen(tmp_path: Path) -> None:
    with pytest.raises(SureholdError, match="Unknown mode `yolo`"):
        real_workspace(tmp_path, mode="yolo")


@requirement("front:library:wrong_values")
@pytest.mark.parametrize("mode", ["yolo", "Plan", ""])
def test_an_unknown_mode_of_a_session_is_refused_at_once_and_the_modes_are_listed(bench: Bench, mode: Any) -> None:
    session = bench.workspace.session(mode="plan")

    for choose in (lambda: bench.workspace.session(mode=mode), lambda: session.permission.switch_mode(mode)):
        with pytest.raises(InvalidArgument, match=f"Unknown mode `{mode}`") as refused:
            choose()
        assert refused.value.action == "Choose one of default, acceptEdits, bypassPermissions, plan, dontAsk."
    assert session.permission.mode == "plan"


def test_a_refusal_without_an_approver_says_what_a_python_program_passes(bench: Bench) -> None:
    with pytest.raises(PermissionRequired) as refused:
        bench.workspace.session(mode="default").edit("plain", ("old", "new"))

    assert "`approver=`" in to_python(refused.value.action)
    assert '`mode="acceptEdits"`' in to_python(refused.value.action)


def test_a_move_does_not_overwrite_what_appeared_at_its_destination_meanwhile(bench: Bench) -> None:
    bench.put("there", b"shown\n")

    def busy(request: PermissionRequest) -> Approval:
        bench.put("there", b"precious\n")
        return Approval(allowed=True)

    move = Proposal(path="plain", to_path="there", edit=Keep(), proof=Exact(), to_proof=Unproven())
    with pytest.raises(StaleFile, match="to overwrite it"):
        bench.workspace.session(mode="default", approver=busy).apply(move)
    assert (bench.get("plain"), bench.get("there")) == (b"old\n", b"precious\n")


def test_a_note_to_a_yes_reaches_the_caller(bench: Bench) -> None:
    person = Person(Approval(allowed=True, note="Test it, too."))

    receipt = bench.workspace.session(mode="default", approver=person).edit("plain", ("old", "new"))

    assert receipt.files[0].warnings == ("The person who allowed this says: Test it, too.",)


@pytest.mark.parametrize(("mode", "reason"), [("plan", "plan_mode"), ("dontAsk", "dont_ask")])
def test_a_mode_that_is_switched_while_somebody_is_asked_holds(bench: Bench, mode: Mode, reason: str) -> None:
    def switching(request: PermissionRequest) -> Approval:
        session.permission.switch_mode(mode)
        return Approval(allowed=True, always=True)

    session = bench.workspace.session(mode="default", approver=switching)
    for _ in range(2):
        with pytest.raises(PermissionDenied) as refused:
            session.edit("plain", ("old", "new"))
        assert refused.value.reason == reason
    assert bench.get("plain") == b"old\n"


def test_the_question_names_the_strictest_reason_of_several_files(bench: Bench) -> None:
    person = Person()
    proposals = [Proposal(path=name, edit=WriteText("x"), proof=Unproven()) for name in ("plain", "asked", ".bashrc")]

    bench.workspace.session(mode="default", approver=person).apply(*proposals)

    assert person.asked[0].why == "`.bashrc` is protected: `.bashrc` configures bash."


def test_the_persons_text_of_a_new_file_takes_the_proposed_line_endings_and_mark(bench: Bench) -> None:
    person = Person(Approval(allowed=True, contents={"new.bat": "mine\nown\n"}))

    receipt = bench.workspace.session(mode="default", approver=person).create("new.bat", "\ufeffa\r\nb\r\n")

    assert receipt.user_modified
    assert bench.get("new.bat") == b"\xef\xbb\xbfmine\r\nown\r\n"


def test_the_persons_text_does_not_count_as_seen_by_the_caller(bench: Bench) -> None:
    person = Person(Approval(allowed=True, contents={"plain": "mine\n"}))
    session = bench.workspace.session(mode="default", approver=person)
    session.read("plain")
    session.write("plain", "new\n")

    with pytest.raises(StaleFile):
        session.with_approver(Person()).write("plain", "over it\n")
    assert bench.get("plain") == b"mine\n"


def test_a_person_takes_back_what_somebody_allowed_on_a_protected_path(bench: Bench) -> None:
    session = bench.workspace.session(mode="default", approver=Person())
    change = session.edit(".bashrc", ("old", "new")).change_id

    with pytest.raises(PermissionDenied):
        session.with_approver(None).undo(change)
    bench.workspace.history.undo(change)
    assert bench.get(".bashrc") == b"old\n"
    bench.workspace.history.redo(change)
    assert bench.get(".bashrc") == b"new\n"

    session.delete(".bashrc", expected_sha256=session.read(".bashrc").sha256)
    trashed = bench.workspace.history.trash()[0].id
    with pytest.raises(PermissionDenied):
        bench.workspace.history.restore(trashed, to_path=".zshrc")
    bench.workspace.history.restore(trashed)
    assert bench.get(".bashrc") == b"new\n"
