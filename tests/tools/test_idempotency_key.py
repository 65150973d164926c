"""A call that is made again with its idempotency key: made once, answered twice."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from front.mcp.client import StdioClient, surehold
from spec.marks import requirement
from surehold.app import Settings, open_workspace
from surehold.errors import InvalidArgument
from surehold.library.families import list_tools
from surehold.library.workspace import AgentWorkspace
from surehold.stores.base import LedgerQuery

Arguments = dict[str, Any]
TEXT = "one\ntwo\nthree\n"
NOTEBOOK = '{"cells": [{"cell_type": "code", "id": "c1", "metadata": {}, "outputs": [], "source": ["x = 1"], "execution_count": null}], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[AgentWorkspace]:
    root = tmp_path / "w"
    root.mkdir()
    (root / "a.txt").write_text(TEXT)
    (root / "n.ipynb").write_text(NOTEBOOK)
    with open_workspace(root, settings=Settings(state_dir=tmp_path / "state")) as workspace:
        yield workspace


def digest(workspace: AgentWorkspace, name: str) -> str:
    return hashlib.sha256((Path(workspace.roots[0]) / name).read_bytes()).hexdigest()


def anchor(workspace: AgentWorkspace, number: int) -> str:
    rows = workspace.session().answer("read_file", {"path": "a.txt", "hashes": True}).text.splitlines()
    return next(row.partition("|")[0].rstrip("!~") for row in rows if row.startswith(f"{number}#"))


def full(workspace: AgentWorkspace, name: str) -> str:
    return str(Path(workspace.roots[0]) / name)


CALLS: dict[str, Callable[[AgentWorkspace], Arguments]] = {
    "create_file": lambda _: {"path": "new.txt", "content": "new\n"},
    "write_file": lambda w: {"path": "a.txt", "content": "other\n", "expectedSha256": digest(w, "a.txt")},
    "edit_file": lambda w: {
        "path": "a.txt",
        "edits": [{"oldText": "two", "newText": "TWO"}],
        "expectedSha256": digest(w, "a.txt"),
    },
    "edit": lambda w: {"path": "a.txt", "operations": [{"op": "replace_line", "hash": anchor(w, 2), "content": "TWO"}]},
    "move_file": lambda w: {"path": "a.txt", "toPath": "b.txt", "expectedSha256": digest(w, "a.txt")},
    "delete_file": lambda w: {"path": "a.txt", "expectedSha256": digest(w, "a.txt")},
    "apply_patch": lambda _: {
        "patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n-two\n+TWO\n*** Add File: c.txt\n+c\n*** End Patch\n"
    },
    "Edit": lambda w: {"file_path": full(w, "a.txt"), "old_string": "two", "new_string": "TWO"},
    "Write": lambda w: {"file_path": full(w, "a.txt"), "content": "other\n"},
    "NotebookEdit": lambda w: {"notebook_path": full(w, "n.ipynb"), "cell_id": "c1", "new_source": "x = 2"},
    "multi_edit_text_file": lambda w: {"path": full(w, "a.txt"), "edits": [{"old_string": "two", "new_string": "TWO"}]},
    "write_text_file": lambda w: {"path": full(w, "new.txt"), "content": "new\n"},
    "edit_text_file": lambda w: {"path": full(w, "a.txt"), "old_string": "two", "new_string": "TWO"},
    "restore_file": lambda w: {"trashId": w.store.list_trash()[0].id},
}


def make_ready(workspace: AgentWorkspace, tool: str) -> Any:
    """Return a session that has read what the tool demands to have been read."""
    session = workspace.session(agent="ada", id="one")
    if tool in {"Edit", "Write", "NotebookEdit"}:
        name = "n.ipynb" if tool == "NotebookEdit" else "a.txt"
        session.answer("Read", {"file_path": full(workspace, name)})
    if tool == "restore_file":
        session.delete_file("a.txt", expected_sha256=digest(workspace, "a.txt"))
    return session


def changes(workspace: AgentWorkspace) -> set[str]:
    return {entry.change_id for entry in workspace.store.list_entries(LedgerQuery(limit=100)) if entry.ok}


@requirement("fleet:state:key")
@pytest.mark.parametrize("tool", CALLS)
def test_a_call_that_is_made_again_with_its_key_is_made_once(workspace: AgentWorkspace, tool: str) -> None:
    session = make_ready(workspace, tool)
    before = changes(workspace)
    arguments = CALLS[tool](workspace)

    first = session.answer(tool, {**arguments, "idempotencyKey": "the-key"})
    again = session.answer(tool, {**arguments, "idempotency_key": "the-key"})

    assert first.ok, first.text
    assert again.ok, again.text
    (change_id,) = changes(workspace) - before
    said = [str(one.data) + one.text for one in (first, again)]
    assert all(change_id in one for one in said)
    assert ["first answer" in one for one in said] == [False, True]
    assert not any("Unknown argument" in one for one in said)


def test_every_tool_that_changes_files_takes_a_key() -> None:
    modifying = {tool.name for tool in list_tools("all") if not tool.hints.read_only}
    assert modifying == set(CALLS)


@requirement("fleet:state:key")
def test_a_key_of_another_call_is_refused(workspace: AgentWorkspace) -> None:
    session = workspace.session()
    made = session.create_file("b.txt", "b\n", idempotency_key="k")

    for other in (
        lambda: session.create_file("c.txt", "b\n", idempotency_key="k"),
        lambda: session.create_file("b.txt", "another\n", idempotency_key="k"),
        lambda: session.write_file("b.txt", "b\n", expected_sha256=made.sha256, idempotency_key="k"),
    ):
        with pytest.raises(InvalidArgument) as refused:
            other()
        assert refused.value.reason == "key_of_another_call"
        assert refused.value.details["change_id"] == made.change_id

    assert (Path(workspace.roots[0]) / "b.txt").read_text() == "b\n"


@pytest.mark.parametrize("key", [7, "x" * 201])
def test_a_key_that_is_not_one_is_refused(workspace: AgentWorkspace, key: object) -> None:
    answer = workspace.session().answer("create_file", {"path": "b.txt", "content": "", "idempotencyKey": key})

    assert answer.error is not None
    assert answer.error.reason == "bad_idempotency_key"


def test_a_call_of_several_changes_takes_no_key(workspace: AgentWorkspace) -> None:
    patch = "*** Begin Patch\n*** Add File: b.txt\n+b\n*** End Patch\n"
    arguments = {"patch": patch, "atomic": False, "idempotencyKey": "k"}

    answer = workspace.session().answer("apply_patch", arguments)

    assert answer.error is not None
    assert answer.error.reason == "several_changes"


@requirement("fleet:state:key")
def test_a_person_is_not_asked_again_for_a_call_that_was_made(workspace: AgentWorkspace) -> None:
    asked = list[object]()
    session = workspace.session(mode="default", approver=lambda request: bool(asked.append(request) or True))

    first = session.create_file("b.txt", "b\n", idempotency_key="k")
    again = session.create_file("b.txt", "b\n", idempotency_key="k")

    assert len(asked) == 1
    assert again.change_id == first.change_id


@requirement("fleet:state:key")
def test_a_client_names_the_key_in_the_metadata_of_its_request(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    call = {"name": "create_file", "arguments": {"path": "b.txt", "content": "b\n"}}
    meta = {"surehold/idempotency_key": "k"}
    with StdioClient(surehold("mcp", str(tmp_path / "w"), "--state-dir", str(tmp_path / "state"))) as client:
        first, again = (client.request("tools/call", {**call, "_meta": meta}) for _ in range(2))

    ids = {one["structuredContent"]["data"]["changeId"] for one in (first, again)}
    assert len(ids) == 1
    assert again["structuredContent"]["data"]["warnings"]
