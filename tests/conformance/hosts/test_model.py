"""The scripted model and its scripts work without any host: `make conformance` runs them with real ones."""

import json
import urllib.request
from collections.abc import Callable, Generator
from pathlib import Path

import anyio
import pytest
from mcp import Client

from conformance.hosts.model import Call, Model, Script, Shown, plain, serve
from conformance.hosts.scripts import AFTER, LONG_FILES, arrival, judge_life, live, read_whole, spans
from conformance.hosts.wires import Json, wire_of
from conformance.lifecycle import BEFORE, NAME
from conformance.python_client import child, connection
from conformance.servers import Place, new_place

_CALL = Call(tool="read_file", arguments={"path": "a"})


def _script() -> Script:
    yield _CALL
    return "done"


def _vendors() -> Generator[tuple[str, Json, Json]]:
    """Yield, for each API, its path, a first request, and one that carries the result of the call."""
    tools: Json = {"tools": [{"name": "read_file"}, {"name": "mcp__surehold__read_file"}]}
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "shown"}]}
    yield "/v1/messages", tools, {**tools, "messages": [{"role": "user", "content": [result]}]}
    tools = {
        "tools": [{"name": "read_file"}, {"type": "namespace", "name": "surehold", "tools": [{"name": "read_file"}]}]
    }
    result = {"type": "function_call_output", "call_id": "call_1", "output": "shown"}
    yield "/v1/responses", tools, {**tools, "input": [result]}
    tools = {"tools": [{"function": {"name": "read_file"}}, {"function": {"name": "surehold-read_file"}}]}
    yield (
        "/v1/chat/completions",
        tools,
        {**tools, "messages": [{"role": "tool", "tool_call_id": "call_1", "content": "shown"}]},
    )
    tools = {"tools": [{"functionDeclarations": [{"name": "read_file"}, {"name": "mcp_surehold_read_file"}]}]}
    part = {"functionResponse": {"name": "mcp_surehold_read_file", "response": "shown"}}
    yield "/models/any:generateContent", tools, {**tools, "contents": [{"parts": [part]}]}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("path", "first", "second"), list(_vendors()))
def test_the_scripted_model_calls_our_tool_and_records_what_it_is_shown(
    path: str, first: Json, second: Json, stream: bool
) -> None:
    if stream and "generate" in path:
        path = path.replace("generate", "streamGenerate")
    model = Model(script=_script())
    with serve(model) as url:
        asked = _ask(f"{url}{path}", {**first, "stream": stream})
        assert "surehold" in asked
        assert _ask(f"{url}{path}", {**first, "stream": stream}) == asked, "a repeated request gets the same answer"
        assert "done" in _ask(f"{url}{path}", {**second, "stream": stream})
    assert model.shown == [Shown(call=_CALL, text="shown")]


def test_a_request_for_another_address_is_refused_and_remembered() -> None:
    model = Model(script=_script())
    with serve(model) as url:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": url}))
        with pytest.raises(OSError, match="403"):
            opener.open("http://elsewhere.test/")
    assert model.elsewhere == {"http://elsewhere.test/"}


_WRAPPERS: dict[str, Callable[[str], str]] = {
    "text": lambda text: f"Output:\n{text}",
    "json": lambda text: json.dumps({"content": [{"type": "text", "text": text}]}),
    "json inside json": lambda text: json.dumps({"output": json.dumps([{"text": text}])}),
    "python": lambda text: f"meta=None content=[TextContent(type='text', text={text!r})]",
}


@pytest.mark.parametrize("wrap", _WRAPPERS.values(), ids=_WRAPPERS)
def test_pages_are_joined_out_of_whatever_a_host_wraps_them_in(wrap: Callable[[str], str]) -> None:
    lines = LONG_FILES["emoji.txt"][:9]
    head = "emoji.txt · lines 1-4 of 9 · goes on: startLine=5\n"
    pages = [wrap(head + "\n".join(lines[:4]) + "\n"), wrap("\n".join(lines[4:]))]
    assert arrival("emoji.txt", lines, _pages(pages)).whole


def test_lines_that_did_not_arrive_whole_and_in_order_are_named() -> None:
    lines = LONG_FILES["cjk.txt"][:9]
    cut = "\n".join([*lines[:2], f"{lines[2][:9]}…{lines[5][9:]}", *lines[6:]])
    found = arrival("cjk.txt", lines, _pages([cut]))
    assert (found.missing, found.in_order, found.whole) == ([3, 4, 5, 6], True, False)
    assert str(found).endswith("bytes; missing: 3-6")
    swapped = arrival("cjk.txt", lines, _pages(["\n".join(lines[5:]), "\n".join(lines[:5])]))
    assert (swapped.missing, swapped.in_order, swapped.whole) == ([], False, False)
    assert spans([1, 2, 3, 7, 9, 10]) == "1-3, 7, 9-10"


def test_the_scripts_follow_what_the_server_says_as_far_as_they_should(tmp_path: Path) -> None:
    place = new_place(tmp_path / "place")
    path = place.root / NAME
    path.write_text(BEFORE, encoding="utf-8")
    for name, lines in LONG_FILES.items():
        (place.root / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    life = anyio.run(_follow, place, live(path))
    assert judge_life(life, path.read_text(encoding="utf-8")) == dict.fromkeys(judge_life(life, AFTER), True)
    pages = anyio.run(_follow, place, read_whole(LONG_FILES))
    assert [name for name, lines in LONG_FILES.items() if not arrival(name, lines, pages).whole] == []


async def _follow(place: Place, script: Script) -> list[Shown]:
    """Make the calls of a script with the official client, and show the texts of the results."""
    shown = list[Shown]()
    with (place.folder / "stderr.log").open("w", encoding="utf-8") as log:
        async with Client(child(place, log), mode="legacy", read_timeout_seconds=60) as client:
            call = connection(client, "legacy").call
            asked: Call | None = next(script)
            while asked:
                reply = await call(asked.tool, dict(asked.arguments))
                shown.append(Shown(call=asked, text=reply.text))
                asked = _send(script, shown[-1])
    return shown


def _send(script: Script, shown: Shown) -> Call | None:
    try:
        return script.send(shown)
    except StopIteration:
        return None


def _pages(texts: list[str]) -> list[Shown]:
    """Return texts as pages of whatever file is asked about."""
    return [
        Shown(call=Call(tool="read_file", arguments={"path": name}), text=text) for text in texts for name in LONG_FILES
    ]


def _ask(url: str, body: Json) -> str:
    request = urllib.request.Request(url, data=json.dumps(body).encode(), headers={"content-type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as response:
        return str(response.read().decode())


def test_a_subagent_is_answered_by_a_model_of_its_own() -> None:
    inner = Model(script=_script(), find=plain)
    model = Model(script=_script(), find=plain, others={"the-word": inner})
    tools: Json = {"tools": [{"name": "read_file"}]}
    wire = wire_of("/v1/messages")
    assert wire is not None

    model.answer(wire, {**tools, "messages": [{"role": "user", "content": "Do the-word."}]})
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "inside"}]}
    messages = [{"role": "user", "content": "Do the-word."}, {"role": "user", "content": [result]}]
    assert model.answer(wire, {**tools, "messages": messages}) == "done"

    assert [one.text for one in inner.shown] == ["inside"]
    assert (model.shown, model.words) == ([], None)
