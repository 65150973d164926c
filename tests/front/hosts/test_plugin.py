"""The plugins that `make plugin` builds; their hosts' own validators judge them in `make conformance`."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import plugin
import pytest
from hatchling.builders.wheel import WheelBuilder

from front.shell import Shell
from spec.marks import requirement
from surehold import __version__
from surehold.capture.filter import can_listen
from surehold.front.cli.main import build_parser
from surehold.front.hosts.claude import HOST, claude_plugin_hooks
from surehold.front.hosts.gemini import gemini_hooks
from tool_names import DEFAULT_TOOLS

SUREHOLD = str(Path(sys.executable).with_name("surehold"))
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
    assert documents["claude/surehold/hooks/hooks.json"]["hooks"] == claude_plugin_hooks("surehold hook claude")
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


@requirement("host:setup:plugins")
def test_the_project_in_the_desktop_bundle_can_be_installed(tmp_path: Path) -> None:
    plugin.build_desktop_bundle(tmp_path / "one.mcpb")
    with ZipFile(tmp_path / "one.mcpb") as bundle:
        bundle.extractall(tmp_path / "unpacked")

    [wheel] = WheelBuilder(str(tmp_path / "unpacked")).build(directory=str(tmp_path), versions=["standard"])

    with ZipFile(wheel) as built:
        assert set(built.namelist()) >= {"surehold/__main__.py", "surehold/library/tools.json", "surehold_start.pth"}


@requirement("host:setup:plugins")
def test_each_plugin_says_what_is_covered_and_what_is_not(tmp_path: Path) -> None:
    plugin.main(tmp_path)

    texts = {str(path.relative_to(tmp_path).parent): path.read_text("utf-8") for path in tmp_path.rglob("README.md")}
    assert set(texts) == {"claude/surehold", "agent-plugin", "gemini"}
    for text in texts.values():
        covered, _, missing = text.partition("## Not covered")
        assert "surehold mcp" in covered
        assert missing.strip().startswith("- ")
    assert all(name in texts["claude/surehold"] for name in (*HOST.edit_tools, *HOST.not_covered.values()))
    assert "surehold -c" in texts["claude/surehold"].partition("## Not covered")[0]


@requirement("host:setup:plugins", "host:hook:shell")
@pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")
@pytest.mark.parametrize("prefix", [(), (SUREHOLD, "-c")])
def test_the_shell_of_a_session_is_recorded_once_with_and_without_the_prefix(
    shell: Shell, tmp_path: Path, prefix: tuple[str, ...]
) -> None:
    shell.write("a.txt", "one\n")
    start = {"hook_event_name": "SessionStart", "session_id": "s-1", "cwd": str(shell.root), "source": "startup"}
    entry, variables = tmp_path / "entry.sh", {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s-1"}
    entry.touch()
    for _ in range(2):  # as a session begins, and as it goes on
        done = shell.process("hook", "claude", stdin=json.dumps(start).encode(), CLAUDE_ENV_FILE=str(entry))
        assert (done.stdout, done.stderr) == (b"{}\n", b"")
    # Two plugins that are the same have two files; the host puts all of them before each command.
    script = f"true && {entry.read_text('utf-8')}{entry.read_text('utf-8')}: && eval 'rm a.txt; echo $?; exit 3'"
    words = (*prefix, script) if prefix else ("bash", "-c", script)

    done = subprocess.run(words, cwd=shell.root, env=shell.environment(**variables), capture_output=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (3, b"0\n", b"")
    entries = shell.json("log")["entries"]
    [found] = [one for one in entries if one["path"] == "a.txt"]
    assert (found["operation"], found["session"], found["agent"]) == ("run", "s-1", "claude-code")
    assert {one["change_id"] for one in entries} == {found["change_id"]}
    shell("undo", "--session", "last")
    assert (shell.root / "a.txt").read_text("utf-8") == "one\n"


@requirement("host:hook:shell")
def test_a_shell_goes_on_without_our_program(shell: Shell, tmp_path: Path) -> None:
    entry = tmp_path / "entry.sh"
    start = {"hook_event_name": "SessionStart", "session_id": "s-1", "cwd": str(shell.root)}
    shell.process("hook", "claude", stdin=json.dumps(start).encode(), CLAUDE_ENV_FILE=str(entry))
    gone = entry.read_text("utf-8").replace(SUREHOLD, "/gone/surehold")
    assert "/gone/surehold" in gone

    done = subprocess.run(
        ("bash", "-c", f"{gone}: && echo hi"), env=shell.environment(), capture_output=True, check=False
    )

    assert (done.stdout, done.stderr) == (b"hi\n", b"")
