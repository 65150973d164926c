"""Which tools a server serves when families are chosen."""

from pathlib import Path

import pytest

from front.mcp.site import Site
from spec.marks import requirement
from surehold.library.families import FAMILIES, tools_of

CLAUDE = {"Edit", "Glob", "Grep", "NotebookEdit", "Read", "Write"}
MULTI_EDIT = {"edit_text_file", "multi_edit_text_file", "read_text_file", "write_text_file"}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "root").mkdir()
    return Site(root=tmp_path / "root", state=tmp_path / "state")


@requirement("promise:product:all_tools")
def test_all_serves_every_family_at_once(site: Site) -> None:
    with site.start("--tools", "all") as client:
        names = {tool["name"] for tool in client.request("tools/list")["tools"]}

    assert names == {tool.name for tool in tools_of(",".join(FAMILIES))}
    assert {"edit", "Edit", "glob", "Glob"} | CLAUDE | MULTI_EDIT <= names
    assert len(names) == 22


@requirement("promise:product:default_tools")
@pytest.mark.parametrize(("families", "names"), [("claude", CLAUDE), ("multi_edit", MULTI_EDIT)])
def test_a_family_can_be_served_alone(site: Site, families: str, names: set[str]) -> None:
    with site.start("--tools", families) as client:
        assert {tool["name"] for tool in client.request("tools/list")["tools"]} == names
