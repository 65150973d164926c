"""Setting up hosts: what is written, what stays, and what is left after it is taken out again."""

import json
from pathlib import Path

import pytest

from front.shell import Shell
from spec.marks import requirement
from surehold.front.hosts.agent_host import HOST_KEYS, HostPlace, SetupScope, find_agent_host
from surehold.text.config.jsonc import JsoncText
from surehold.workspace.access.protected_names import PROTECTED
from surehold.workspace.paths import Policy

FOREIGN_JSON = (
    '\ufeff{\r\n\t// mine\r\n\t"theme": "dark", /* keep */\r\n\t"hooks": { "Stop": [ {"hooks": []} ] },\r\n}\r\n'
)
FOREIGN_TOML = '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "y" # theirs\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def foreign_files(host: str, scope: SetupScope) -> dict[str, str]:
    files = find_agent_host(host).settings(HostPlace(scope=scope, program="surehold", executable="/x/surehold"))
    names = [one.name for one in files if not one.name.endswith(".js")]
    return {name: FOREIGN_TOML if name.endswith(".toml") else FOREIGN_JSON for name in names}


@requirement("host:setup:files", "host:setup:undone")
@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("host", HOST_KEYS)
def test_a_host_is_set_up_and_taken_out_again_byte_for_byte(
    shell: Shell, home: Path, host: str, scope: SetupScope
) -> None:
    base = home if scope == "user" else shell.root
    for name, text in foreign_files(host, scope).items():
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_bytes(text.encode())
    before = tree(base)

    shown = shell("setup", host, f"--{scope}", "--dry-run")
    assert tree(base) == before
    said = shell("setup", host, f"--{scope}")
    after = tree(base)

    assert (said.code, said.err) == (0, "")
    assert after != before
    assert all(line in said.out for line in shown.out.splitlines() if line.startswith("+"))
    for name in before:
        assert b"surehold" in after[name]
        kept = [line for line in before[name].splitlines() if b"hooks" not in line and line.strip() not in b"}"]
        assert all(line.rstrip(b",") in after[name] for line in kept), name
    assert (
        shell("setup", host, f"--{scope}").out
        == f"{find_agent_host(host).name} is set up here already; nothing was changed.\n"
    )
    assert tree(base) == after
    assert shell("setup", host, f"--{scope}", "--remove").code == 0
    assert tree(base) == before


@requirement("host:setup:undone")
@pytest.mark.parametrize("host", HOST_KEYS)
def test_what_was_not_there_is_gone_afterwards(shell: Shell, home: Path, host: str) -> None:
    shell("setup", host, "--user")
    assert tree(home)
    shell("setup", host, "--user", "--remove")

    assert tree(home) == {}
    assert list(home.iterdir()) == [], "its directories are gone too"
    assert shell("setup", host, "--user", "--remove").out.endswith("nothing was changed.\n")


@requirement("host:setup:undone")
@pytest.mark.parametrize("host", HOST_KEYS)
def test_later_edits_of_others_stay_when_it_is_taken_out(shell: Shell, home: Path, host: str) -> None:
    for name, text in foreign_files(host, "user").items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_bytes(text.encode())
    shell("setup", host, "--user")
    for name in foreign_files(host, "user"):
        text = (home / name).read_bytes()
        (home / name).write_bytes(text.replace(b'"dark"', b'"light"').replace(b"# mine", b"# all mine"))
    shell("setup", host, "--user", "--remove")

    for name, text in foreign_files(host, "user").items():
        assert (home / name).read_bytes() == text.replace('"dark"', '"light"').replace("# mine", "# all mine").encode()


@requirement("host:setup:files")
def test_a_newer_program_takes_the_place_of_the_older_one(shell: Shell, home: Path) -> None:
    shell("setup", "claude", "--user")
    path = home / ".claude" / "settings.json"
    ours = path.read_text(encoding="utf-8")
    path.write_text(ours.replace("/surehold hook", "/old/surehold hook"), encoding="utf-8")

    shell("setup", "claude", "--user")

    assert path.read_text(encoding="utf-8") == ours


@requirement("host:setup:refused")
@pytest.mark.parametrize(
    ("name", "text"), [(".claude/settings.json", "{oops"), (".claude/settings.json", '{"hooks": 1}')]
)
def test_a_file_that_cannot_be_read_is_left_alone_and_so_are_the_others(
    shell: Shell, home: Path, name: str, text: str
) -> None:
    (home / name).parent.mkdir()
    (home / name).write_text(text, encoding="utf-8")
    before = tree(home)

    said = shell("setup", "claude", "--user")

    assert (said.code, said.out, tree(home)) == (1, "", before)
    assert name in said.err
    assert "surehold hook claude" in said.err, "it is shown what to add"


@requirement("front:exit:usage")
@pytest.mark.parametrize("words", [["setup"], ["doctor", "--host"]], ids=" ".join)
def test_an_unknown_host_is_wrong_usage_and_the_names_are_given(shell: Shell, words: list[str]) -> None:
    said = shell(*words, "emacs")

    assert said.code == 2
    assert all(name in said.err for name in HOST_KEYS)


@requirement("host:setup:files")
def test_a_directory_that_a_variable_names_is_used(shell: Shell, home: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    shell.patch.setenv("CODEX_HOME", str(moved))

    document = shell.json("setup", "codex", "--user")

    assert (document["directory"], sorted(tree(moved)), tree(home)) == (str(moved), ["config.toml", "hooks.json"], {})


@requirement("host:setup:own_history")
def test_settings_of_a_user_do_not_make_the_home_directory_a_workspace(shell: Shell, home: Path) -> None:
    below = home / "project"
    below.mkdir()
    shell("setup", "gemini", "--user")
    shell.patch.chdir(below)

    assert shell("log").out.startswith(f"Nothing has been changed through Surehold in {below}")


@requirement("host:setup:own_history")
def test_the_setup_of_a_project_is_a_change_that_can_be_undone(shell: Shell) -> None:
    change = shell.json("setup", "gemini")["change_id"]
    assert (shell.root / ".gemini" / "settings.json").is_file()

    shell("undo", change)

    assert tree(shell.root) == {}


@requirement("host:setup:protected")
@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("host", HOST_KEYS)
def test_the_files_that_setup_writes_are_protected(host: str, scope: SetupScope) -> None:
    policy = Policy(protected=PROTECTED)
    place = HostPlace(scope=scope, program="surehold", executable="/x/surehold")

    for file in find_agent_host(host).settings(place):
        assert policy.rules_for(file.name, file.name).protected_by, file.name


def test_the_hooks_are_where_the_host_looks_for_them(shell: Shell, home: Path) -> None:
    for host in HOST_KEYS:
        shell("setup", host, "--user")
    hooks = {
        ".claude/settings.json": "PreToolUse",
        ".codex/hooks.json": "PreToolUse",
        ".gemini/settings.json": "BeforeTool",
        ".cursor/hooks.json": "preToolUse",
        ".copilot/hooks/surehold.json": "preToolUse",
        ".copilot/hooks/surehold-vscode.json": "PreToolUse",
    }

    for name, event in hooks.items():
        settings = JsoncText((home / name).read_text(encoding="utf-8")).top.value
        assert "surehold hook" in json.dumps(settings["hooks"][event])
    assert "surehold" in (home / ".config/opencode/plugins/surehold.js").read_text(encoding="utf-8")
