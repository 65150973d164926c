"""Tool calls as models' APIs send them, and the messages that answer them."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from spec.marks import requirement
from surehold import Settings, dispatch, open_workspace, tools_for
from surehold.errors import InvalidArgument
from surehold.library.session import AgentSession

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CREATE = {"path": "a.txt", "content": "one\n"}


@pytest.fixture
def session(tmp_path: Path) -> AgentSession:
    (tmp_path / "root").mkdir()
    settings = Settings(state_dir=tmp_path / "state", durability="none")
    return open_workspace(tmp_path / "root", settings=settings).session(agent="ada")


def chat(name: str, arguments: object) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}


def responses(name: str, arguments: object) -> dict[str, Any]:
    return {"type": "function_call", "call_id": "1", "name": name, "arguments": arguments}


def anthropic(name: str, arguments: object) -> dict[str, Any]:
    return {"type": "tool_use", "id": "1", "name": name, "input": arguments}


@requirement("front:library:dispatch")
def test_each_api_gets_its_own_message(session: AgentSession) -> None:
    made = dispatch(session, chat("create_file", json.dumps(CREATE)))
    again = dispatch(session, anthropic("create_file", CREATE))
    read = dispatch(session, responses("read_file", '{"path": "a.txt"}'))
    listed = dispatch(session, {"name": "list_directory", "arguments": {}})
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_directory"}}

    assert (made["role"], made["tool_call_id"], "a.txt" in made["content"]) == ("tool", "1", True)
    assert (again["type"], again["tool_use_id"], again["is_error"]) == ("tool_result", "1", True)
    assert "already_exists" in again["content"][0]["text"]
    assert (read["type"], read["call_id"], "one" in read["output"]) == ("function_call_output", "1", True)
    assert "a.txt" in listed["content"][0]["text"]
    assert dispatch(session, request) == listed
    assert (Path(session.workspace.roots[0]) / "a.txt").read_bytes() == b"one\n"


@requirement("front:library:dispatch")
@pytest.mark.parametrize("make", [chat, responses, anthropic])
@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("create_file", '{"path": "a', "not JSON"),
        ("create_file", "[1]", "one JSON object"),
        ("no_such_tool", {}, "create_file"),
        ("create_file", {"path": "a.txt"}, "content"),
    ],
)
def test_a_bad_call_is_answered_and_changes_nothing(
    session: AgentSession, make: Any, name: str, arguments: object, words: str
) -> None:
    said = str(dispatch(session, make(name, arguments)))

    assert words in said
    assert "Nothing was written" in said
    assert list(Path(session.workspace.roots[0]).iterdir()) == []


def test_an_object_of_the_apis_package_is_taken(session: AgentSession) -> None:
    class Call:
        def model_dump(self, mode: str) -> dict[str, Any]:
            return {**chat("create_file", json.dumps(CREATE)), "mode": mode}

    assert dispatch(session, Call())["role"] == "tool"
    for other in (42, {"type": "message"}, {}):
        with pytest.raises(InvalidArgument, match="not a tool call"):
            dispatch(session, other)


def test_an_image_is_shown_where_the_api_can_and_named_where_it_cannot(session: AgentSession) -> None:
    (Path(session.workspace.roots[0]) / "p.png").write_bytes(PNG)
    arguments = {"file_path": "p.png"}

    shown = dispatch(session, anthropic("Read", arguments), tools="claude")
    assert [block["type"] for block in shown["content"]][-1] == "image"
    assert [one["type"] for one in dispatch(session, responses("Read", arguments), "claude")["output"]][
        -1
    ] == "input_image"
    assert "not shown here" in dispatch(session, chat("Read", json.dumps(arguments)), "claude")["content"]


@requirement("front:library:dispatch")
def test_only_the_tools_that_were_offered_are_called(session: AgentSession) -> None:
    session.create_file("a.txt", "one\n")
    not_offered = dispatch(session, anthropic("Read", {"file_path": "a.txt"}))
    offered = dispatch(session, anthropic("Read", {"file_path": "a.txt"}), tools="claude")
    unknown = dispatch(session, anthropic("read_file", {"path": "a.txt"}), tools="claude")["content"][0]["text"]

    assert not_offered["is_error"]
    assert "one" not in str(not_offered)
    assert "one" in str(offered)
    assert "No tool is called `read_file`.\nChoose from Edit, Glob, Grep, NotebookEdit, Read, Write." in unknown
    with pytest.raises(InvalidArgument, match="No tool family is called `nothing`"):
        dispatch(session, anthropic("Read", {}), tools="nothing")


@requirement("front:library:dispatch")
@pytest.mark.parametrize("make", [chat, responses, anthropic])
def test_arguments_that_are_nested_too_deeply_are_answered(session: AgentSession, make: Any) -> None:
    assert "nested too deeply" in str(dispatch(session, make("create_file", "[" * 100_000)))


def test_the_format_is_one_of_four_and_an_earlier_name_warns() -> None:
    with pytest.warns(DeprecationWarning, match="tools_for\\('openai-responses'\\)"):
        assert tools_for("openai") == tools_for("openai-responses")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="No API is called `yaml`") as refused:
        tools_for("yaml")  # type: ignore[arg-type]
    assert refused.value.action == "Choose one of openai-chat, openai-responses, anthropic, mcp."
