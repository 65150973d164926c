"""The parts of the server, one by one and without a process."""

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from front.mcp.site import Site, data_of
from spec.marks import requirement
from surehold import Workspace
from surehold.front.hosts.table import budget_for
from surehold.front.mcp.adapter import Adapter
from surehold.front.mcp.json_rpc import RpcRequest, parse_line
from surehold.front.mcp.options import ServerOptions
from surehold.front.mcp.protocol import RpcError
from surehold.front.mcp.resources import ResourceWatcher, SavedAnswers, path_of, uri_of
from surehold.front.mcp.sdk.call_threads import CallThreads
from surehold.front.mcp.sessions import Caller
from surehold.front.mcp.tool_calls import cut_data_to_fit, cut_text_to_fit
from surehold.library.families import tools_of
from surehold.text.escape import ensure_utf8, escape_data, escape_lines, has_surrogates, without_surrogates
from surehold.text.measure import TextRoom
from surehold.tools.call import ProgressListener
from waiting import wait_until

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=50)
PLAIN_DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture
def workspace(site: Site) -> Iterator[Workspace]:
    with site.open() as opened:
        yield opened


@requirement("host:text:valid_utf8")
@given(PLAIN_DATA)
def test_whatever_goes_out_can_be_spelled_in_utf8(value: Any) -> None:
    for cleaned in (ensure_utf8(value), escape_data(value), without_surrogates(value)):
        json.dumps(cleaned, ensure_ascii=False).encode()
        assert not has_surrogates(cleaned)


@requirement("host:text:valid_utf8")
@given(st.text(max_size=200))
def test_what_utf8_can_spell_stays_as_it_is(text: str) -> None:
    assert ensure_utf8(text) == without_surrogates(text) == text


@requirement("host:text:escaped")
def test_text_for_models_has_no_steering_characters_but_line_ends_and_tabs() -> None:
    assert escape_lines("a\tb\r\nc\n\x1b[2J\u202e\x9b\udcff") == "a\tb\r\nc\n" + r"\x1b[2J\u202e\x9b\xff"
    assert escape_data({"diff": "+\x1b\u202e\n"}) == {"diff": "+\x1b\\u202e\n"}  # JSON escapes the rest itself


@pytest.mark.parametrize(
    ("escapes", "content"),
    [
        (r"\ud83d", "\ufffd"),
        (r"\ude00", "\ufffd"),
        (r"\ud83d\ude00", "😀"),
        (r"\uD83D\uDE00\uD83D", "😀\ufffd"),
        (r"\ud83d\ud83d\ude00", "\ufffd😀"),
        (r"\\ud83d", "\\ud83d"),
        (r"\\\ud83d", "\\\ufffd"),
        (r"\ud83dx", "\ufffdx"),
    ],
)
def test_halves_of_characters_are_mended_and_the_rest_is_left_alone(escapes: str, content: str) -> None:
    found = parse_line(b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":"%s"}}' % escapes.encode())

    assert isinstance(found, RpcRequest)
    assert (found.params or {})["x"] == content
    assert ((found.params or {}).get("_meta") == {"surehold/mended": True}) is ("\ufffd" in content)


@given(st.binary(max_size=200))
def test_no_line_can_break_the_reader(line: bytes) -> None:
    found = parse_line(line)
    assert not isinstance(found, tuple) or all(reply["error"]["code"] == -32600 for reply in found)


@requirement("host:budget:by_client")
def test_budgets_follow_the_name_of_the_client_and_what_was_set_by_hand() -> None:
    known = [
        (budget.answer, budget.unit) for budget in map(budget_for, ("claude-code", "Codex MCP Client", "@cline/core"))
    ]

    assert known == [(39_800, "characters"), (11_800, "bytes"), (7_800, "json")]
    assert budget_for("qwen-cli-mcp-client-surehold") == budget_for("qwen-cli-mcp-client-codex")
    assert budget_for("qwen-code") == budget_for("qwen-cli-mcp-client")
    assert budget_for("Cline") == budget_for("cline") == budget_for("@cline/core")
    assert budget_for("github-copilot-developer") == budget_for("copilot-cli") != budget_for("")
    assert budget_for("mcp-test-client") == budget_for("") == budget_for("my-claude-code")
    assert budget_for("").size_of("漢字") == 6
    assert (budget_for("codex", max_tokens=10).answer, budget_for("", max_chars=7).answer) == (40, 7)
    assert budget_for("", max_chars=7).size_of("漢字") == 2


@requirement("host:budget:never_cut")
@given(st.lists(st.text(max_size=80), max_size=80), st.integers(300, 2000))
def test_text_that_is_shortened_fits_and_can_be_had_in_full(rows: list[str], limit: int) -> None:
    answers, text = SavedAnswers(), "\n".join(rows)
    fitted = cut_text_to_fit(text, TextRoom(size=limit), answers.keep_text)

    assert len(fitted) <= limit
    if fitted != text:
        uri = fitted.rpartition(" ")[2].rstrip("]")
        assert (answers.read_resource(uri) or [{}])[0]["text"] == text


@requirement("host:budget:never_cut")
def test_long_lists_in_data_are_shortened_too() -> None:
    answers = SavedAnswers()
    data = {"ok": True, "data": {"files": [{"path": f"{n}.txt", "sha256": "0" * 64} for n in range(5000)]}}
    fitted = cut_data_to_fit(data, TextRoom(size=12_000), answers.keep_text)

    assert len(json.dumps(fitted)) <= 12_000
    assert 5 <= len(fitted["data"]["files"]) < 5000
    assert json.loads((answers.read_resource(fitted["answerSavedAs"]) or [{}])[0]["text"]) == data


def test_the_oldest_answers_go_first() -> None:
    answers = SavedAnswers(limit=250)
    uris = [answers.keep_text(str(n) * 100, "text/plain") for n in range(3)]
    assert [answers.read_resource(uri) is not None for uri in uris] == [False, True, True]


@given(st.binary(min_size=1, max_size=40).filter(lambda name: b"\0" not in name))
def test_every_path_has_an_address_and_comes_back_from_it(name: bytes) -> None:
    import os

    path = "/" + os.fsdecode(name).lstrip("/")
    assert path_of(uri_of(path)) == path


def test_addresses_of_other_things_are_no_paths() -> None:
    assert [path_of(uri) for uri in ("file://host/x", "http:///x", "surehold://log", "x", "")] == [None] * 5


@requirement("front:mcp:error_planes")
def test_a_tool_with_a_contract_of_its_own_refuses_with_its_code(site: Site, workspace: Workspace) -> None:
    options = ServerOptions(contract_errors=frozenset({"read_file"}))
    adapter = Adapter(workspace=workspace, tools=tools_of("files"), options=options)
    with pytest.raises(RpcError) as refused:
        adapter.call_tool("read_file", {"path": "missing.txt"}, Caller())
    other = adapter.call_tool("list_directory", {"path": "missing"}, Caller())

    assert (refused.value.code, "missing.txt" in refused.value.message) == (-32001, True)
    assert other["isError"] is True


def test_an_adapter_takes_halves_of_characters_from_a_transport_that_lets_them_through(workspace: Workspace) -> None:
    adapter = Adapter(workspace=workspace, tools=tools_of("files"))
    looked = adapter.call_tool("search_files", {"query": "x\ud83d"}, Caller())
    written = adapter.call_tool("create_file", {"path": "a\ud83d.txt", "content": ""}, Caller())

    assert looked["isError"] is False
    assert data_of(written)["error"]["reason"] == "lone_surrogate"


def test_a_change_ends_although_nobody_waits_any_more() -> None:
    began, go, ended = threading.Event(), threading.Event(), threading.Event()

    def work(progress: ProgressListener, cancelled: Any) -> None:
        began.set()
        go.wait(10)
        assert cancelled()
        ended.set()

    async def run() -> bool:
        calls = CallThreads()
        with anyio.move_on_after(0.2) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: calls.run_in_thread(work, changes=True))
                await anyio.to_thread.run_sync(began.wait)
                threading.Timer(0.5, go.set).start()
        return scope.cancelled_caught and calls.wait_for_changes(5)

    assert anyio.run(run)
    assert ended.is_set()


def test_a_look_is_given_up_at_once() -> None:
    noticed, release = threading.Event(), threading.Event()

    def work(progress: ProgressListener, cancelled: Any) -> None:
        release.wait(30)
        assert cancelled()
        noticed.set()

    async def run() -> bool:
        with anyio.move_on_after(0.1) as scope:
            await CallThreads().run_in_thread(work, changes=False)
        return scope.cancelled_caught

    assert anyio.run(run)
    assert not noticed.is_set(), "the call waited for its thread"
    release.set()
    assert noticed.wait(30)


def test_a_watch_tells_only_of_changes_and_stops_when_nobody_cares() -> None:
    marks, looked, told = {"a": "1", "b": "1"}, list[str](), list[str]()

    def mark(uri: str) -> str:
        looked.append(uri)
        return marks[uri]

    watch = ResourceWatcher(mark, told.append, every=0.02)
    for uri in ("a", "a", "b"):
        watch.add_uri(uri)
    marks["a"] = "2"
    wait_until(lambda: told == ["a"], "the change was not noticed")
    watch.drop_uri("a")
    watch.drop_uri("b")
    marks["a"] = "3"
    wait_until(lambda: told == ["a", "a"], "the second change was not noticed")
    watch.drop_uri("a")
    wait_until(lambda: "watch-resources" not in {one.name for one in threading.enumerate()}, "it goes on checking")
    watch.add_uri("b")
    before = len(looked)
    wait_until(lambda: len(looked) > before, "it does not begin again")
    watch.close()

    assert "a" not in looked[before:]
    assert told == ["a", "a"]


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
    | st.sampled_from(["%00", "%2e%2e/x", "a" * 5000, "?x", "#x", "%ff", "//", ".", "..", "a/../b", "a.txt/x"]),
    st.sampled_from(["file://ROOT/", "file:///", "file:", "surehold://", ""]),
)
def test_no_address_can_break_reading_watching_or_completing(
    site: Site, workspace: Workspace, name: str, start: str
) -> None:
    adapter = Adapter(workspace=workspace, tools=())
    uri = start.replace("ROOT", str(site.root)) + name
    with suppress(RpcError):
        assert adapter.read_resource(uri, Caller())["contents"]
    assert isinstance(adapter.resource_mark(uri), str)
    assert adapter.complete_template("file:///{+path}", name)["completion"]["total"] >= 0
