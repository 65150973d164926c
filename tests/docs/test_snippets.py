"""Everything that README and docs/clients.md tell people to paste is tried here, with the real program."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from docs.official_client import PATIENCE, tools_over_http, tools_over_stdio
from docs.snippets import LANGUAGES, PROJECT, Command, Remote, Snippet, inline_commands, snippets, ways_in
from spec.marks import requirement
from surehold import __version__
from surehold.front.cli.main import build_parser
from surehold.front.hosts.table import KNOWN_HOSTS, OTHER_HOSTS
from tool_names import DEFAULT_TOOLS

SUREHOLD = str(Path(sys.executable).with_name("surehold"))
CLIENTS = ["Claude Code", "Claude Desktop", "Cursor", "VS Code", "Zed", "Codex", "Gemini CLI", "opencode", "Over HTTP"]

BLOCKS = snippets()
WAYS = [way for block in BLOCKS for way in ways_in(block)]
COMMANDS = [way for way in WAYS if isinstance(way, Command)]
REMOTES = [way for way in WAYS if isinstance(way, Remote)]
SERVERS = {command.words: command for command in COMMANDS if command.words[0] == "mcp"}
SERVING = [command for command in COMMANDS if command.words[0] == "serve"]


def page(name: str) -> str:
    return (PROJECT / name).read_text("utf-8")


def environment(home: Path) -> dict[str, str]:
    """Return a user's environment whose home is elsewhere."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}


def options(command: str) -> set[str]:
    """Return the options that the help of a command lists as its own."""
    done = subprocess.run((SUREHOLD, command, "--help"), capture_output=True, text=True, check=True)
    own = done.stdout.partition("\noptions:\n")[2].partition("\nglobal options:\n")[0]
    return set(re.findall(r"^  (--[a-z-]+)", own, re.MULTILINE))


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_block_is_of_a_kind_that_is_checked(block: Snippet) -> None:
    assert block.language in LANGUAGES


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language in {"json", "toml"}], ids=str)
def test_every_settings_block_can_be_read_and_names_a_server(block: Snippet) -> None:
    assert block.data
    assert ways_in(block)


@requirement("front:docs:clients")
@pytest.mark.parametrize("command", [*COMMANDS, *inline_commands()], ids=str)
def test_every_command_is_understood_by_the_real_command_line(command: Command) -> None:
    args = build_parser().parse_args(command.words)

    assert args.command == next((word for word in command.words if not word.startswith("-")), "")


@requirement("front:docs:clients")
@pytest.mark.parametrize("command", SERVERS.values(), ids=str)
def test_every_server_that_a_client_starts_answers_with_all_tools(command: Command, tmp_path: Path) -> None:
    project, another = tmp_path / "project", tmp_path / "another"
    project.mkdir()
    another.mkdir()
    places = {"/path/to/project": str(project), "/path/to/another": str(another), "${workspaceFolder}": str(project)}
    words = [places.get(word, word) for word in command.words]

    found = tools_over_stdio(
        [SUREHOLD, *words], cwd=project, log=tmp_path / "stderr.log", env=environment(tmp_path / "home")
    )

    assert found == DEFAULT_TOOLS
    roots = ", ".join(words[1:]) or f"{project} (the current directory)"
    said = (tmp_path / "stderr.log").read_text("utf-8")
    assert (
        said == f"surehold {__version__}: {len(DEFAULT_TOOLS)} tools on {roots} (mode acceptEdits); Ctrl-C ends it.\n"
    )


@requirement("front:docs:clients")
@pytest.mark.parametrize("command", SERVING, ids=str)
def test_every_server_over_http_lets_a_client_in_that_was_set_up_as_shown(command: Command, tmp_path: Path) -> None:
    project, token = tmp_path / "project", tmp_path / "token"
    project.mkdir()
    token.write_text("a-token-of-our-own\n", encoding="utf-8")
    places = {"/path/to/project": str(project), "8765": "0", "~/.config/surehold.token": str(token)}
    words = [SUREHOLD, *(places.get(word, word) for word in command.words)]
    shown = next(block.data for block in BLOCKS if block.language == "json" and '"url"' in block.text)

    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment(tmp_path / "home")) as server:
        try:
            assert server.stderr is not None
            address = re.search(r"http://127\.0\.0\.1:\d+/mcp", server.stderr.readline())
            assert address is not None
            entry: dict[str, Any] = shown["mcpServers"]["surehold"]
            if "--token-file" not in words:
                printed = json.loads(server.stderr.readline().removeprefix("Clients connect with: "))
                secret = printed["mcpServers"]["surehold"]["headers"]["Authorization"].removeprefix("Bearer ")
                assert printed == json.loads(
                    json.dumps(shown).replace(entry["url"], address[0]).replace("TOKEN", secret)
                )
            else:
                secret = token.read_text("utf-8").strip()
            headers = {name: value.replace("TOKEN", secret) for name, value in entry["headers"].items()}
            assert tools_over_http(address[0], headers) == DEFAULT_TOOLS
        finally:
            server.terminate()
            assert server.wait(PATIENCE) == 0


@requirement("front:docs:clients")
def test_the_shell_examples_run_from_top_to_bottom(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    shells = [block.text for block in BLOCKS if block.language == "sh"]
    (examples,) = [text for text in shells if text.startswith("echo ")]
    looks = [text for text in shells if re.match(r"(uvx )?surehold (tool|log) ", text)]
    assert len(looks) == 2
    home = environment(tmp_path / "home")
    script = (examples + "".join(looks)).replace("uvx surehold", "surehold").replace("/path/to/project", str(work))

    done = subprocess.run(
        ("sh", "-euc", script),
        cwd=work,
        env={**home, "PATH": f"{Path(SUREHOLD).parent}:{home['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"^\S+ +\w{8} +\S+ +(\w+) +hello\.txt", done.stdout, re.MULTILINE)[:2] == ["edit", "create"]
    assert re.search(r"^Intact: 7 entries", done.stdout, re.MULTILINE)
    assert list(work.iterdir()) == []


def test_the_first_command_to_install_works_where_pip_must_not_touch_the_system() -> None:
    install = next(block.text for block in BLOCKS if block.language == "sh" and " install " in block.text)

    assert install == 'uv tool install ".[all]"    # or: pipx install ".[all]"\n'
    for name in ("README.md", "docs/clients.md"):
        for line in re.findall(r'.*pip install "?\..*', page(name)):
            assert "env/bin/pip install" in line or "virtual environment" in line or "pipx install" in line, (
                name,
                line,
            )


def test_the_page_of_the_clients_has_the_table_of_hosts() -> None:
    chapter = page("docs/clients.md").partition("\n## What your model is shown\n")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in row.strip("|").split("|")] for row in chapter.splitlines() if row.startswith("| ")
    ]

    expected = [
        [one.name, one.tested or "-", f"`{one.client}`" if one.client else "-", one.limit_text, one.given, one.beyond]
        for one in (*KNOWN_HOSTS, OTHER_HOSTS)
    ]
    assert rows[1:] == expected


def test_every_client_over_http_is_given_the_same_address_and_token() -> None:
    assert {(remote.url, remote.authorization) for remote in REMOTES} == {("http://127.0.0.1:8765/mcp", "Bearer TOKEN")}
    assert len(REMOTES) == 4


def test_every_client_has_a_chapter_with_a_snippet_and_a_way_to_see_that_it_works() -> None:
    chapters = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", page("docs/clients.md"), re.MULTILINE | re.DOTALL))

    assert [name for name in CLIENTS if "See that it works: " not in chapters[name]] == []
    assert [name for name in CLIENTS if "```" not in chapters[name]] == []


def test_the_page_of_the_clients_names_every_flag_of_the_server_and_no_other() -> None:
    text = page("docs/clients.md")
    chapter = text.partition("\n## Flags\n")[2].partition("\n## ")[0]
    real = options("mcp") | options("serve")

    assert [flag for flag in sorted(real) if f"`{flag}" not in chapter] == []
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", chapter))
    assert named - real == {"--state-dir", "--blobs"}


def test_the_readme_lists_the_tools_that_there_are() -> None:
    chapter = page("README.md").partition("\n## The tools\n")[2].partition("\n## ")[0]

    assert sorted(re.findall(r"^\| `(\w+)` \|", chapter, re.MULTILINE)) == DEFAULT_TOOLS
