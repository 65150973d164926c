"""How much a page of the history holds, whatever the history is: the rest is one link away."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from front.mcp.site import HttpServer, Site
from front.review.test_page import cookie_of
from spec.marks import requirement
from surehold.app import Settings, open_workspace

MAX_NODES = 12_000
MAX_BYTES = 1_200_000
CHANGES = 260
FILES = 130
LONG_LINES = 50_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    place = tmp_path_factory.mktemp("site")
    (place / "root").mkdir()
    site = Site(root=place / "root", state=place / "state")
    with open_workspace(site.root, settings=Settings(state_dir=site.state, durability="none")) as workspace:
        session = workspace.session(agent="busy", id="busy")
        for number in range(FILES):
            lines = (f"x{line} = call({line}, 'text')  # {number}\n" for line in range(120))
            session.create(f"f{number:03}.py", "".join(lines))
        for number in range(CHANGES - FILES):
            path = f"f{number % FILES:03}.py"
            session.edit(path, ("x60 = call", "y60 = called"), reason=f"change {number}")
        other = workspace.session(agent="long", id="long")
        other.create("long.txt", "".join(f"value {number} = {number * 7}\n" for number in range(LONG_LINES)))
        other.create("wide.js", f"{'var x = 1;' * 300_000}\n")
    return site


@pytest.fixture(scope="module")
def server(site: Site) -> Iterator[HttpServer]:
    with site.serve("serve", "--port", "0") as running:
        yield running


def get(server: HttpServer, path: str) -> str:
    status, _, body = server.send("GET", path, headers=cookie_of(server))
    assert status == 200, body
    assert len(body) <= MAX_BYTES, f"{path}: {len(body)} bytes"
    text = body.decode()
    nodes = len(re.findall(r"<[a-z]", text))
    assert nodes <= MAX_NODES, f"{path}: {nodes} nodes"
    return text


def link_named(text: str, name: str) -> str:
    found = re.search(rf'<a href="([^"]+)">{name}</a>', text)
    return found[1].replace("&amp;", "&") if found else ""


@requirement("history:page:paged")
def test_every_page_of_a_long_history_is_bounded(site: Site, server: HttpServer) -> None:
    with site.open() as workspace:
        changes = [workspace.history.log()[number].change_id for number in (0, 1)]

    for path in ("/", "/review/sessions", "/review/changes", "/review/file?path=long.txt", "/review/file?path=wide.js"):
        get(server, path)
    for change in changes:
        get(server, f"/review/change/{change}")
        get(server, f"/review/change/{change}?view=split")
    get(server, "/review/session/long")


@requirement("history:page:paged")
def test_all_changes_and_files_of_a_long_conversation_are_reached_by_links(server: HttpServer) -> None:
    seen, path = set[str](), "/review/session/busy"
    while path:
        text = get(server, path)
        steps = re.findall(r'<li class="" tabindex="-1">.*?<a href="/review/change/([^"]+)">', text)
        assert not seen & {*steps}
        seen |= {*steps}
        path = link_named(text, "Older changes of this conversation")
    assert len(seen) == CHANGES

    files, path = list[str](), "/review/session/busy"
    while path:
        text = get(server, path)
        files += re.findall(r'<article class="file".*?<code>(f\d+\.py)</code>', text)
        path = link_named(text, "Go on") if "more files." in text else ""
        path = re.findall(r'more files?\. <a href="([^"]+)">', text)[0].replace("&amp;", "&") if path else ""
    assert files == [f"f{number:03}.py" for number in range(FILES)]


@requirement("history:page:paged")
def test_a_long_diff_and_who_wrote_a_long_file_are_read_in_parts(site: Site, server: HttpServer) -> None:
    with site.open() as workspace:
        change = workspace.history.log()[1].change_id
    text = get(server, f"/review/change/{change}")
    following = get(server, link_named(text, "Go on"))
    last = max(map(int, re.findall(r'class="added" data-old="" data-new="(\d+)"', text)))
    assert int(re.findall(r'data-new="(\d+)"', following)[0]) == last + 1

    numbers, path = list[int](), f"/review/file?path={quote('long.txt')}"
    for _ in range(3):
        text = get(server, path)
        numbers += map(int, re.findall(r'class="same" data-old="(\d+)"', text))
        path = link_named(text, "Later lines")
    assert numbers == [*range(1, len(numbers) + 1)]
    assert len(numbers) == 3000
    assert 'data-old="49001"' in get(server, "/review/file?path=long.txt&line=49000")
    assert link_named(get(server, "/review/file?path=long.txt&line=49000"), "Later lines") == ""


@requirement("history:page:paged", "engine:trash:pages", "history:page:trash")
def test_a_long_trash_is_read_in_parts(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    site = Site(root=tmp_path / "root", state=tmp_path / "state")
    with open_workspace(site.root, settings=Settings(state_dir=site.state, durability="none")) as workspace:
        session = workspace.session(agent="tidy")
        for number in range(FILES):
            session.create(f"f{number:03}.py", "x = 1\n")
            session.delete(f"f{number:03}.py")

    files, path = list[str](), "/review/trash"
    with site.serve("serve", "--port", "0") as server:
        while path:
            text = get(server, path)
            files += re.findall(r"<code>(f\d+\.py)</code>", text)
            path = link_named(text, "Files that were deleted earlier")
        assert server.send("GET", "/review/trash?after=none", headers=cookie_of(server))[0] == 404
    assert files == [f"f{number:03}.py" for number in reversed(range(FILES))]
