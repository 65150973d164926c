"""The fixtures of the conformance suite, mounted on our adapter and served by our HTTP front."""

import sys
from collections.abc import Generator

import anyio
import pytest
from mcp import Client, MCPError
from mcp.client.context import ClientRequestContext
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    ElicitRequestParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    TextContent,
)

from conformance.python_client import reply
from conformance.servers import free_port, listening

ERAS = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    folder = tmp_path_factory.mktemp("fixtures")
    (folder / "root").mkdir()
    port = free_port()
    command = (sys.executable, "-m", "conformance.fixture_server", str(folder), str(port))
    with listening(command, port, log=folder / "server.log"):
        yield f"http://127.0.0.1:{port}/mcp"


@ERAS
def test_a_tool_may_answer_with_text_image_sound_and_resource(url: str, mode: str) -> None:
    async def kinds() -> list[type[object]]:
        async with Client(url, mode=mode) as client:
            names = ("test_multiple_content_types", "test_audio_content")
            results = [await client.call_tool(name, {}) for name in names]
            return [type(block) for result in results for block in result.content]

    assert anyio.run(kinds) == [TextContent, ImageContent, EmbeddedResource, AudioContent]


@ERAS
def test_progress_reaches_the_client_in_order(url: str, mode: str) -> None:
    heard = list[tuple[float, float | None]]()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    async def call() -> str:
        async with Client(url, mode=mode) as client:
            return reply(await client.call_tool("test_tool_with_progress", {}, progress_callback=hear)).text

    assert (anyio.run(call), heard) == ("Done.", [(0, 100), (50, 100), (100, 100)])


@ERAS
def test_a_tool_that_fails_answers_with_its_own_words(url: str, mode: str) -> None:
    async def call() -> tuple[bool, str]:
        async with Client(url, mode=mode) as client:
            failed = reply(await client.call_tool("test_error_handling", {}))
            return failed.is_error, failed.text

    assert anyio.run(call) == (True, "This tool intentionally returns an error for testing")


@ERAS
def test_a_binary_resource_arrives_whole_and_a_missing_one_is_a_protocol_error(url: str, mode: str) -> None:
    async def read() -> tuple[str, int]:
        async with Client(url, mode=mode) as client:
            (found,) = (await client.read_resource("test://static-binary")).contents
            assert isinstance(found, BlobResourceContents)
            with pytest.raises(MCPError) as missing:
                await client.read_resource("test://nothing")
            return found.blob[:11], missing.value.error.code

    assert anyio.run(read) == ("iVBORw0KGgo", -32602 if mode == "2026-07-28" else -32002)


@ERAS
def test_a_prompt_takes_arguments(url: str, mode: str) -> None:
    async def get() -> list[object]:
        async with Client(url, mode=mode) as client:
            prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
            return [message.content for message in prompt.messages]

    (content,) = anyio.run(get)
    assert content == TextContent(type="text", text="Prompt with arguments: arg1='one', arg2='two'")


@ERAS
def test_a_tool_that_changes_a_file_asks_the_person_first(url: str, mode: str) -> None:
    asked = list[str]()

    async def decline(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message.splitlines()[0])
        return ElicitResult(action="decline")

    async def call() -> tuple[bool, str]:
        async with Client(url, mode=mode, elicitation_callback=decline) as client:
            refused = reply(await client.call_tool("test_elicitation", {}))
            return refused.is_error, refused.text

    assert anyio.run(call) == (True, "The change was not allowed.")
    assert asked == ["`test_elicitation` wants to change 1 file, +1 −0 lines, 0 → 7 bytes."]
