"""Both eras of the protocol, with a raw client and with the SDK's own."""

import sys
from typing import Any, Literal, cast

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from front.mcp.client import MODERN, RpcFailed, StdioClient, Version, surehold
from front.mcp.site import Site
from spec.marks import requirement
from surehold import __version__
from tool_names import DEFAULT_TOOLS


@requirement("front:mcp:eras", "front:mcp:stdio")
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_an_older_client_shakes_hands_and_gets_the_list_that_everybody_gets(
    site: Site, server: StdioClient, version: Version
) -> None:
    with site.start(version=version, client="codex-mcp-client") as client:
        tools = client.request("tools/list")["tools"]

        assert client.opening["protocolVersion"] == version
        assert client.opening["serverInfo"]["name"] == "surehold"
        assert client.opening["serverInfo"]["version"] == __version__
        assert client.opening["capabilities"]["resources"]["subscribe"] is True
        assert [tool["name"] for tool in tools] == DEFAULT_TOOLS
        assert tools == server.request("tools/list")["tools"]
    assert (client.process.returncode, client.junk) == (0, [])


@requirement("front:mcp:eras")
def test_a_stateless_client_discovers_and_lists_the_tools(modern: StdioClient) -> None:
    listed = modern.request("tools/list")

    assert modern.opening["supportedVersions"] == [MODERN]
    assert modern.opening["resultType"] == "complete"
    assert [tool["name"] for tool in listed["tools"]] == DEFAULT_TOOLS
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "public")
    assert listed["ttlMs"] > 0
    assert listed["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "surehold"


@requirement("front:mcp:eras")
def test_an_initialize_after_a_discovery_names_the_version_that_is_served(site: Site) -> None:
    with site.start(version="2026-07-28") as client:
        request = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "late", "version": "1"}}
        client.send({"jsonrpc": "2.0", "id": 99, "method": "initialize", "params": request})
        with pytest.raises(RpcFailed) as refused:
            client.answer(99)

        assert refused.value.code == -32022
        assert refused.value.data["supported"] == [MODERN]
        assert client.request("tools/list")["tools"]


@requirement("front:mcp:eras")
def test_an_unknown_version_is_answered_with_one_that_is_served(site: Site) -> None:
    with StdioClient(surehold("mcp", site.root, "--state-dir", site.state), handshake=False) as client:
        request = {"protocolVersion": "2031-01-01", "capabilities": {}, "clientInfo": {"name": "new", "version": "1"}}
        assert client.request("initialize", request)["protocolVersion"] == "2025-11-25"


@requirement("front:mcp:eras")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_client_of_the_sdk_reads_edits_and_hears_refusals(site: Site, mode: Literal["legacy", "auto"]) -> None:
    site.put("a.txt", "one\n")
    command = StdioServerParameters(command=sys.executable, args=surehold("mcp", site.root, "--state-dir", site.state))

    async def work() -> list[Any]:
        async with Client(command, mode=mode) as client:
            read = await client.call_tool("read_file", {"path": "a.txt"})
            sha = (read.meta or {})["surehold/result"]["data"]["sha256"]
            arguments = {"path": "a.txt", "expectedSha256": sha, "edits": [{"oldText": "one", "newText": "two"}]}
            edited = await client.call_tool("edit_file", arguments)
            other = {**arguments, "edits": [{"oldText": "one", "newText": "three"}]}
            stale = await client.call_tool("edit_file", other)
            with pytest.raises(MCPError) as unknown:
                await client.call_tool("nonsense", {})
            return [read, edited, stale, unknown.value]

    read, edited, stale, unknown = anyio.run(work)
    assert (read.is_error, read.structured_content) == (False, None)
    assert (edited.is_error, edited.structured_content["ok"]) == (False, True)
    assert (stale.is_error, stale.structured_content["error"]["kind"]) == (True, "stale_file")
    assert unknown.error.code == -32602
    assert site.get("a.txt") == b"two\n"


def test_the_instructions_begin_with_a_few_lines_that_tell_what_to_do_when_a_file_is_stale(server: StdioClient) -> None:
    text, _, _ = server.opening["instructions"].partition("\n\n")

    assert len(text.splitlines()) <= 12
    assert all(word in text for word in ("read_file", "expectedSha256", "stale_file", "surehold undo", "restore_file"))


def test_the_prompt_carries_the_same_guidance(server: StdioClient) -> None:
    assert [prompt["name"] for prompt in server.request("prompts/list")["prompts"]] == ["surehold"]
    (message,) = server.request("prompts/get", {"name": "surehold"})["messages"]
    text = message["content"]["text"]
    assert message["role"] == "user"
    assert text == server.opening["instructions"]
    with pytest.raises(RpcFailed) as unknown:
        server.request("prompts/get", {"name": "nonsense"})
    assert unknown.value.code == -32602


@requirement("host:schema:slim")
def test_listed_schemas_have_no_titles_and_no_references(server: StdioClient) -> None:
    def keys(node: Any, *, names: bool = False) -> set[str]:
        if isinstance(node, list):
            return {key for item in cast("list[Any]", node) for key in keys(item)}
        if not isinstance(node, dict):
            return set()
        rows = cast("dict[str, Any]", node)
        inner = {key for name, value in rows.items() for key in keys(value, names=name == "properties")}
        return inner if names else inner | set(rows)

    for tool in server.request("tools/list")["tools"]:
        found = keys(tool["inputSchema"]) | keys(tool.get("outputSchema", {}))
        assert not found & {"title", "$ref", "$defs"}, tool["name"]


@requirement("host:result:reading_is_text")
def test_only_tools_that_change_something_promise_structured_content(server: StdioClient) -> None:
    for tool in server.request("tools/list")["tools"]:
        reads = tool["annotations"]["readOnlyHint"]
        assert ("outputSchema" in tool) is not reads
        assert tool["annotations"]["openWorldHint"] is False
        assert tool["title"]
        assert ("anthropic/maxResultSizeChars" in tool.get("_meta", {})) is reads
        assert ("anthropic/alwaysLoad" in tool.get("_meta", {})) is (tool["name"] in {"read_file", "edit", "edit_file"})
