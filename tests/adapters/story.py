"""What a scripted model does, whichever framework runs it: each step is a tool call, and gets the text of its answer."""

import re
from collections.abc import Generator
from typing import Any

from adapters.project import Project

ToolCall = tuple[str, dict[str, Any]]
Story = Generator[ToolCall, str, None]

BEFORE = {"notes.txt": b"one\r\ntwo\r\n", "old.txt": b"old\n", "unwanted.txt": b"unwanted\n"}
OUTSIDE = b"one\r\nTWO\r\nof another program\r\n"
AFTER = {"made/new.txt": b"new\n", "notes.txt": b"one\r\n2\r\nof another program\r\n", "renamed.txt": b"old\n"}


def begin(project: Project) -> None:
    for path, data in BEFORE.items():
        project.put(path, data)


def tell_story(project: Project, *, shell: bool = False) -> Story:
    """Read, edit, be refused for what changed outside, try again; create, delete, rename; run a command."""
    read = yield "read_file", {"path": "notes.txt"}
    assert "two" in read
    seen = _sha256_in(read)
    edited = yield "edit_file", _edit("two", "TWO", seen)
    assert project.files()["notes.txt"] == b"one\r\nTWO\r\n", edited
    project.put("notes.txt", OUTSIDE)
    refused = yield "edit_file", _edit("TWO", "2", seen)
    assert refused.removeprefix("Error: ").startswith("Nothing was written."), refused
    assert project.files()["notes.txt"] == OUTSIDE
    again = yield "edit_file", _edit("TWO", "2", project.sha256("notes.txt"))
    assert project.files()["notes.txt"] == AFTER["notes.txt"], again
    yield "create_file", {"path": "made/new.txt", "content": "new\n"}
    yield "delete_file", {"path": "unwanted.txt", "expectedSha256": project.sha256("unwanted.txt")}
    moved = {"fromPath": "old.txt", "toPath": "renamed.txt", "expectedSha256": project.sha256("old.txt")}
    yield "move_file", moved
    if shell:
        printed = yield "run_command", {"command": "echo said; rm renamed.txt; echo more > shell.txt"}
        assert "said" in printed
        assert "exit code 0" in printed


def check_end(project: Project, *, shell: bool = False) -> None:
    """Look at the files, undo all that the session did, and look again."""
    after = {path: data for path, data in AFTER.items() if not (shell and path == "renamed.txt")}
    assert project.files() == {**after, **({"shell.txt": b"more\n"} if shell else {})}
    project.undo_all()
    outside = {"notes.txt": b"one\r\ntwo\r\nof another program\r\n"}
    assert project.files() == {**BEFORE, **outside}  # what another program wrote stays


def _edit(old: str, new: str, seen: str) -> dict[str, Any]:
    return {"path": "notes.txt", "edits": [{"oldText": old, "newText": new}], "expectedSha256": seen}


def _sha256_in(text: str) -> str:
    found = re.search(r"\b[0-9a-f]{64}\b", text)
    assert found is not None, text
    return found[0]
