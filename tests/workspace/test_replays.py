"""A call that is made again with its idempotency key gets its first answer, and nothing is written."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold.errors import InvalidArgument, NotFound, StaleFile
from surehold.text.plan import Delete, Edit, EditPlan
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import Snapshot, sha256_hex
from surehold.workspace.access.permission import Approval, Permission, PermissionRequest
from surehold.workspace.access.seen_lines import KnownFile
from surehold.workspace.proposal import Exact, Proposal, Receipt, SessionEdit, Unproven
from workspaces import Bench, call, make_bench

pytestmark = requirement("engine:store:retry")
ASKED = call(idempotency_key="k", session="s")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench("sqlite", "local", tmp_path)
    yield made
    made.workspace.close()


@dataclass
class BySession:
    """An edit that depends on what the session was shown."""

    text: str
    seen: list[tuple[str, Snapshot, str]]

    def edit_for(self, file: KnownFile) -> Edit:
        self.seen.append((file.path, file.current, file.session))
        if not self.text:
            raise StaleFile("What was shown is forgotten.")
        return WriteText(self.text)


class Impossible:
    """An edit that cannot be made."""

    def plan(self, before: Snapshot) -> EditPlan:
        raise StaleFile("This cannot be made.")


def write(bench: Bench, edit: Edit | SessionEdit, path: str = "a", **more: object) -> Receipt:
    proposal = Proposal(path=path, edit=edit, proof=Unproven(), **more)  # type: ignore[arg-type]
    return bench.workspace.write(proposal, call=ASKED)


def sides(receipt: Receipt) -> tuple[bytes | None, bytes | None]:
    before, after = receipt.files[0].plan.before, receipt.files[0].plan.after
    return before.data if before.exists else None, after.data if after.exists else None


@pytest.mark.parametrize(
    ("there", "edit", "before", "after"),
    [
        (b"one\n", WriteText("two\n"), b"one\n", b"two\n"),
        (None, WriteText("two\n"), None, b"two\n"),
        (b"one\n", Delete(), b"one\n", None),
    ],
)
def test_the_answer_is_the_first_one_whatever_the_file_is_by_now(
    bench: Bench, there: bytes | None, edit: Edit, before: bytes | None, after: bytes | None
) -> None:
    if there is not None:
        bench.put("a", there)
    first = write(bench, edit)
    bench.put("a", b"by another program\n")

    again = write(bench, edit)

    assert (sides(first), sides(again)) == ((before, after), (before, after))
    assert (again.replayed, again.change_id, again.entries) == (True, first.change_id, first.entries)
    assert again.files[0].change == first.files[0].change
    assert (len(first.warnings), len(again.warnings)) == (0, 1)
    assert bench.get("a") == b"by another program\n"


@pytest.mark.parametrize("edit", [WriteText("three\n"), Delete()])
def test_another_edit_with_the_same_key_is_refused(bench: Bench, edit: Edit) -> None:
    bench.put("a", b"one\n")
    write(bench, WriteText("two\n"))

    with pytest.raises(InvalidArgument, match="This idempotency key belongs to another call"):
        write(bench, edit)
    with pytest.raises(InvalidArgument, match="This idempotency key belongs to another call"):
        write(bench, WriteText("two\n"), path="b")
    with pytest.raises(InvalidArgument, match="This idempotency key belongs to another call"):
        write(bench, Impossible())
    with pytest.raises(InvalidArgument, match="This idempotency key belongs to another call"):
        bench.workspace.write(
            Proposal(path="a", edit=WriteText("two\n"), proof=Exact()), call=call("create", idempotency_key="k")
        )
    assert bench.get("a") == b"two\n"


def test_an_edit_by_what_a_session_was_shown_is_answered_as_it_was_recorded(bench: Bench) -> None:
    bench.put("a", b"one\n")
    seen = list[tuple[str, Snapshot, str]]()
    write(bench, BySession("two\n", seen))

    for text in ("two\n", "", "another by now\n"):
        again = write(bench, BySession(text, seen))
        assert (again.replayed, sides(again)) == (True, (b"one\n", b"two\n"))

    assert [(path, file.data, session) for path, file, session in seen] == [("a", b"one\n", "s")] * 4


def test_a_deletion_by_what_a_session_was_shown_is_answered_as_a_deletion(bench: Bench) -> None:
    bench.put("a", b"one\n")

    class DeleteBySession(BySession):
        def edit_for(self, file: KnownFile) -> Edit:
            return super().edit_for(file) if not self.text else Delete()

    write(bench, DeleteBySession("gone", []))

    assert sides(write(bench, DeleteBySession("", []))) == (b"one\n", None)


@pytest.mark.parametrize("lost", [b"one\n", b"two\n"])
def test_of_a_version_that_is_not_stored_any_more_the_facts_are_left(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, lost: bytes
) -> None:
    bench.put("a", b"one\n")
    first = write(bench, WriteText("two\n"))
    read = bench.store.read_blob

    def read_what_is_left(sha256: str) -> bytes:
        if sha256 == sha256_hex(lost):
            raise NotFound("These bytes were cleaned up.")
        return read(sha256)

    monkeypatch.setattr(bench.store, "read_blob", read_what_is_left)

    again = write(bench, WriteText("two\n"))

    assert (again.replayed, again.change_id) == (True, first.change_id)
    assert sides(again) == ((None, b"two\n") if lost == b"one\n" else (b"one\n", None))
    assert again.files[0].before_sha256 == first.files[0].before_sha256


def test_the_text_of_the_person_who_was_asked_is_the_answer_again(bench: Bench) -> None:
    bench.put("a", b"one\n")

    def write_other(request: PermissionRequest) -> Approval:
        return Approval(allowed=True, contents={request.files[0].path: "by the person\n"})

    permission = Permission("default", approver=write_other)
    proposal = Proposal(path="a", edit=WriteText("two\n"), proof=Exact())

    receipts = [bench.workspace.write(proposal, call=ASKED, permission=permission) for _ in range(2)]

    assert [sides(one) for one in receipts] == [(b"one\n", b"by the person\n")] * 2
    assert [one.replayed for one in receipts] == [False, True]
    assert receipts[0].change_id == receipts[1].change_id
