"""What must neither kill nor block a server."""

import json
import os
import signal
import time
from collections.abc import Iterator

import pytest

from front.mcp.client import RpcFailed, StdioClient
from front.mcp.site import Site, data_of, sha_of, text_of
from spec.marks import requirement
from waiting import wait_until
from warm import cold


@pytest.fixture(scope="module")
def odd(shared: Site) -> Iterator[StdioClient]:
    with shared.start_odd() as client:
        yield client


@pytest.fixture(scope="module")
def odd_modern(shared: Site) -> Iterator[StdioClient]:
    with shared.start_odd("2026-07-28") as client:
        yield client


def call_line(name: str, tool: str, arguments: dict[str, str]) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params}).encode()


@requirement("front:mcp:robust", "host:text:valid_utf8")
def test_an_answer_that_utf8_cannot_spell_arrives_with_escapes(odd: StdioClient, odd_modern: StdioClient) -> None:
    for client in (odd, odd_modern):
        result = client.call("surrogates")

        assert text_of(result) == r"name-\xff half \ud83d whole 😀"
        assert data_of(result)["data"]["said"] == r"name-\xff half \ud83d whole 😀"
        assert client.call("noisy")["isError"] is False


@requirement("host:text:valid_utf8", "front:mcp:robust")
def test_a_file_name_that_is_not_utf8_is_shown_escaped_and_read_as_a_resource(
    shared: Site, server: StdioClient
) -> None:
    name = os.fsencode(shared.root) + b"/caf\xe9.txt"
    with open(name, "wb") as file:  # noqa: PTH123 - the name is bytes
        file.write(b"coffee\n")

    listing = server.call("list_directory", {"path": "."})
    resources = server.request("resources/list")["resources"]
    uri = next(row["uri"] for row in resources if row["name"].startswith("caf"))

    assert r"caf\xe9.txt" in text_of(listing)
    assert uri.endswith("/caf%E9.txt")
    assert server.request("resources/read", {"uri": uri})["contents"][0]["text"] == "coffee\n"


@requirement("front:mcp:robust")
def test_half_a_character_in_a_request_is_answered_and_never_written(shared: Site, server: StdioClient) -> None:
    shared.put("half.txt", "one\n")
    sha = sha_of(server, "half.txt")
    write = {"path": "half.txt", "content": "CONTENT", "expectedSha256": sha}
    server.send_line(call_line("w", "write_file", write).replace(b"CONTENT", rb"x \ud83d y"))
    written = server.answer("w")
    server.send_line(call_line("s", "search_files", {"query": "QUERY"}).replace(b"QUERY", rb"\udc00"))

    assert (written["isError"], data_of(written)["error"]["reason"]) == (True, "lone_surrogate")
    assert text_of(written).startswith("Nothing was written.")
    assert server.answer("s")["isError"] is False
    assert shared.get("half.txt") == b"one\n"
    assert shared.log("half.txt") == [("write", False)]


@requirement("front:mcp:robust")
def test_whole_characters_and_written_out_escapes_stay_as_they_are(shared: Site, server: StdioClient) -> None:
    arguments = {"path": "pairs.txt", "content": "😀 and \\ud83d"}
    line = call_line("p", "create_file", arguments)
    assert rb"\ud83d\ude00 and \\ud83d" in line
    server.send_line(line)

    assert server.answer("p")["isError"] is False
    assert shared.get("pairs.txt").decode() == "😀 and \\ud83d"


@requirement("front:mcp:robust", "front:mcp:stdio")
def test_what_a_tool_prints_goes_to_standard_error_and_standard_input_is_empty(odd: StdioClient) -> None:
    result = odd.call("noisy")

    assert text_of(result) == "read ''"
    assert odd.junk == []
    assert "a stray print" in odd.wait_for_error("another")


@requirement("front:mcp:error_planes")
def test_a_bug_in_a_tool_is_an_error_result_and_the_server_goes_on(odd: StdioClient) -> None:
    result = odd.call("broken")

    assert result["isError"] is True
    assert "this is a bug" in text_of(result)
    assert "ZeroDivisionError" in text_of(result)
    assert odd.call("noisy")["isError"] is False
    assert "Traceback" not in odd.errors()


@requirement("front:mcp:robust")
@pytest.mark.parametrize(
    "line", [b"", b"junk", b"{", b"\xff\xfe\x00", b"[1, 2]", b"42", b'{"jsonrpc": "2.0"}', b'{"id": 5}', b"[" * 100_000]
)
def test_junk_is_passed_over(server: StdioClient, line: bytes) -> None:
    server.send_line(line)
    assert server.request("ping") == {}


@requirement("front:mcp:robust", "front:mcp:error_planes")
def test_requests_in_a_batch_or_of_a_wrong_shape_are_refused_one_by_one(server: StdioClient) -> None:
    server.send([{"jsonrpc": "2.0", "id": "b1", "method": "ping"}, {"jsonrpc": "2.0", "id": "b2", "method": "ping"}])
    server.send({"jsonrpc": "2.0", "id": "b3", "method": "tools/call", "params": [1, 2]})
    server.send({"jsonrpc": "1.0", "id": "b4", "method": "ping"})

    codes = [server.raw_answer(name)["error"]["code"] for name in ("b1", "b2", "b3", "b4")]
    assert codes == [-32600] * 4
    assert server.request("ping") == {}


@requirement("front:mcp:malformed")
@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("m1", b'{"jsonrpc": "2.0", "id": "m1", "method": "ping", "params": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        ("m2", b'{"params": ' + b'{"id": 4, "a":' * 100_000 + b"1" + b"}" * 100_000 + b', "id": "m2", "method": "x"}'),
        ("m3", b'{"method": "tools/call", "id": "m3", "params": {"name": "read_file", "arguments": {"path": "a'),
        ("m4", b'{"jsonrpc": "2.0", "id": "m4", "method": 5}'),
        ("m6", b'{"jsonrpc": "2.0", "id": "m6"}'),
        ("m7", b'{"jsonrpc": "2.0", "id": "m7", "params": {}}'),
        ("m8", b'{"jsonrpc": "2.0", "method": "tools/call", "params": {{{, "id": "m8"}'),
        ("m5", b'{"jsonrpc": "2.0", "id": "m5", "method": "ping", "params": {"a": "' + b'\\"id\\": 3,' * 9 + b'", }}'),
    ],
)
def test_a_malformed_request_with_a_readable_id_is_answered(server: StdioClient, name: str, line: bytes) -> None:
    server.send_line(line)

    assert server.raw_answer(name)["error"]["code"] == -32600
    assert server.request("ping") == {}


@requirement("front:mcp:robust")
def test_ten_megabytes_go_in_and_come_out(site: Site) -> None:
    text = "0123456789abcde\n" * 655_360
    with site.start("--max-chars", "20000000", "--max-tokens", "5000000") as server:  # for a client that takes so much
        created = server.call("create_file", {"path": "large.txt", "content": text})
        read = server.request("resources/read", {"uri": f"file://{site.root}/large.txt"})

    assert created["isError"] is False
    assert site.get("large.txt") == text.encode()
    assert read["contents"][0]["text"] == text


@requirement("front:mcp:robust")
def test_fifty_calls_at_once_all_happen(shared: Site, server: StdioClient) -> None:
    for number in range(50):
        shared.put(f"many/{number}.txt", f"{number}\n")
    reads = [server.start_call("read_file", {"path": f"many/{n}.txt"}) for n in range(50)]
    shas = [data_of(server.answer(each))["data"]["sha256"] for each in reads]
    edits = [
        server.start_call(
            "edit_file",
            {"path": f"many/{n}.txt", "expectedSha256": sha, "edits": [{"oldText": f"{n}", "newText": f"{n}!"}]},
        )
        for n, sha in enumerate(shas)
    ]

    assert [server.answer(each)["isError"] for each in edits] == [False] * 50
    assert [shared.get(f"many/{n}.txt") for n in range(50)] == [f"{n}!\n".encode() for n in range(50)]
    with shared.open() as workspace:
        assert workspace.history.verify().ok


@requirement("front:mcp:robust")
def test_of_fifty_equal_edits_at_once_one_happens(shared: Site, server: StdioClient) -> None:
    shared.put("race.txt", "start\n")
    sha = sha_of(server, "race.txt")
    writes = [
        server.start_call("write_file", {"path": "race.txt", "expectedSha256": sha, "content": f"writer {n}\n"})
        for n in range(50)
    ]
    results = [server.answer(each) for each in writes]
    won = [n for n, result in enumerate(results) if not result["isError"]]

    assert len(won) == 1
    assert {data_of(r)["error"]["kind"] for r in results if r["isError"]} == {"stale_file"}
    assert shared.get("race.txt") == f"writer {won[0]}\n".encode()


@requirement("front:mcp:robust")
def test_a_client_that_vanishes_in_the_middle_of_a_call_ends_the_server_and_the_file_is_whole(site: Site) -> None:
    client = site.start_odd()
    client.start_call("stubborn_write", {"path": "new.txt"})
    client.start_call("endless", {"path": "note"})
    _wait_for(site, "new.began")
    _wait_for(site, "note.began")
    client.hang_up()
    _wait_for(site, "note")  # the look was cancelled
    assert client.process.poll() is None  # the write is waited for
    site.put("new.go", "")

    assert client.wait() == 0
    assert site.get("new.txt") == b"whole\n" * 100_000
    assert site.log("new.txt") == [("create", True)]
    assert "Traceback" not in client.errors()


@requirement("front:mcp:robust")
def test_requests_before_the_end_of_the_input_are_still_answered(site: Site) -> None:
    site.put("a.txt", "one\n")
    client = site.start()
    reads = [client.start_call("read_file", {"path": "a.txt"}) for _ in range(10)]
    writes = [client.start_call("create_file", {"path": f"{n}.txt", "content": "x\n"}) for n in range(10)]

    assert client.close() == 0
    assert [client.answer(each)["isError"] for each in reads + writes] == [False] * 20


@requirement("front:mcp:robust", "front:mcp:signals")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 0), (signal.SIGQUIT, 0)]
)
def test_a_signal_ends_the_server_in_good_order(site: Site, number: signal.Signals, code: int) -> None:
    client = site.start_odd()
    write = client.start_call("stubborn_write", {"path": "new.txt"})
    look = client.start_call("endless", {"path": "note"})
    _wait_for(site, "new.began")
    _wait_for(site, "note.began")
    client.process.send_signal(number)
    time.sleep(0.3)
    site.put("new.go", "")

    assert client.wait() == code
    assert client.answer(write)["isError"] is False
    with pytest.raises(RpcFailed, match="closed"):
        client.answer(look)
    assert site.get("new.txt") == b"whole\n" * 100_000
    assert "Traceback" not in client.errors()


def _wait_for(site: Site, name: str) -> None:
    wait_until((site.root / name).exists, f"{name} never came")


@requirement("front:mcp:signals")
def test_a_signal_that_is_ignored_from_outside_stays_ignored(site: Site) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with cold():  # a process that was there before does not ignore it
            client = site.start()
    finally:
        signal.signal(signal.SIGHUP, before)
    with client:
        client.process.send_signal(signal.SIGHUP)

        assert client.request("ping") == {}
