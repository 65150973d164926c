"""Builds the plugins: for Claude Code (with a marketplace), Agent Plugins 1.0, an extension for Gemini CLI, a desktop bundle.

`python scripts/plugin.py DIRECTORY` writes three folders and `surehold.mcpb`. What they say comes from the same place as
`surehold setup`.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from surehold import __version__
from surehold.front.hosts.agent_host import AgentHost
from surehold.front.hosts.claude import HOST as CLAUDE
from surehold.front.hosts.claude import claude_plugin_hooks
from surehold.front.hosts.gemini import HOST as GEMINI
from surehold.front.hosts.gemini import gemini_hooks
from surehold.library.families import list_tools

PROJECT = Path(__file__).parents[1]
NAME = "surehold"
SENTENCE = "File tools that never lose an edit; undo what an agent did, whatever it used."
SERVER = {"command": "surehold", "args": ["mcp"]}
COMMANDS = {
    "undo": (
        "Take back what was done in this session",
        (
            "Run `surehold undo $ARGUMENTS --dry-run`, show the person what would change, and after they agree run it\n"
            "without `--dry-run`. Without arguments it takes back the newest change. Do not edit files by hand instead."
        ),
    ),
    "log": ("List what was changed, newest first", "Run `surehold log $ARGUMENTS` and show the result as it is."),
    "review": (
        "Show what changed, for review",
        (
            "Run `surehold log --json`, then `surehold show CHANGE` for each change of this session. Sum up what was\n"
            "changed in which file and why, and name what looks unintended. Change nothing."
        ),
    ),
}
SKILL = """\
---
name: surehold
description: Use when a file was changed or deleted by mistake, when an edit is refused as stale, or when asked to undo.
---

# Surehold

Every change of this project is recorded with the bytes from before.

- Undo: `surehold log` names the changes, `surehold undo CHANGE --dry-run` shows what would happen, `surehold undo CHANGE`
  does it. Later changes stay. `surehold redo` reverses an undo.
- A deleted file: `surehold trash list`, then `surehold restore PATH`.
- "Nothing was written": the refusal has the fresh lines and the sha256; retry with them, without reading again.
- Never restore a file from memory, and never use `git checkout` or `git reset` to undo: both lose the work of others.
"""
README = """\
# Surehold for {name}

{sentence} Install the program first: `uv tool install surehold`.

## Covered

{covered}

## Not covered

{missing}
"""
OWN_TOOLS = "Our own tools, by the server `surehold mcp`."
TURNS = "Turns, by its prompts."
NO_CAPTURE = (
    "The shell where calls cannot be captured, as outside of Linux. A command runs anyway, and standard error says so."
)


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    build_claude(folder / "claude")
    build_agent_plugin(folder / "agent-plugin")
    build_gemini(folder / "gemini")
    build_desktop_bundle(folder / "surehold.mcpb")


def build_claude(folder: Path) -> None:
    """A marketplace with one plugin in it; the shell prefix is a setting, which only `surehold setup` can make."""
    plugin = folder / NAME
    entry = {"name": NAME, "source": f"./{NAME}", "description": SENTENCE}
    market = {"name": NAME, "owner": {"name": NAME}, "metadata": {"description": SENTENCE}, "plugins": [entry]}
    _write_json(folder / ".claude-plugin" / "marketplace.json", market)
    about = {
        "name": NAME,
        "version": __version__,
        "description": SENTENCE,
        "author": {"name": NAME},
        "license": "Apache-2.0",
    }
    _write_json(plugin / ".claude-plugin" / "plugin.json", about)
    _write_json(plugin / ".mcp.json", {"mcpServers": {NAME: SERVER}})
    _write_json(plugin / "hooks" / "hooks.json", {"hooks": claude_plugin_hooks("surehold hook claude")})
    for name, (sentence, text) in COMMANDS.items():
        _write(plugin / "commands" / f"{name}.md", f"---\ndescription: {sentence}\n---\n\n{text}\n")
    _write(plugin / "skills" / NAME / "SKILL.md", SKILL)
    covered = (
        OWN_TOOLS,
        f"Its own edit tools, by hooks: {', '.join(CLAUDE.edit_tools)}.",
        (
            "Its shell, and whatever that starts: as a session begins, a hook lets the shell of each command begin with\n"
            "  `surehold -c`. Your permission rules see the command as the agent wrote it. After `surehold setup claude`, which\n"
            "  sets a shell prefix, a command is still recorded once."
        ),
        TURNS,
    )
    earlier = "The shell in sessions that began before the plugin was there; start a new one."
    doctor = "`surehold doctor --host claude` looks for what `surehold setup claude` writes, not for a plugin."
    _write_readme(plugin, CLAUDE.name, covered, (earlier, NO_CAPTURE, *_not_covered(CLAUDE), doctor))


def build_agent_plugin(folder: Path) -> None:
    schemas = "https://agent-plugins.org/schemas/1.0.0"
    about = {"name": NAME, "version": __version__, "description": SENTENCE, "license": "Apache-2.0"}
    _write_json(folder / "plugin.json", {"$schema": f"{schemas}/plugin.schema.json", **about})
    servers = {NAME: {"type": "stdio", **SERVER}}
    _write_json(folder / "mcp.json", {"$schema": f"{schemas}/mcp.schema.json", "mcpServers": servers})
    _write(folder / "skills" / NAME / "SKILL.md", SKILL)
    missing = (
        "The host's own edit tools, its shell, and turns: such a plugin has no hooks. `surehold setup HOST` adds them."
    )
    _write_readme(folder, "hosts of Agent Plugins 1.0", (OWN_TOOLS,), (missing,))


def build_gemini(folder: Path) -> None:
    about = {"name": NAME, "version": __version__, "description": SENTENCE, "mcpServers": {NAME: SERVER}}
    _write_json(folder / "gemini-extension.json", {**about, "contextFileName": "SUREHOLD.md"})
    _write_json(folder / "hooks" / "hooks.json", {"hooks": gemini_hooks("surehold hook gemini")})
    _write(folder / "SUREHOLD.md", SKILL.partition("---\n\n")[2])
    covered = (
        OWN_TOOLS,
        f"Its own edit tools, by hooks: {', '.join(GEMINI.edit_tools)}.",
        f"Its shell, and whatever that starts: a hook puts the command of {GEMINI.shell_tool} under `surehold -c`.",
        TURNS,
    )
    _write_readme(folder, GEMINI.name, covered, (NO_CAPTURE, *_not_covered(GEMINI)))
    for name, (sentence, text) in COMMANDS.items():
        prompt = text.replace("$ARGUMENTS", "{{args}}")
        _write(
            folder / "commands" / NAME / f"{name}.toml", f'description = "{sentence}"\nprompt = """\n{prompt}\n"""\n'
        )


def build_desktop_bundle(file: Path) -> None:
    """A bundle (MCPB) for desktop programs that run servers with uv: the package itself, and what to ask the person."""
    manifest = {
        "manifest_version": "0.4",
        "name": NAME,
        "display_name": "Surehold",
        "version": __version__,
        "description": SENTENCE,
        "author": {"name": NAME},
        "license": "Apache-2.0",
        "server": {
            "type": "uv",
            "entry_point": "src/surehold/__main__.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--no-dev", "--directory", "${__dirname}", NAME, "mcp", "${user_config.directories}"],
            },
        },
        "tools": [{"name": one.name, "description": one.hints.title} for one in list_tools()],
        "user_config": {
            "directories": {
                "type": "directory",
                "title": "Directories",
                "description": "The agent may read and change files below these, and nowhere else.",
                "required": True,
                "multiple": True,
            }
        },
        "compatibility": {"platforms": ["linux"], "runtimes": {"python": ">=3.11"}},
    }
    sources = [*PROJECT.glob("src/surehold/**/*"), *PROJECT.glob("examples/surehold_acp_agent/**/*")]
    files = [one for one in sources if one.is_file() and "__pycache__" not in one.parts]
    files += [PROJECT / name for name in ("pyproject.toml", "README.md", "LICENSE", "src/surehold_start.pth")]
    with ZipFile(file, "w", ZIP_DEFLATED) as bundle:
        bundle.writestr(_member("manifest.json"), json.dumps(manifest, indent=2) + "\n")
        for one in sorted(files):
            bundle.writestr(_member(str(one.relative_to(PROJECT))), one.read_bytes())


def _write_readme(folder: Path, name: str, covered: Sequence[str], missing: Sequence[str]) -> None:
    rows = {"covered": covered, "missing": missing}
    lists = {key: "\n".join(f"- {one}" for one in sentences) for key, sentences in rows.items()}
    _write(folder / "README.md", README.format(name=name, sentence=SENTENCE, **lists))


def _not_covered(host: AgentHost) -> list[str]:
    return [f"{what[:1].upper()}{what[1:]}: {why}." for what, why in host.not_covered.items()]


def _member(name: str) -> ZipInfo:
    """Return a member with the same time in every build, so that the same source makes the same bundle."""
    member = ZipInfo(name)
    member.compress_type = ZIP_DEFLATED
    return member


def _write_json(path: Path, value: Any) -> None:
    _write(path, json.dumps(value, indent=2) + "\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
