"""What reaches the model, and what reaches a program."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from front.mcp.client import Json, RpcFailed, StdioClient
from front.mcp.site import Site, data_of, sha_of, text_of
from spec.marks import requirement
from surehold.front.mcp.adapter import Adapter
from surehold.front.mcp.options import ServerOptions
from surehold.front.mcp.sessions import Caller, session_id
from surehold.library.families import tools_of


@pytest.fixture(scope="module")
def odd(shared: Site) -> Iterator[StdioClient]:
    with shared.start_odd() as client:
        yield client


@pytest.fixture(scope="module")
def schemas(server: StdioClient) -> dict[str, Json]:
    return {tool["name"]: tool for tool in server.request("tools/list")["tools"]}


def assert_fits(data: Json, schema: Json) -> None:
    Draft202012Validator.check_schema(schema)
    validator: Any = Draft202012Validator(schema)
    validator.validate(data)


@requirement("host:result:reading_is_text", "host:result:meta")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_file", {"path": "read.txt"}),
        ("list_directory", {"path": "."}),
        ("search_files", {"query": "needle"}),
        ("glob", {"pattern": "*.txt"}),
        ("read_file", {"path": "missing.txt"}),
        ("glob", {"pattern": "[", "root": "nowhere"}),
    ],
)
def test_a_tool_that_looks_answers_with_text_and_data_for_programs(
    shared: Site, server: StdioClient, tool: str, arguments: Json
) -> None:
    shared.put("read.txt", "a needle\n")
    result = server.call(tool, arguments)

    assert "structuredContent" not in result
    assert [block["type"] for block in result["content"]] == ["text"]
    assert data_of(result)["ok"] is not result["isError"]


@requirement("host:result:modifying_is_both", "host:result:meta")
def test_a_tool_that_changes_something_answers_twice_and_each_suffices(shared: Site, server: StdioClient) -> None:
    shared.put("both.txt", "one\n")
    edits = [{"oldText": "one", "newText": "two"}]
    result = server.call(
        "edit_file", {"path": "both.txt", "expectedSha256": sha_of(server, "both.txt"), "edits": edits}
    )
    structured = result["structuredContent"]

    assert "_meta" not in result
    for fact in (structured["data"]["afterSha256"], structured["data"]["changeId"], "+two"):
        assert fact in text_of(result)
        assert fact in json.dumps(structured)


CHANGES: dict[str, list[Json]] = {
    "create_file": [{"path": "there.txt", "content": "x"}, {"path": "../out", "content": "x"}, {}, {"path": 5}],
    "write_file": [{"path": "there.txt", "content": "x"}, {"path": "no", "content": "", "expectedSha256": "0" * 64}],
    "edit_file": [
        {"path": "there.txt", "edits": [{"oldText": "nope", "newText": "x"}], "expectedSha256": "0" * 64},
        {"path": "there.txt", "edits": [{"oldText": "t", "newText": "x"}], "expectedSha256": "SHA"},
        {"path": "there.txt", "edits": [{"oldText": "nope", "newText": "x"}], "expectedSha256": "SHA"},
        {"path": "there.txt", "edits": [{"oldText": "t", "surprise": 1}], "expectedSha256": "SHA"},
        {"path": "there.txt", "edits": "none"},
    ],
    "edit": [
        {"path": "there.txt", "operations": [{"op": "delete_line", "hash": "abcdef"}]},
        {"path": "there.txt", "operations": [{"op": "delete_line", "start_hash": "abcdef"}]},
        {"path": "missing.txt", "operations": [{"op": "delete_line", "hash": "abcdef"}]},
        {"path": "there.txt", "operations": "none"},
    ],
    "delete_file": [{"path": "missing.txt", "expectedSha256": "0" * 64}, {"path": "."}],
    "restore_file": [{"trashId": "nonsense"}, {}],
    "move_file": [{"fromPath": "there.txt", "toPath": "/etc/x", "expectedSha256": "SHA"}, {"fromPath": "x"}],
    "apply_patch": [{"patch": "nonsense"}, {"patch": "--- a/there.txt\n+++ b/there.txt\n@@ -1 +1 @@\n-no\n+x\n"}],
}


@requirement("host:schema:errors_fit", "front:mcp:error_planes")
@pytest.mark.parametrize(("tool", "number"), [(tool, n) for tool, cases in CHANGES.items() for n in range(len(cases))])
def test_every_refusal_is_a_result_that_fits_the_schema(
    shared: Site, server: StdioClient, schemas: dict[str, Json], tool: str, number: int
) -> None:
    shared.put("there.txt", "this, that, there\n")
    arguments = dict(CHANGES[tool][number])
    if arguments.get("expectedSha256") == "SHA":
        arguments["expectedSha256"] = sha_of(server, "there.txt")
    result = server.call(tool, arguments)

    assert result["isError"] is True, result
    assert_fits(result["structuredContent"], schemas[tool]["outputSchema"])
    structured = result["structuredContent"]
    if tool == "edit":
        assert all(structured[key] for key in ("error", "message", "suggested_action", "details"))
    else:
        assert all(structured["error"][key] for key in ("kind", "code", "message", "suggestedNextAction"))
    assert text_of(result).startswith("Nothing was written.")
    assert shared.get("there.txt") == b"this, that, there\n"


def test_every_changing_tool_has_refusals_here(schemas: dict[str, Json]) -> None:
    assert set(CHANGES) == {name for name, tool in schemas.items() if "outputSchema" in tool}


@requirement("host:schema:errors_fit")
def test_every_success_fits_the_schema(shared: Site, server: StdioClient, schemas: dict[str, Json]) -> None:
    def done(tool: str, **arguments: Any) -> Json:
        result = server.call(tool, arguments)
        assert result["isError"] is False, result
        assert_fits(result["structuredContent"], schemas[tool]["outputSchema"])
        return result["structuredContent"]["data"]

    sha = done("create_file", path="life/a.txt", content="one\n")["sha256"]
    sha = done("write_file", path="life/a.txt", content="two\n", expectedSha256=sha)["afterSha256"]
    edit = {"oldText": "two", "newText": "three"}
    sha = done("edit_file", path="life/a.txt", edits=[edit], expectedSha256=sha)["afterSha256"]
    sha = done("move_file", fromPath="life/a.txt", toPath="life/b.txt", expectedSha256=sha)["sha256"]
    trash = done("delete_file", path="life/b.txt", expectedSha256=sha)["trashId"]
    done("restore_file", trashId=trash)
    done("apply_patch", patch="*** Begin Patch\n*** Update File: life/b.txt\n@@\n-three\n+four\n*** End Patch\n")
    assert shared.get("life/b.txt") == b"four\n"


@requirement("front:mcp:error_planes")
@pytest.mark.parametrize("params", [{"name": "nonsense"}, {"name": "read_file", "arguments": [1]}, {}, {"name": 5}])
def test_a_request_that_makes_no_sense_is_a_protocol_error(server: StdioClient, params: Json) -> None:
    with pytest.raises(RpcFailed) as refused:
        server.request("tools/call", params)
    assert refused.value.code == -32602


@requirement("front:mcp:error_planes")
def test_wrong_arguments_are_a_result_that_names_them(server: StdioClient) -> None:
    result = server.call("read_file", {"startLine": "many"})

    assert result["isError"] is True
    assert "`path`" in text_of(result)
    assert data_of(result)["error"]["kind"] == "command_failed"


@requirement("host:arguments:unknown_top_level")
def test_an_unknown_argument_is_ignored_with_a_warning(shared: Site, server: StdioClient) -> None:
    shared.put("warn.txt", "one\n")
    result = server.call("read_file", {"path": "warn.txt", "wait_for_previous": True})

    assert result["isError"] is False
    assert "Unknown argument `wait_for_previous` was ignored." in text_of(result)
    assert data_of(result)["data"]["warnings"] == ["Unknown argument `wait_for_previous` was ignored."]


@requirement("outside:root:read")
def test_reads_below_a_root_that_was_replaced_say_so(site: Site) -> None:
    site.put("a.txt", "one\n")
    calls: dict[str, Json] = {
        "read_file": {"path": "a.txt"},
        "list_directory": {"path": "."},
        "search_files": {"query": "one"},
        "glob": {"pattern": "*"},
        "read_text_file": {"path": str(site.root / "a.txt")},
        "Read": {"file_path": str(site.root / "a.txt")},
        "Glob": {"pattern": "*"},
        "Grep": {"pattern": "one"},
    }
    with site.start("--tools", "all", "--meta") as server:
        before = [server.call(name, arguments) for name, arguments in calls.items()]
        site.root.rename(site.root.with_name("moved"))
        site.put("a.txt", "two\n")
        after = [server.call(name, arguments) for name, arguments in calls.items()]

    said = f"`{site.root}` is no longer the directory that was opened as the workspace"
    assert not any(said in json.dumps(answer) for answer in before)
    assert [name for name, answer in zip(calls, after, strict=True) if said not in text_of(answer)] == []
    assert [name for name, answer in zip(calls, after, strict=True) if said not in json.dumps(answer["_meta"])] == []


@requirement("host:text:escaped")
def test_control_and_bidi_characters_in_names_and_diffs_are_escaped_and_the_file_has_them(
    shared: Site, server: StdioClient
) -> None:
    name, content = "evil\x1b[2J\u202e.txt", "a\x1b[31m\u202eb\n"
    result = server.call("create_file", {"path": name, "content": content})
    listed = text_of(server.call("glob", {"pattern": "evil*"}))
    read = text_of(server.call("read_file", {"path": name}))

    for text in (text_of(result), listed, json.dumps(result["structuredContent"], ensure_ascii=False)):
        assert "\u202e" not in text
        assert "\x1b" not in text
    assert r"evil\x1b[2J\u202e.txt" in listed
    assert shared.get(name) == content.encode()
    assert content in read  # what is read is what is there


def read_whole(client: StdioClient, uri: str) -> str:
    """Read a resource in its parts, each of which names the next."""
    parts = list[str]()
    while True:
        text = client.request("resources/read", {"uri": uri})["contents"][0]["text"]
        named = re.fullmatch(r"\[goes on: the resource (\S+)\]", text.partition("\n")[0])
        if not named:
            return "".join([*parts, text])
        until = int(named[1].rpartition("=")[2]) - sum(map(len, parts))
        part = text.partition("\n")[2].rpartition("\n")[0]
        parts.append(part if len(part) == until else f"{part}\n")
        uri = named[1]


@requirement("host:budget:never_cut")
def test_an_answer_that_does_not_fit_is_kept_and_named(odd: StdioClient) -> None:
    whole = "0123456789\n" * 20_000
    text = text_of(odd.call("long_answer", {"characters": len(whole)}))
    uri = text[text.index("surehold://answer/") : -1]

    assert len(text) <= 40_000
    assert whole.startswith(text[: text.index("\n\n[")])
    assert read_whole(odd, uri) == whole


@requirement("host:budget:never_cut")
def test_structured_content_that_does_not_fit_is_kept_and_named(odd: StdioClient) -> None:
    result = odd.call("long_change", {"characters": 200_000})
    structured = result["structuredContent"]
    kept = read_whole(odd, structured["answerSavedAs"])

    assert len(json.dumps(structured)) <= 40_000
    assert structured["data"]["said"].startswith("x" * 1000)
    assert json.loads(kept)["data"]["said"] == "x" * 200_000
    assert data_of(result)["data"]["said"] == "x" * 200_000


@requirement("host:budget:page", "host:budget:by_client", "host:budget:never_cut")
@pytest.mark.parametrize(
    ("client", "options", "least", "most"),
    [
        ("claude-code", ServerOptions(meta=True), 35_000, 41_000),
        ("codex-mcp-client", ServerOptions(meta=True), 9_000, 12_000),
        ("claude-code", ServerOptions(max_chars=5000, meta=True), 4_000, 6_000),
        ("claude-code", ServerOptions(max_tokens=2000, meta=True), 6_000, 8_000),
    ],
)
def test_a_page_fits_its_host_and_the_next_one_goes_on(
    site: Site, client: str, options: ServerOptions, least: int, most: int
) -> None:
    rows = [f"line {number:06d} " + "x" * 60 for number in range(1, 1501)]
    site.put("long.txt", "\n".join(rows) + "\n")
    with site.open() as workspace:
        adapter = Adapter(workspace=workspace, tools=tools_of("files"), options=options)
        caller = Caller(client=client)
        first = adapter.call_tool("read_file", {"path": "long.txt"}, caller)
        facts = data_of(first)["data"]
        second = adapter.call_tool("read_file", {"path": "long.txt", "startLine": facts["nextLine"]}, caller)

    assert least <= len(text_of(first)) <= most
    assert f"startLine={facts['nextLine']}" in text_of(first)
    assert facts["content"].splitlines() == rows[: facts["endLine"]]
    assert data_of(second)["data"]["content"].startswith(rows[facts["nextLine"] - 1])


@requirement("host:budget:by_client")
def test_the_name_in_the_handshake_decides(site: Site) -> None:
    site.put("long.txt", "0123456789\n" * 4_000)
    with site.start("--max-tokens", "2900", client="codex-mcp-client") as client:
        text = text_of(client.call("read_file", {"path": "long.txt"}))

    assert 9_000 < len(text) <= 11_600


@requirement("host:budget:by_client", "history:config:tightens")
@pytest.mark.parametrize(("line", "most"), [("max-tokens = 99999999", 12_000), ("max-chars = 3000", 3_000)])
def test_a_file_of_the_workspace_only_lowers_what_a_host_is_shown(site: Site, line: str, most: int) -> None:
    site.put("long.txt", "0123456789\n" * 9_000)
    site.put("surehold.toml", f"{line}\n")
    with site.start(client="codex-mcp-client") as client:
        text = text_of(client.call("read_file", {"path": "long.txt"}))

    assert most * 0.7 < len(text) <= most


def make_deep_file(root: Path, name: str, text: str) -> str:
    """Put a file below so many directories that its path has about 3,600 bytes; return the path."""
    depth = 3_600 // len(name.encode()) - 2
    with ExitStack() as opened:
        directory = os.open(root, os.O_RDONLY)
        opened.callback(os.close, directory)
        for _ in range(depth):
            os.mkdir(name, dir_fd=directory)
            directory = os.open(name, os.O_RDONLY, dir_fd=directory)
            opened.callback(os.close, directory)
        file = os.open("f.txt", os.O_CREAT | os.O_WRONLY, dir_fd=directory)
        opened.callback(os.close, file)
        os.write(file, text.encode())
    return "/".join([name] * depth + ["f.txt"])


@requirement("host:budget:cut_unseen")
@pytest.mark.parametrize("client", ["@cline/core", "codex-mcp-client", "copilot-cli", "another"])
@pytest.mark.parametrize("name", ["n" * 200, "表" * 60, "\x01" * 200], ids=["plain", "wide", "escaped"])
def test_lines_that_are_cut_off_for_a_very_long_path_do_not_count_as_shown(site: Site, name: str, client: str) -> None:
    text = "".join(f"line number {number} {'x' * 60}\n" for number in range(1, 400))
    path = make_deep_file(site.root, name, text)
    calls: list[tuple[str, Json]] = [
        ("read_file", {"path": path}),
        ("read_file", {"path": path, "hashes": True}),
        ("Read", {"file_path": path}),
        ("read_text_file", {"path": f"{site.root}/{path}"}),
        ("search_files", {"query": "line number", "mode": "text"}),
        ("Grep", {"pattern": "line number", "output_mode": "content"}),
        ("edit", {"path": path, "operations": [{"op": "delete_line", "hash": "abcdef"}]}),
    ]
    with site.open() as workspace:
        adapter = Adapter(workspace=workspace, tools=tools_of("all"), options=ServerOptions())
        for number, (tool, arguments) in enumerate(calls):
            caller = Caller(client=client, connection=f"connection {number}")
            told = adapter.call_tool(tool, arguments, caller)["content"][0]["text"]
            seen = workspace.store.list_sightings(session_id(caller.connection), path)
            lines = [line for one in seen for first, last in one.spans for line in range(first, last + 1)]
            assert [line for line in lines if f"line number {line} " not in told] == [], tool
