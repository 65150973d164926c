"""Files and the ledger as resources, and news about them."""

import base64
import json
import random
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated

from front.mcp.client import Json, RpcFailed, StdioClient, Version, surehold
from front.mcp.site import Site, sha_of
from spec.marks import requirement

PYTHON = __import__("sys").executable


@pytest.fixture(scope="module")
def plain(shared: Site) -> Iterator[StdioClient]:
    shared.put(".gitignore", "ignored/\n")
    shared.put("ignored/x.txt", "no")
    shared.put("secret.env", "no")
    shared.put("a b/ä.txt", "text\n")
    shared.put("image.png", b"\x89PNG\r\n\x1a\n\x00\x00")
    with shared.start("--deny", "*.env") as client:
        yield client


def uri(site: Site, name: str) -> str:
    return (site.root / name).as_uri()


def read(client: StdioClient, address: str) -> Json:
    (content,) = client.request("resources/read", {"uri": address})["contents"]
    return content


@requirement("front:mcp:resources")
def test_the_list_has_the_log_the_roots_and_every_file_that_may_be_seen(shared: Site, plain: StdioClient) -> None:
    listed = {row["uri"]: row for row in plain.request("resources/list")["resources"]}

    assert {"surehold://log", shared.root.as_uri(), uri(shared, "a b/ä.txt"), uri(shared, "image.png")} <= set(listed)
    assert not [each for each in listed if "ignored" in each or "secret" in each]
    assert listed[uri(shared, "image.png")]["mimeType"] == "image/png"
    assert listed[uri(shared, "a b/ä.txt")]["name"] == "a b/ä.txt"


@requirement("front:mcp:resources")
def test_a_file_is_text_or_bytes_and_a_directory_is_a_listing(shared: Site, plain: StdioClient) -> None:
    assert read(plain, uri(shared, "a b/ä.txt"))["text"] == "text\n"
    assert base64.b64decode(read(plain, uri(shared, "image.png"))["blob"]) == shared.get("image.png")
    assert "a b/" in read(plain, shared.root.as_uri())["text"].splitlines()


@requirement("front:mcp:resource_parts")
def test_bytes_that_do_not_fit_are_refused_with_the_address_of_their_first_part(
    shared: Site, plain: StdioClient
) -> None:
    data = bytes(1) + random.Random(2).randbytes(100_000)
    (shared.root / "big.bin").write_bytes(data)
    (shared.root / "big.png").write_bytes(data)
    address = uri(shared, "big.bin")

    with pytest.raises(RpcFailed) as refused:
        read(plain, address)
    following, parts = f"{address}?from=0", list[bytes]()
    while following:
        part, note = plain.request("resources/read", {"uri": following})["contents"]
        parts.append(base64.b64decode(part["blob"]))
        following = note["text"].partition("goes on: the resource ")[2].removesuffix("]")

    assert refused.value.message.endswith(f"Read its parts, beginning with the resource {address}?from=0.")
    assert len(parts) > 1
    assert b"".join(parts) == data
    assert base64.b64decode(read(plain, uri(shared, "big.png"))["blob"]) == data


@requirement("front:mcp:resources")
def test_what_must_not_be_read_is_a_protocol_error(shared: Site, plain: StdioClient, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("no")
    (shared.root / "link.txt").symlink_to(tmp_path / "outside.txt")
    for address in (
        "file:///etc/passwd",
        uri(shared, "missing.txt"),
        uri(shared, "secret.env"),
        uri(shared, "link.txt"),
        uri(shared, "../root/../../etc/passwd"),
        "file://other-host/etc/passwd",
        "file:relative",
        "https://example.com/",
        "surehold://answer/guess",
        "nonsense",
    ):
        with pytest.raises(RpcFailed) as refused:
            plain.request("resources/read", {"uri": address})
        assert refused.value.code == -32002, address
        assert refused.value.data["uri"] == address


def test_a_missing_resource_is_invalid_parameters_in_the_stateless_era(shared: Site, modern: StdioClient) -> None:
    with pytest.raises(RpcFailed) as refused:
        modern.request("resources/read", {"uri": uri(shared, "missing.txt")})
    assert (refused.value.code, refused.value.data["uri"]) == (-32602, uri(shared, "missing.txt"))


@requirement("front:mcp:resources")
def test_the_log_shows_what_happened_newest_first(shared: Site, plain: StdioClient) -> None:
    plain.call("create_file", {"path": "logged.txt", "content": "x", "reason": "for the log"})
    entry = json.loads(read(plain, "surehold://log")["text"])["entries"][0]

    assert (entry["path"], entry["operation"], entry["ok"]) == ("logged.txt", "create", True)
    assert (entry["agent"], entry["tool"], entry["reason"]) == ("claude-code", "create_file", "for the log")


@requirement("front:mcp:selected_log")
def test_the_log_takes_the_selectors_of_the_command_line(shared: Site, plain: StdioClient) -> None:
    plain.call("create_file", {"path": "one.txt", "content": "x"})
    plain.call("create_file", {"path": "two & more.txt", "content": "x"})

    def paths(query: str) -> list[str]:
        address = f"surehold://log?{query}"
        return [row["path"] for row in json.loads(read(plain, address)["text"])["entries"]]

    assert paths("session=last")[:2] == ["two & more.txt", "one.txt"]
    assert paths("path=two%20%26%20more.txt&agent=claude") == ["two & more.txt"]
    assert {"one.txt", "two & more.txt"} == {*paths("path=one.txt&path=two+%26+more.txt&since=1h")}
    for query, reason in (
        ("agent=unknown", "No agent's name begins with `unknown`"),
        ("path=never", "`never` is not in the history"),
        ("since=tomorrow-ish", ""),
        ("colour=red", "is not a selector"),
        ("agent=a&agent=b", "more than once"),
    ):
        with pytest.raises(RpcFailed) as refused:
            paths(query)
        assert reason in f"{refused.value} {refused.value.data}"


def test_templates_and_completion_lead_to_files(shared: Site, plain: StdioClient) -> None:
    log, template = plain.request("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "file:///{+path}"
    assert log["uriTemplate"] == "surehold://log{?session,agent,turn,since,until,path}"

    def complete(value: str) -> list[str]:
        ref = {"type": "ref/resource", "uri": template["uriTemplate"]}
        asked = {"ref": ref, "argument": {"name": "path", "value": value}}
        return plain.request("completion/complete", asked)["completion"]["values"]

    root = str(shared.root).lstrip("/")
    assert complete(f"{root}/a") == [f"{root}/a b/"]
    assert complete("/etc/pass") == []


@requirement("front:mcp:resources")
def test_long_lists_come_in_pages(site: Site) -> None:
    for number in range(1200):
        site.put(f"d{number % 7}/{number}.txt", "")
    with site.start() as client:
        found, cursor, pages = list[str](), None, 0
        while True:
            page = client.request("resources/list", {"cursor": cursor} if cursor else {})
            found += [row["uri"] for row in page["resources"]]
            pages += 1
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        with pytest.raises(RpcFailed) as refused:
            client.request("resources/list", {"cursor": "nonsense"})

    assert pages > 1
    assert len(found) == len(set(found)) == 1202
    assert refused.value.code == -32602


@requirement("front:mcp:cursors")
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_a_list_that_comes_whole_has_no_page_after_a_cursor(site: Site, version: Version) -> None:
    with site.start(version=version) as client:
        for method in ("tools/list", "prompts/list", "resources/templates/list"):
            assert client.request(method, {"cursor": ""}) == client.request(method)
            with pytest.raises(RpcFailed) as refused:
                client.request(method, {"cursor": "nonsense"})
            assert refused.value.code == -32602


@requirement("front:mcp:resources")
def test_an_older_client_hears_of_outside_changes_to_what_it_subscribed(shared: Site, plain: StdioClient) -> None:
    path = shared.put("watched.txt", "one\n")
    shared.put("other.txt", "one\n")
    address = uri(shared, "watched.txt")
    plain.notifications.clear()
    plain.request("resources/subscribe", {"uri": address})

    path.touch()  # the time alone is not a change
    shared.put("other.txt", "two\n")
    shared.put("watched.txt", "two\n")
    (news,) = plain.wait_for(lambda notes: len(notes) > 0)
    path.unlink()
    plain.wait_for(lambda notes: len(notes) > 1)
    plain.request("resources/unsubscribe", {"uri": address})
    shared.put("watched.txt", "three\n")
    plain.request("resources/subscribe", {"uri": "surehold://log"})
    plain.call("create_file", {"path": "news.txt", "content": ""})
    notes = plain.wait_for(lambda notes: len(notes) > 2)

    assert news == {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": address}}
    assert [note["params"]["uri"] for note in notes] == [address, address, "surehold://log"]


@requirement("front:mcp:resources")
def test_a_stateless_client_listens_and_hears_of_outside_changes(site: Site) -> None:
    site.put("a.txt", "one\n")
    site.put("b.txt", "one\n")
    address = uri(site, "a.txt")
    command = StdioServerParameters(command=PYTHON, args=surehold("mcp", site.root, "--state-dir", site.state))

    async def work() -> object:
        async with Client(command, mode="auto") as client, client.listen(resource_subscriptions=[address]) as events:
            site.put("b.txt", "two\n")
            site.put("a.txt", "two\n")
            with anyio.fail_after(20):
                async for event in events:
                    return event
        return None

    assert anyio.run(work) == ResourceUpdated(uri=address)


@requirement("front:mcp:resources")
def test_two_streams_of_one_client_hear_only_of_their_own(shared: Site, modern: StdioClient) -> None:
    shared.put("one.txt", "1")
    shared.put("two.txt", "1")
    ids = [
        modern.start("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri(shared, name)]}})
        for name in ("one.txt", "two.txt")
    ]
    modern.wait_for(lambda notes: sum(n["method"].endswith("acknowledged") for n in notes) == 2)
    shared.put("two.txt", "2")
    notes = modern.wait_for(lambda notes: any(n["method"].endswith("updated") for n in notes))
    (news,) = [note["params"] for note in notes if note["method"] == "notifications/resources/updated"]
    for each in ids:
        modern.cancel(each)

    assert news["uri"] == uri(shared, "two.txt")
    assert news["_meta"]["io.modelcontextprotocol/subscriptionId"] == ids[1]


@requirement("front:mcp:resources")
def test_two_servers_on_one_workspace_hear_of_each_other(site: Site) -> None:
    site.put("a.txt", "one\n")
    with site.start(client="first") as first, site.start(client="second") as second:
        first.request("resources/subscribe", {"uri": uri(site, "a.txt")})
        sha, same = sha_of(first, "a.txt"), sha_of(second, "a.txt")
        edit = [{"oldText": "one", "newText": "two"}]
        done = second.call("edit_file", {"path": "a.txt", "expectedSha256": same, "edits": edit})
        first.wait_for(lambda notes: len(notes) == 1)
        late = first.call("write_file", {"path": "a.txt", "expectedSha256": sha, "content": "three\n"})

    assert (done["isError"], late["isError"]) == (False, True)
    assert late["structuredContent"]["error"]["kind"] == "stale_file"
    assert site.get("a.txt") == b"two\n"
