"""The plugins that `make plugin` builds; their hosts' own validators judge them in `make conformance`."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import plugin

from spec.marks import requirement
from surehold import __version__
from surehold.front.cli.main import build_parser
from surehold.front.hosts.claude import claude_hooks
from surehold.front.hosts.gemini import gemini_hooks
from tool_names import DEFAULT_TOOLS

SCRIPT = Path(__file__).parents[3] / "scripts" / "plugin.py"


@requirement("host:setup:plugins")
def test_three_plugins_are_built_with_the_hooks_of_the_setup(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(SCRIPT), str(tmp_path)], check=True)
    documents = {
        str(path.relative_to(tmp_path)): json.loads(path.read_bytes())
        for path in tmp_path.rglob("*.json")
        if path.is_file()
    }

    assert documents["claude/.claude-plugin/marketplace.json"]["plugins"][0]["source"] == "./surehold"
    assert documents["claude/surehold/hooks/hooks.json"]["hooks"] == claude_hooks("surehold hook claude")
    assert documents["gemini/hooks/hooks.json"]["hooks"] == gemini_hooks("surehold hook gemini")
    assert documents["agent-plugin/mcp.json"]["mcpServers"]["surehold"]["args"] == ["mcp"]
    about = ("claude/surehold/.claude-plugin/plugin.json", "agent-plugin/plugin.json", "gemini/gemini-extension.json")
    assert {documents[name]["version"] for name in about} == {__version__}
    commands = {path.stem for path in (tmp_path / "claude/surehold/commands").iterdir()}
    assert commands == {"undo", "log", "review"} == {path.stem for path in tmp_path.rglob("*.toml")}
    assert all(tomllib.loads(path.read_text(encoding="utf-8"))["prompt"] for path in tmp_path.rglob("*.toml"))
    assert [path.parent.name for path in tmp_path.rglob("SKILL.md")] == ["surehold", "surehold"]


@requirement("host:setup:plugins")
def test_the_desktop_bundle_starts_the_server_that_is_in_it(tmp_path: Path) -> None:
    plugin.build_desktop_bundle(tmp_path / "one.mcpb")
    plugin.build_desktop_bundle(tmp_path / "two.mcpb")

    with ZipFile(tmp_path / "one.mcpb") as bundle:
        manifest, names = json.loads(bundle.read("manifest.json")), set(bundle.namelist())
    words = manifest["server"]["mcp_config"]["args"]
    assert words[:4] == ["run", "--no-dev", "--directory", "${__dirname}"]
    args = build_parser().parse_args(words[5:])
    assert (args.command, args.roots) == ("mcp", ["${user_config.directories}"])
    assert set(manifest["user_config"]) == {"directories"}
    assert manifest["version"] == __version__
    assert [one["name"] for one in manifest["tools"]] == DEFAULT_TOOLS
    assert names >= {manifest["server"]["entry_point"], "pyproject.toml", "LICENSE", "src/surehold/library/tools.json"}
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests/")]
    assert (tmp_path / "one.mcpb").read_bytes() == (tmp_path / "two.mcpb").read_bytes()
