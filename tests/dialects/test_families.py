"""Which tools a server serves when families are chosen."""

from pathlib import Path

import pytest

from front.mcp.site import Site
from spec.marks import requirement
from tool_names import ALL_TOOLS, FAMILY_TOOLS


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "root").mkdir()
    return Site(root=tmp_path / "root", state=tmp_path / "state")


@requirement("promise:product:all_tools")
def test_all_serves_every_family_at_once(site: Site) -> None:
    with site.start("--tools", "all") as client:
        names = {tool["name"] for tool in client.request("tools/list")["tools"]}

    assert names == set(ALL_TOOLS)


@requirement("promise:product:default_tools")
@pytest.mark.parametrize("family", ["claude", "multi_edit"])
def test_a_family_can_be_served_alone(site: Site, family: str) -> None:
    with site.start("--tools", family) as client:
        assert {tool["name"] for tool in client.request("tools/list")["tools"]} == FAMILY_TOOLS[family]
