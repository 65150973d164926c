"""The view of a change inside a host: the official bridge shows it in a real browser, and its schemas check our messages."""

import json
from typing import Any

import jsonschema
import pytest
from playwright.sync_api import Page, Route, expect

from front.mcp.client import RpcFailed, StdioClient
from front.mcp.site import Site, text_of
from front.review.browser import EXT_APPS, PACKAGES, needs_bridge, needs_browser
from spec.marks import requirement

UI = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
VIEW = "ui://surehold/change.html"
APP_TOOLS = {"view_questions", "view_decide", "view_change", "view_switch"}
_HOST = "http://host.test"
_IMPORTS = {
    "@modelcontextprotocol/client": "@modelcontextprotocol/client/dist/index.mjs",
    "@modelcontextprotocol/client/_shims": "@modelcontextprotocol/client/dist/shimsBrowser.mjs",
    "@modelcontextprotocol/core": "@modelcontextprotocol/core/dist/index.mjs",
    "@modelcontextprotocol/core/internal": "@modelcontextprotocol/core/dist/internal.mjs",
    "zod/v4": "zod/v4/index.js",
    "zod": "zod/index.js",
    "eventsource": "eventsource/dist/index.js",
    "eventsource-parser": "eventsource-parser/dist/index.js",
    "eventsource-parser/stream": "eventsource-parser/dist/stream.js",
    "pkce-challenge": "pkce-challenge/dist/index.browser.js",
    "jose": "jose/dist/webapi/index.js",
    "bridge": "@modelcontextprotocol/ext-apps/dist/src/app-bridge.js",
}
_PAGE = """<!doctype html><title>host</title><script type="importmap">{"imports": IMPORTS}</script>
<iframe id="view" sandbox="allow-scripts" style="width:700px;height:600px"></iframe>
<script type="module">
import { AppBridge, PostMessageTransport } from "bridge";
window.told = [];
window.start = async (html, given) => {
  const frame = document.getElementById("view");
  const bridge = new AppBridge(null, { name: "test-host", version: "1" }, { serverTools: {}, updateModelContext: { text: {} } });
  bridge.oncalltool = async (params) => JSON.parse(await window.callTool(params.name, JSON.stringify(params.arguments)));
  bridge.onupdatemodelcontext = async (params) => { window.told.push(params.content[0].text); return {}; };
  bridge.addEventListener("initialized", () => bridge.sendToolInput({ arguments: given }));
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  window.bridge = bridge;
  frame.srcdoc = html;
};
window.ready = true;
</script>"""


@pytest.fixture
def host(page: Page) -> Page:
    """A page that is a host: it loads the bridge from the packages, and nothing from the network."""

    def answer(route: Route) -> None:
        path = route.request.url.removeprefix(f"{_HOST}/")
        if not path:
            found = {one: f"{_HOST}/{file}" for one, file in _IMPORTS.items()}
            route.fulfill(body=_PAGE.replace("IMPORTS", json.dumps(found)), content_type="text/html")
        elif (file := PACKAGES / path).is_file():
            route.fulfill(body=file.read_text(encoding="utf-8"), content_type="text/javascript")
        else:
            route.abort()

    page.route(f"{_HOST}/**", answer)
    page.goto(f"{_HOST}/")
    page.wait_for_function("window.ready")
    return page


def schema(name: str) -> Any:
    whole = json.loads((EXT_APPS / "generated" / "schema.json").read_text(encoding="utf-8"))
    return {**whole, "$ref": f"#/$defs/{name}"}


@needs_bridge
@requirement("front:app:offered")
def test_only_a_host_that_shows_views_is_offered_them_and_the_schemas_accept_them(site: Site) -> None:
    with site.start() as plain:
        listed = plain.request("tools/list")["tools"]
        assert not any("ui" in one.get("_meta", {}) for one in listed)
        with pytest.raises(RpcFailed, match="Unknown tool"):
            plain.call("view_questions", {"key": ""})
    with site.start(capabilities=UI) as agent:
        tools = {one["name"]: one for one in agent.request("tools/list")["tools"]}
        shown = {name: one["_meta"]["ui"] for name, one in tools.items() if "ui" in one.get("_meta", {})}
        (page,) = agent.request("resources/read", {"uri": VIEW})["contents"]
    assert {name for name, ui in shown.items() if ui["visibility"] == ["app"]} == APP_TOOLS
    assert {"create_file", "edit", "move_file"} < set(shown)
    assert "read_file" not in shown
    for ui in shown.values():
        jsonschema.validate(ui, schema("McpUiToolMeta"))
        assert ui["resourceUri"] == VIEW
    jsonschema.validate(page["_meta"]["ui"], schema("McpUiResourceMeta"))
    assert page["mimeType"] == "text/html;profile=mcp-app"
    assert "http:" not in page["text"]
    assert "https:" not in page["text"]


@requirement("front:app:key")
def test_a_model_that_calls_the_tools_of_the_view_decides_nothing(site: Site) -> None:
    with site.start("--mode", "default", capabilities=UI) as agent:
        call = agent.start_call("create_file", {"path": "a.txt", "content": "x"})
        for name in APP_TOOLS:
            refused = agent.call(name, {"key": "guess", "question": "", "decision": "allow", "unseen": 9})
            assert refused["isError"]
            assert "Only the view of a change can call this." in text_of(refused)
        assert not agent.is_answered(call)
        agent.cancel(call)
    assert not (site.root / "a.txt").exists()


@needs_browser
@needs_bridge
@requirement("front:app:decide")
def test_a_change_is_allowed_shown_and_undone_in_the_view(site: Site, host: Page) -> None:
    with site.start("--mode", "default", capabilities=UI) as agent:
        serve_calls(host, agent)
        frame = host.frame_locator("#view")
        given = {"path": "a<b>.txt", "content": "one\n<script>alert(1)</script>\n"}
        call = agent.start_call("create_file", given)
        host.evaluate("([html, given]) => start(html, given)", [html_of(agent), given])
        expect(frame.locator("h1")).to_have_text("claude-code wants to create a<b>.txt")
        expect(frame.locator(".added").nth(1)).to_have_text("+<script>alert(1)</script>\n")
        assert not (site.root / "a<b>.txt").exists()
        frame.get_by_role("button", name="Allow").click()
        expect(frame.get_by_role("status")).to_have_text("Allowed.")
        result = agent.answer(call)
        assert site.get("a<b>.txt") == given["content"].encode()

        host.evaluate("result => bridge.sendToolResult(result)", result)
        frame.get_by_role("button", name="Undo").click()
        expect(frame.get_by_role("status")).to_have_text("It is undone.")
        assert not (site.root / "a<b>.txt").exists()
        assert "The person has undone change" in host.evaluate("told")[0]
        frame.get_by_role("button", name="Redo").click()
        expect(frame.get_by_role("button", name="Undo")).to_be_visible()
        assert site.get("a<b>.txt") == given["content"].encode()
    with site.open() as workspace:
        approval = workspace.history.log()[-1].call.approval
    assert approval
    assert (approval.asked, approval.where) == (True, "form")


@needs_browser
@needs_bridge
@requirement("front:app:decide")
def test_a_change_is_refused_in_the_view_and_the_agent_hears_it(site: Site, host: Page) -> None:
    with site.start("--mode", "default", capabilities=UI) as agent:
        serve_calls(host, agent)
        call = agent.start_call("create_file", {"path": "a.txt", "content": "x"})
        host.evaluate("([html, given]) => start(html, given)", [html_of(agent), {}])
        host.frame_locator("#view").get_by_role("button", name="Refuse").click()
        result = agent.answer(call)
        assert result["isError"]
        host.evaluate("result => bridge.sendToolResult(result)", result)
        expect(host.frame_locator("#view").locator("h1")).to_have_text("Nothing was changed")
    assert not (site.root / "a.txt").exists()


def serve_calls(host: Page, agent: StdioClient) -> None:
    """Let the host pass calls of the view on to our server."""

    def call_tool(name: str, given: str) -> str:
        return json.dumps(agent.call(name, json.loads(given)))

    host.expose_function("callTool", call_tool)  # pyright: ignore[reportUnknownMemberType] - typed so by its library


def html_of(agent: StdioClient) -> str:
    return agent.request("resources/read", {"uri": VIEW})["contents"][0]["text"]
