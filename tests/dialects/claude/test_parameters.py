"""The arguments of the tools, as a server lists them and as it takes them."""

from typing import Any

import pytest

from dialects.claude.desk import Desk, numbered
from spec.marks import requirement

Row = dict[str, Any]

TEXT: Row = {"type": "string"}
WHOLE: Row = {"type": "integer"}
YES_NO: Row = {"type": "boolean"}
CONTRACT: dict[str, tuple[set[str], dict[str, Row]]] = {
    "Read": (
        {"file_path"},
        {"file_path": TEXT, "offset": {**WHOLE, "default": 1}, "limit": {**WHOLE, "default": 2000}, "pages": TEXT},
    ),
    "Write": ({"file_path", "content"}, {"file_path": TEXT, "content": TEXT}),
    "Edit": (
        {"file_path", "old_string", "new_string"},
        {"file_path": TEXT, "old_string": TEXT, "new_string": TEXT, "replace_all": YES_NO},
    ),
    "Glob": ({"pattern"}, {"pattern": TEXT, "path": TEXT}),
    "Grep": (
        {"pattern"},
        {
            "pattern": TEXT,
            "path": TEXT,
            "glob": TEXT,
            "output_mode": {
                **TEXT,
                "default": "files_with_matches",
                "enum": ["files_with_matches", "content", "count"],
            },
            "-i": YES_NO,
            "-n": {**YES_NO, "default": True},
            "-A": {**WHOLE, "minimum": 0, "maximum": 100},
            "-B": {**WHOLE, "minimum": 0, "maximum": 100},
            "-C": {**WHOLE, "minimum": 0, "maximum": 100},
            "context": {**WHOLE, "minimum": 0, "maximum": 100},
            "type": TEXT,
            "head_limit": {**WHOLE, "default": 250, "minimum": 0},
            "offset": {**WHOLE, "minimum": 0},
            "multiline": YES_NO,
        },
    ),
    "NotebookEdit": (
        {"notebook_path"},
        {
            "notebook_path": TEXT,
            "new_source": TEXT,
            "edit_mode": {**TEXT, "default": "replace", "enum": ["replace", "insert", "delete"]},
            "cell_id": TEXT,
            "cell_type": {**TEXT, "enum": ["code", "markdown", "raw"]},
        },
    ),
}
ADDED = {
    "Read": {"column", "encoding", "sha256"},
    "Write": {"expected_sha256", "dry_run", "reason"},
    "Edit": {"expected_sha256", "dry_run", "reason"},
    "Glob": {"include_ignored", "include_hidden", "limit", "offset"},
    "Grep": {"include_ignored", "include_hidden"},
    "NotebookEdit": {"position", "expected_sha256", "dry_run", "reason"},
}


@requirement("claude:parameters:names")
@pytest.mark.parametrize("name", CONTRACT)
def test_a_tool_takes_what_the_contract_names_and_only_that_is_required(desk: Desk, name: str) -> None:
    listed = {tool["name"]: tool["inputSchema"] for tool in desk.place.client.request("tools/list")["tools"]}[name]
    required, rows = CONTRACT[name]
    found = {
        key: {word: row[word] for word in row if word != "description"} for key, row in listed["properties"].items()
    }

    assert set(listed["required"]) == required
    assert {key: found.get(key) for key in rows} == rows
    assert found.keys() - rows.keys() == ADDED[name]


@requirement("claude:parameters:names")
def test_what_a_schema_does_not_say_is_no_or_nothing_by_default(desk: Desk) -> None:
    desk.put("file.txt", numbered(300) + "line 1 again\nLINE 1\n")
    desk.read("file.txt")
    found = desk.call("Grep", pattern="^line", path=desk.path("file.txt"), output_mode="content").data

    assert desk.edit("file.txt", "line 1\n", "one\n").data["replaceAll"] is False
    assert desk.edit("file.txt", "line 2", "two").kind == "not_unique"
    assert (found["numLines"], found["totalLines"]) == (250, 301)
    assert found["content"].splitlines()[0].endswith(":1:line 1")
