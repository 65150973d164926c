"""Arguments as callers spell them who know another family: what was asked for never happens only because of a `_`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.library.families import tool_named
from surehold.library.session import AgentSession

OTHER = "0" * 64


@pytest.fixture
def session(tmp_path: Path) -> Iterator[AgentSession]:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_bytes(b"one\ntwo\n")
    settings = Settings(state_dir=tmp_path / "state", durability="none")
    with open_workspace(root, settings=settings) as workspace:
        session = workspace.session(agent="ada")
        session.answer("Read", {"file_path": "a.txt"})
        yield session


def files_of(session: AgentSession) -> dict[str, bytes]:
    root = Path(session.workspace.roots[0])
    return {path.name: path.read_bytes() for path in root.iterdir()}


def calls(session: AgentSession) -> dict[str, dict[str, Any]]:
    """Return a call of every tool that changes something, each of which would be made."""
    path = str(Path(session.workspace.roots[0]) / "a.txt")
    sha256 = session.answer("read_file", {"path": "a.txt"}).data["data"]["sha256"]
    edit, quoted = {"op": "insert_after", "hash": "EOF", "content": "x"}, {"old_string": "one", "new_string": "x"}
    return {
        "edit": {"path": "a.txt", "operations": [edit]},
        "create_file": {"path": "b.txt", "content": "x"},
        "write_file": {"path": "a.txt", "content": "x", "expectedSha256": sha256},
        "edit_file": {"path": "a.txt", "edits": [{"oldText": "one", "newText": "x"}], "expectedSha256": sha256},
        "delete_file": {"path": "a.txt", "expectedSha256": sha256},
        "move_file": {"fromPath": "a.txt", "toPath": "b.txt", "expectedSha256": sha256},
        "apply_patch": {"patch": "*** Begin Patch\n*** Add File: b.txt\n+x\n*** End Patch\n"},
        "multi_edit_text_file": {"path": path, "edits": [quoted]},
        "edit_text_file": {"path": path, **quoted},
        "write_text_file": {"path": path.replace("a.txt", "b.txt"), "content": "x"},
        "Edit": {"file_path": path, **quoted},
        "Write": {"file_path": path, "content": "x"},
    }


CHANGING = [
    "edit",
    "create_file",
    "write_file",
    "edit_file",
    "delete_file",
    "move_file",
    "apply_patch",
    "multi_edit_text_file",
    "edit_text_file",
    "write_text_file",
    "Edit",
    "Write",
]


@requirement("engine:tool:other_spelling", "engine:write:dry_run")
@pytest.mark.parametrize("name", ["dry_run", "dryRun", "dry-run"])
@pytest.mark.parametrize("tool", CHANGING)
def test_a_dry_run_is_one_however_it_is_spelled(session: AgentSession, tool: str, name: str) -> None:
    answer = session.answer(tool, {**calls(session)[tool], name: True})

    assert answer.ok, answer.text
    assert "ry run, nothing was written" in answer.text
    assert answer.warnings == ()
    assert files_of(session) == {"a.txt": b"one\ntwo\n"}
    assert session.answer(tool, calls(session)[tool]).ok
    assert files_of(session) != {"a.txt": b"one\ntwo\n"}


@requirement("engine:tool:other_spelling")
@pytest.mark.parametrize("name", ["expectedSha256", "expected_sha256"])
@pytest.mark.parametrize("tool", [tool for tool in CHANGING if tool not in ("create_file", "apply_patch")])
def test_a_sha256_is_compared_however_it_is_spelled(session: AgentSession, tool: str, name: str) -> None:
    call = calls(session)[tool]
    call.pop("expectedSha256", None)
    if tool == "write_text_file":
        call["path"] = calls(session)["edit_text_file"]["path"]

    answer = session.answer(tool, {**call, name: OTHER})

    assert not answer.ok
    assert files_of(session) == {"a.txt": b"one\ntwo\n"}


@requirement("engine:tool:other_spelling")
def test_the_own_name_wins_over_another_spelling(session: AgentSession) -> None:
    answer = session.answer("edit", {**calls(session)["edit"], "dry_run": True, "dryRun": False})

    assert answer.warnings == ("Unknown argument `dryRun` was ignored.",)
    assert files_of(session) == {"a.txt": b"one\ntwo\n"}


@requirement("engine:tool:other_spelling")
def test_short_switches_keep_their_case(session: AgentSession) -> None:
    answer = session.answer("Grep", {"pattern": "one", "-a": 1})

    assert answer.warnings == ("Unknown argument `-a` was ignored.",)


@requirement("engine:tool:null")
@pytest.mark.parametrize("tool", [*CHANGING, "read_file", "list_directory", "search_files", "glob", "Read", "Grep"])
def test_null_for_an_argument_with_a_default_is_as_if_it_was_not_sent(session: AgentSession, tool: str) -> None:
    needed: dict[str, dict[str, Any]] = {
        **calls(session),
        "read_file": {"path": "a.txt"},
        "list_directory": {},
        "search_files": {"query": "one"},
        "glob": {"pattern": "*"},
        "Read": {"file_path": "a.txt"},
        "Grep": {"pattern": "one"},
    }
    nothing = dict.fromkeys(tool_named(tool).input_schema["properties"])

    answer = session.answer(tool, {**nothing, **needed[tool]})

    assert answer.ok, answer.text


@requirement("engine:tool:null")
def test_null_inside_an_edit_is_as_if_it_was_not_sent(session: AgentSession) -> None:
    call = calls(session)["edit_file"]
    call["edits"][0] |= {"replaceAll": None, "expectedOccurrences": None}

    assert session.answer("edit_file", call).ok
    assert not session.answer("edit_file", {**call, "path": None}).ok
    assert files_of(session) == {"a.txt": b"x\ntwo\n"}


@requirement("multi_edit:result:reason")
@pytest.mark.parametrize("tool", CHANGING)
def test_the_reason_reaches_the_ledger_from_every_tool(session: AgentSession, tool: str) -> None:
    assert session.answer(tool, {**calls(session)[tool], "reason": f"because of {tool}"}).ok

    newest = session.workspace.history.log()[0]
    assert newest.call.reason == f"because of {tool}"
