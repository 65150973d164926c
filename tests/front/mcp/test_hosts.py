"""What arrives at the model of each host: every answer fits, and every page says how to go on."""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from front.mcp.client import MODERN, Json, StdioClient, data_of, surehold
from front.mcp.site import Site, sha_of, text_of
from spec.marks import requirement
from surehold.front.hosts.table import KNOWN_HOSTS, OTHER_HOSTS, HostEntry

ROWS = (*KNOWN_HOSTS, OTHER_HOSTS)
LIMITS = {
    "claude-code": (40_000, "characters"),
    "codex-mcp-client": (12_000, "bytes"),
    "copilot-cli": (19_000, "bytes"),
    "gemini-cli-mcp-client-surehold": (39_000, "characters"),
    "qwen-cli-mcp-client-surehold": (10_000, "bytes"),
    "@cline/core": (8_000, "json"),
    "opencode": (40_000, "bytes"),
    "continue-cli-client": (40_000, "characters"),
    "some-host": (20_000, "bytes"),
    "mcp-test-client": (20_000, "bytes"),
}
"""What each client name may be sent at once, as observed."""
MAX_TOKENS = 20_000


class HostClient:
    """One server of the stateless era, where every request says anew which host it comes from."""

    def __init__(self, site: Site, client: StdioClient) -> None:
        self.site, self._client = site, client

    def call(self, host: str, tool: str, **arguments: Any) -> Json:
        self._client.client = host
        return self._client.call(tool, arguments)

    def request(self, host: str, method: str, params: Json) -> Json:
        self._client.client = host
        return self._client.request(method, params)


@pytest.fixture(scope="module")
def hosts(shared: Site) -> Iterator[HostClient]:
    words = surehold("mcp", shared.root, "--state-dir", shared.state, "--tools", "all")
    with StdioClient(words, version=MODERN) as client:
        yield HostClient(shared, client)


def count(text: str, unit: str) -> int:
    return len(text.encode()) if unit == "bytes" else len(text.encode("utf-16-le")) // 2


def shown_size(host: str, result: Json) -> int:
    """Return how much the host counts: text and data, or the JSON of the whole result."""
    unit = LIMITS[host][1]
    if unit == "json":
        seen = {key: value for key, value in result.items() if key != "_meta"}
        return count(json.dumps(seen, ensure_ascii=False, separators=(",", ":")), unit)
    data = json.dumps(result["structuredContent"], ensure_ascii=False) if "structuredContent" in result else ""
    return count(text_of(result) + data, unit)


def least_tokens(text: str) -> int:
    """Return what a text costs at least: a token for each character of Chinese, two for an emoji, a quarter for a letter."""
    wide, beyond = len(re.findall(r"[\u3000-\uffef]", text)), len(re.findall(r"[\U00010000-\U0010ffff]", text))
    return wide + 2 * beyond + (len(text) - wide - beyond) // 4


def assert_fits(host: str, result: Json) -> None:
    size = shown_size(host, result)
    assert size <= LIMITS[host][0], (host, size)
    assert least_tokens(text_of(result)) <= MAX_TOKENS


@requirement("host:budget:by_client")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_table_says_what_was_observed(row: HostEntry) -> None:
    name = next((name for name in LIMITS if row.client and name.startswith(row.client)), "some-host")

    assert (row.limit, row.unit) == LIMITS[name]


@requirement("host:budget:by_client")
def test_a_page_of_short_lines_fits_a_host_that_counts_lines(hosts: HostClient) -> None:
    hosts.site.put("short.txt", "".join(f"{number}\n" for number in range(3_000)))
    read = hosts.call("opencode", "read_file", path="short.txt")

    assert "goes on: startLine=" in text_of(read)
    assert len(text_of(read).splitlines()) <= 2_000


SCRIPTS = {
    "ascii": "the quick brown fox jumps over the lazy dog ",
    "cjk": "敏捷的棕色狐狸跳过了懒狗",
    "emoji": "🦊🐕",
    "base64": base64.b64encode(bytes(range(256))).decode(),
    "control": "\x01\x1b\t\x0c\x7f",
    "quotes": '"\\',
}


@requirement("host:budget:script", "host:budget:both_fit")
@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("host", LIMITS)
def test_a_page_and_the_answer_to_a_long_write_fit_in_every_script(hosts: HostClient, host: str, script: str) -> None:
    line = (SCRIPTS[script] * 90)[:90]
    hosts.site.put("long.txt", "".join(f"{number} {line}\n" for number in range(900)))
    read = hosts.call(host, "read_file", path="long.txt")
    new = "".join(f"{number} {line[::-1]}!\n" for number in range(900))
    written = hosts.call(
        host, "write_file", path="long.txt", content=new, expectedSha256=data_of(read)["data"]["sha256"]
    )

    assert_fits(host, read)
    assert_fits(host, written)
    assert (written["isError"], data_of(written)["data"]["diffTruncated"]) == (False, True)
    assert "[the diff goes on; all of it: surehold show " in text_of(written)


@requirement("host:budget:both_ends")
@pytest.mark.parametrize(
    ("tool", "arguments", "how"),
    [
        ("read_file", {"path": "pages/a.txt"}, "goes on: startLine="),
        ("read_file", {"path": "pages/a.txt", "hashes": True}, "goes on: startLine="),
        ("read_file", {"path": "pages/one-line.txt"}, "goes on: startLine=1 startColumn="),
        ("Read", {"file_path": "pages/a.txt"}, "goes on: offset="),
        ("Read", {"file_path": "pages/one-line.txt"}, "goes on: offset=1 column="),
        ("read_text_file", {"path": "ROOT/pages/a.txt"}, "goes on: line="),
        ("search_files", {"query": "row", "root": "pages", "maxResults": 2_000}, "goes on: cursor="),
        ("Grep", {"pattern": "row", "path": "pages", "output_mode": "content", "head_limit": 0}, "goes on: offset="),
        ("list_directory", {"path": "pages/many"}, "goes on: cursor="),
        ("glob", {"pattern": "pages/many/*"}, "goes on: offset="),
        ("Glob", {"pattern": "pages/many/*", "limit": 10_000}, "goes on: offset="),
    ],
)
def test_a_page_names_the_next_one_at_its_beginning_and_at_its_end(
    hosts: HostClient, tool: str, arguments: Json, how: str
) -> None:
    hosts.site.put("pages/a.txt", "".join(f"row {number} {'x' * 60}\n" for number in range(1_200)))
    hosts.site.put("pages/one-line.txt", "y" * 50_000)
    for number in range(300):
        hosts.site.put(f"pages/many/a-rather-long-name-of-a-file-{number:04}.txt", "")
    sent = {
        key: value.replace("ROOT", str(hosts.site.root)) if isinstance(value, str) else value
        for key, value in arguments.items()
    }
    result = hosts.call("@cline/core", tool, **sent)
    first, *_, last = text_of(result).splitlines()

    assert_fits("@cline/core", result)
    assert how in first
    assert how in last
    assert first.partition(how)[2].rstrip("]").split()[0] == last.partition(how)[2].rstrip("]").split(";")[0].split()[0]


LONG_NAMES: dict[str, tuple[str, Json]] = {
    "matches": ("search_files", {"query": "目标", "root": "long/deep", "maxResults": 2_000}),
    "paths": ("search_files", {"query": "txt", "root": "long/deep", "mode": "path", "maxResults": 2_000}),
    "tree": ("list_directory", {"path": "long/deep", "recursive": True}),
    "directory": ("list_directory", {"path": "long/flat"}),
}


@pytest.fixture(scope="module")
def long_names(hosts: HostClient) -> None:
    for number in range(280):
        hosts.site.put(f"long/deep/{'目录' * 30}{number:03}/{'文件名字' * 15}{number:03}.txt", "hit 目标\n")
        hosts.site.put(f"long/flat/{'文件名字' * 20}{number:03}", "")


@requirement("host:budget:both_ends", "host:budget:never_cut")
@pytest.mark.parametrize("what", LONG_NAMES)
@pytest.mark.parametrize("host", LIMITS)
@pytest.mark.usefixtures("long_names")
def test_pages_of_long_names_are_whole_and_name_the_next_at_both_ends(hosts: HostClient, host: str, what: str) -> None:
    tool, arguments = LONG_NAMES[what]
    result = hosts.call(host, tool, **arguments)
    first, *_, last = text_of(result).splitlines()

    assert_fits(host, result)
    assert "goes on: cursor=" in first
    assert last == f"[goes on: cursor={first.partition('goes on: cursor=')[2]}]"
    following = hosts.call(host, tool, **arguments, cursor=last.partition("cursor=")[2].rstrip("]"))
    assert following["isError"] is False


@requirement("host:budget:never_cut")
def test_a_glob_goes_on_where_its_page_ended(hosts: HostClient) -> None:
    names = {f"globbed/{'n' * 80}-{number:03}" for number in range(150)}
    for name in names:
        hosts.site.put(name, "")

    for tool, key in (("glob", "matches"), ("Glob", "filenames")):
        found, offset = list[str](), 0
        while offset is not None:
            data = data_of(hosts.call("@cline/core", tool, pattern="globbed/*", offset=offset))
            data = data.get("data", data)
            found += [one["path"] if key == "matches" else one for one in data[key]]
            offset = data.get("nextOffset")
        assert sorted(found) == sorted(names)


LINES = st.one_of(
    st.text(st.characters(exclude_characters="\0\n\r", exclude_categories=["Cs"]), max_size=60),
    st.tuples(st.sampled_from(sorted(SCRIPTS)), st.integers(0, 600) | st.integers(5_000, 15_000)),
)
"""Lines as they are, or a script and how many characters of it."""


def written_out(line: str | tuple[str, int]) -> str:
    return line if isinstance(line, str) else (SCRIPTS[line[0]] * line[1])[: line[1]]


@requirement("host:budget:by_client", "host:budget:script", "host:budget:both_fit", "host:budget:never_cut")
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(LINES, min_size=1, max_size=8), times=st.integers(1, 8), host=st.sampled_from(sorted(LIMITS)))
def test_every_answer_fits_and_the_pages_of_a_file_are_the_file(
    hosts: HostClient, lines: list[str | tuple[str, int]], times: int, host: str
) -> None:
    text = "".join(f"{written_out(line)}\n" for line in lines * times)
    path = hosts.site.put("any.txt", text)

    assert pages_of(hosts, host) == text
    assert rows_of(hosts, host, path) == text.removesuffix("\n").split("\n")
    sha = sha_of_file(hosts, host)
    answers = [
        hosts.call(host, "search_files", query=".", mode="regex", root="any.txt", contextLines=20),
        hosts.call(host, "Grep", pattern=".", path="any.txt", output_mode="content"),
        hosts.call(
            host, "edit_file", path="any.txt", expectedSha256=sha, edits=[{"oldText": text + "x", "newText": ""}]
        ),
        hosts.call(host, "edit", path="any.txt", operations=[{"op": "delete_line", "hash": "abcdef"}] * 20),
        hosts.call(host, "Write", file_path=str(path), content=text[::-1]),
        hosts.call(host, "write_file", path="any.txt", content=text, expectedSha256=sha),
    ]
    for answer in answers:
        assert_fits(host, answer)


def sha_of_file(hosts: HostClient, host: str) -> str:
    return data_of(hosts.call(host, "read_file", path="any.txt"))["data"]["sha256"]


def pages_of(hosts: HostClient, host: str) -> str:
    """Read a file with read_file as its pages say, and return what they show together."""
    pieces, following = list[str](), {"startLine": 1}
    while following:
        result = hosts.call(host, "read_file", path="any.txt", **following)
        data = data_of(result)["data"]
        assert_fits(host, result)
        assert data["content"].removesuffix("\n") in text_of(result)
        pieces.append(data["content"])
        if "nextColumn" in data:
            following = {"startLine": data["startLine"], "startColumn": data["nextColumn"]}
        else:
            following = {"startLine": data["nextLine"]} if "nextLine" in data else {}
    return "".join(pieces)


def rows_of(hosts: HostClient, host: str, path: Path) -> list[str]:
    """Read a file with Read as its pages say, and return its lines."""
    lines, following = dict[int, str](), {"offset": 1}
    while following:
        result = hosts.call(host, "Read", file_path=str(path), **following)
        data = data_of(result)
        assert_fits(host, result)
        for row in data["content"].split("\n"):
            number, _, shown = row.partition("→")
            line = int(number.partition(".")[0])
            lines[line] = lines.get(line, "") + shown
        names = {"offset": data.get("nextOffset"), "column": data.get("nextColumn")}
        following = {name: value for name, value in names.items() if value}
    return [lines[number] for number in sorted(lines)]


@requirement("host:result:meta")
@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
def test_the_data_for_programs_is_there_only_for_clients_that_ask(site: Site, version: Any) -> None:
    site.put("a.txt", "one\n")
    command = surehold("mcp", site.root, "--state-dir", site.state, meta=False)

    with StdioClient(command, version=version) as quiet:
        read = quiet.call("read_file", {"path": "a.txt"})
        refused = quiet.call("read_file", {"path": "none.txt"})
    with StdioClient(command, version=version, capabilities={"experimental": {"surehold/result": {}}}) as asking:
        known = asking.call("read_file", {"path": "a.txt"})
        sha = known["_meta"]["surehold/result"]["data"]["sha256"]
        edits = [{"oldText": "one", "newText": "two"}]
        edited = asking.call("edit_file", {"path": "a.txt", "expectedSha256": sha, "edits": edits})

    for result in (read, refused, edited):
        assert "surehold/result" not in result.get("_meta", {})
    assert edited["structuredContent"]["data"]["afterSha256"]
    assert known["_meta"]["surehold/result"]["data"]["content"] == "one\n"


@requirement("host:budget:never_cut")
def test_a_resource_that_does_not_fit_comes_in_parts_that_name_the_next(hosts: HostClient) -> None:
    text = "".join(f"{number} 狐狸\n" for number in range(4_000))
    uri: str | None = f"file://{hosts.site.put('large.txt', text)}"

    parts = list[str]()
    while uri:
        (content,) = hosts.request("codex-mcp-client", "resources/read", {"uri": uri})["contents"]
        assert len(content["text"].encode()) <= 12_000
        rows = content["text"].split("\n")
        named = re.fullmatch(r"\[goes on: the resource (\S+)\]", rows[0])
        assert not named or rows[-1] == rows[0]
        uri = named[1] if named else None
        parts.append("\n".join(rows[1:-1]) + "\n" if named else content["text"])

    assert "".join(parts) == text


@requirement("host:tools:loaded")
@pytest.mark.parametrize(
    ("flags", "loaded"),
    [
        ([], {"read_file", "edit_file", "edit"}),
        (["--tools", "claude"], {"Read", "Write", "Edit"}),
        (["--tools", "all"], {"read_file", "edit_file", "edit"}),
        (["--always-load", "write_file,create_file"], {"read_file", "edit_file", "edit", "write_file", "create_file"}),
        (
            ["--tools", "multi_edit", "--always-load", "all"],
            {"read_text_file", "write_text_file", "edit_text_file", "multi_edit_text_file"},
        ),
    ],
)
def test_tools_are_marked_for_hosts_that_load_definitions_late(site: Site, flags: list[str], loaded: set[str]) -> None:
    with site.start(*flags) as client:
        tools = client.request("tools/list")["tools"]

    assert {one["name"] for one in tools if one.get("_meta", {}).get("anthropic/alwaysLoad")} == loaded


@requirement("front:exit:usage")
def test_a_tool_to_load_that_is_not_served_is_wrong_usage(site: Site) -> None:
    command = surehold("mcp", site.root, "--state-dir", site.state, "--always-load", "Write")
    client = StdioClient(command, handshake=False)

    assert client.close() == 2
    assert "Wrong usage: --always-load: `Write` is not among the tools that are served." in client.errors()


def test_the_name_of_a_host_counts_only_at_the_beginning(site: Site) -> None:
    site.put("long.txt", "0123456789\n" * 4_000)
    with site.start(client="qwen-cli-mcp-client-codex") as client:
        assert len(text_of(client.call("read_file", {"path": "long.txt"}))) <= 10_000
        assert sha_of(client, "long.txt")
