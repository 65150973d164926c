"""The plugins that `make plugin` builds; their hosts' own validators judge them in `make conformance`."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from spec.marks import requirement
from surehold import __version__
from surehold.front.hosts.claude import claude_hooks
from surehold.front.hosts.gemini import gemini_hooks

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
