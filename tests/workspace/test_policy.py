from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pathspec import GitIgnoreSpec

from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.errors import DeniedByRule, InvalidArgument, PermissionDenied, ProtectedPath, SureholdError
from surehold.workspace.access.protected_names import PROTECTED
from surehold.workspace.paths import Policy
from surehold.workspace.workspace import Workspace
from workspaces import make_bench, real_workspace

RULES = Policy(
    deny=("secrets/", "*.pem", "!public.pem"), unprotected=(".vscode/settings.json",), allow=("src/", "link")
)


@requirement("engine:policy:protected", "engine:policy:case")
@pytest.mark.parametrize(
    "name",
    [
        ".git/config",
        "sub/.git/hooks/pre-commit",
        ".GIT/config",
        ".gitconfig",
        ".bashrc",
        ".zshrc",
        ".hammerspoon/init.lua",
        ".vagrant.d/Vagrantfile",
        ".config/nix/nix.conf",
        ".config/mpv/scripts/a.lua",
        ".config/qutebrowser/config.py",
        ".task/hooks/on-add",
        ".mcp.json",
        ".claude.json",
        ".claude/settings.json",
        ".vscode/tasks.json",
        "project.code-workspace",
        "lib/.exrc",
        ".dir-locals.el",
        ".windsurf/mcp.json",
        "sub/.npmrc",
        "pip.conf",
    ],
)
def test_configuration_of_other_programs_is_protected_wherever_it_lies(name: str) -> None:
    RULES.check_read(name, name)
    assert RULES.rules_for(name, name).protected_by


@requirement("engine:policy:programs")
@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("surehold.toml", "surehold"),
        (".zshrc.local", "zsh"),
        (".profile.d/a.sh", "sh"),
        (".bashrc.d/x", "bash"),
        (".inputrc", "bash"),
        (".config/fish/config.fish", "fish"),
        ("home/.config/fish/config.fish", "fish"),
        (".config/systemd/user/a.service", "systemd"),
        (".config/autostart/a.desktop", "the desktop"),
        ("cron.d/a", "cron"),
        (".hgrc", "hg"),
        (".hg/hgrc", "hg"),
        (".jj/repo/config.toml", "jj"),
        (".gitconfig.local", "git"),
        (".githooks/pre-commit", "git"),
        (".config/git/config", "git"),
        (".emacs.el", "emacs"),
        (".doom.d/config.el", "emacs"),
        (".helix/languages.toml", "helix"),
        (".config/zed/settings.json", "zed"),
        ("app.sublime-project", "Sublime Text"),
        (".run/tests.run.xml", "JetBrains editors"),
        ("hie.yaml", "language servers"),
        (".kiro/settings/mcp.json", "Kiro and Amazon Q"),
        (".amazonq/mcp.json", "Kiro and Amazon Q"),
        (".cline/mcp.json", "Cline and Roo"),
        (".junie/mcp/mcp.json", "Junie"),
        ("mcp.json", "MCP clients"),
        (".github/hooks/a.json", "Copilot"),
        (".github/copilot/settings.json", "Copilot"),
        (".gradle/init.d/a.gradle", "Gradle"),
        (".m2/settings.xml", "Maven"),
        ("uv.toml", "pip and other Python installers"),
        ("NuGet.Config", "NuGet"),
        ("rust-toolchain.toml", "cargo"),
        (".mise.toml", "mise, asdf and other tool managers"),
        ("mise.local.toml", "mise, asdf and other tool managers"),
        (".tool-versions", "mise, asdf and other tool managers"),
        (".envrc", "direnv"),
        (".Rprofile", "R"),
        ("sitecustomize.py", "Python"),
        ("env/pyvenv.cfg", "Python"),
        ("init.gradle.kts", "Gradle"),
        ("lib/x.pth", "Python"),
        (".pdbrc", "Python"),
        (".irbrc", "Ruby"),
        (".pryrc", "Ruby"),
        (".ghci", "Haskell"),
        (".gdbinit", "gdb"),
        ("libfoo.so-gdb.py", "gdb"),
        (".lldbinit", "lldb"),
        (".psqlrc", "clients of databases"),
        (".tmux.conf", "tmux"),
        (".screenrc", "screen"),
        (".ssh/config", "ssh"),
        (".aws/config", "clouds and containers"),
        (".zsh_aliases", "zsh"),
        (".zinit/a.zsh", "zsh"),
        (".aliases", "sh"),
        (".config/readline/inputrc", "bash"),
        (".envrc.private", "direnv"),
        (".local/share/bash-completion/completions/git", "programs found by name"),
        (".local/share/dbus-1/services/a.service", "the desktop"),
        (".config/user-dirs.dirs", "the desktop"),
        (".config/wireplumber/a.lua", "sound"),
        (".local/share/nvim/site/plugin/a.lua", "neovim"),
        (".lsp/config.edn", "language servers"),
        (".luarc.json", "language servers"),
        (".factorypath", "language servers"),
        ("mcp-config.json", "MCP clients"),
        (".docker/mcp/config.yaml", "MCP clients"),
        (".conductor/settings.toml", "other agents"),
        ("Directory.Build.rsp", "MSBuild"),
        (".gclient", "git clients"),
        (".nexrc", "vim"),
        (".config/Cursor/User/settings.json", "Cursor"),
        (".config/Windsurf/User/settings.json", "Windsurf"),
        (".grok/settings.json", "other agents"),
        ("codebuff.json", "other agents"),
        (".repo/repo/main.py", "svn and other version control"),
        (".reviewboardrc", "git clients"),
        (".cache/pre-commit/repo/hook.py", "hooks of version control"),
        (".config/pnpm/rc", "npm, yarn, pnpm and bun"),
        (".config/gem/gemrc", "gem and bundler"),
        (".R/Makevars", "R"),
        (".lintr", "R"),
        ("matplotlibrc", "Python"),
        (".local/share/jupyter/kernels/a/kernel.json", "Python"),
        (".config/sqlite3/sqliterc", "clients of databases"),
        ("lean-toolchain", "other languages"),
        (".config/k9s/plugins.yaml", "clouds and containers"),
        (".config/notmuch/default/hooks/post-new", "mail programs"),
        (".config/google-chrome/NativeMessagingHosts/a.json", "chat and web programs"),
        (".modulerc", "environment modules"),
        (".parallel/config", "GNU parallel"),
    ],
)
def test_files_that_a_program_runs_by_itself_are_protected_and_name_it(name: str, program: str) -> None:
    assert Policy().rules_for(name, name).program == program
    assert Policy().rules_for(f"a/b/{name}", f"a/b/{name}".upper()).protected_by


@requirement("engine:policy:programs")
def test_a_root_may_be_the_first_half_of_a_protected_name(tmp_path: Path) -> None:
    root = tmp_path / ".config"
    root.mkdir()
    with open_workspace(root, settings=Settings(state_dir=tmp_path / "state")) as workspace:
        session = workspace.session()
        with pytest.raises(ProtectedPath, match="configures fish"):
            session.create_file("fish/config.fish", "x\n")
        session.create_file("some-app/settings.toml", "x\n")


def test_the_name_of_a_root_alone_protects_nothing() -> None:
    assert not Policy().rules_for("a.vim", "a.vim", root_name=".vim").protected_by
    assert Policy().rules_for("config.json", "config.json", root_name=".docker").protected_by


@requirement("engine:policy:ordinary")
@pytest.mark.parametrize(
    "name",
    [
        *(
            "package.json",
            "Makefile",
            "pyproject.toml",
            ".github/workflows/ci.yml",
            "AGENTS.md",
            "CLAUDE.md",
            "setup.py",
        ),
        *(".gitignore", ".gitattributes", ".github/copilot-instructions.md", "eslint.config.js", ".eslintrc.js"),
        *(
            "conftest.py",
            "Dockerfile",
            "build.gradle",
            "justfile",
            ".config/nextest.toml",
            ".docker/nginx.conf",
            ".env",
        ),
        *("config/git", "docs/profile", "src/vimrc", "crontab", "tests/.config/other/fish"),
    ],
)
def test_what_projects_are_made_of_is_not_protected(name: str) -> None:
    assert not Policy().rules_for(name, name).protected_by


@pytest.mark.parametrize("rules", [(".config/fish",), ("/name",), ("name/",), ("#name",), ("na*",), ("name", "!name")])
def test_a_rule_that_is_more_than_a_name_is_read_as_git_reads_it(rules: tuple[str, ...]) -> None:
    spec = GitIgnoreSpec.from_lines(rules)
    for name in ("name", "a/name", "name/a", "a/name/b", ".config/fish", "a/.config/fish", "#name"):
        assert bool(Policy(ask=rules).rules_for(name, name).asked_by) == spec.match_file(name)


@requirement("engine:policy:deny", "engine:policy:case")
@pytest.mark.parametrize("name", ["secrets/a", "x/secrets/a", "key.pem", "KEY.PEM", "a/b/key.pem"])
def test_a_denied_path_is_neither_read_nor_written(name: str) -> None:
    for check in (RULES.check_read, RULES.rules_for):
        with pytest.raises(DeniedByRule):
            check(name, name)


@pytest.mark.parametrize(
    "name", ["public.pem", "a.txt", "gitconfig", "src/main.py", ".gitignore", ".github/workflows/ci.yml"]
)
def test_everything_else_is_open(name: str) -> None:
    assert not RULES.rules_for(name, name).protected_by


@requirement("engine:policy:unprotected")
def test_a_rule_may_say_that_a_path_is_not_protected() -> None:
    assert not RULES.rules_for(".vscode/settings.json", ".vscode/settings.json").protected_by
    assert RULES.rules_for(".vscode/tasks.json", ".vscode/tasks.json").protected_by


@requirement("engine:policy:unprotected")
def test_an_allow_rule_opens_neither_a_protected_nor_a_denied_path() -> None:
    assert RULES.rules_for("src/.mcp.json", "src/.mcp.json").protected_by
    both = Policy(deny=("a",), allow=("a",), unprotected=("a",))
    with pytest.raises(DeniedByRule):
        both.rules_for("a", "a")


@requirement("engine:policy:both_paths")
def test_an_allow_rule_must_match_the_name_and_what_it_leads_to() -> None:
    assert RULES.rules_for("link", "src/a").allowed
    assert not RULES.rules_for("link", "other").allowed
    assert not RULES.rules_for("other", "src/a").allowed


@requirement("engine:policy:both_paths")
def test_an_ask_rule_may_match_either() -> None:
    rules = Policy(ask=("deploy/",))

    assert rules.rules_for("link", "deploy/a").asked_by == "deploy/"
    assert rules.rules_for("deploy/a", "a").asked_by == "deploy/"
    assert not rules.rules_for("link", "a").asked_by


@requirement("engine:policy:both_paths")
def test_the_requested_and_the_final_path_are_both_asked() -> None:
    for requested, final in (("link", "secrets/a"), ("secrets/a", "plain")):
        with pytest.raises(DeniedByRule):
            RULES.check_read(requested, final)


def test_the_rule_that_decides_is_named() -> None:
    with pytest.raises(DeniedByRule) as refused:
        RULES.check_read("a.pem", "a.pem")

    assert refused.value.details == {"rule": "*.pem"}


@requirement("engine:policy:both_paths")
def test_a_link_to_a_denied_file_does_not_open_it(tmp_path: Path) -> None:
    bench = make_bench("memory", "local", tmp_path, policy=Policy(deny=("secret",)))
    bench.put("secret", b"x")
    (bench.root / "innocent").symlink_to("secret")

    with pytest.raises(DeniedByRule):
        bench.workspace.read("innocent")
    bench.workspace.close()


@requirement("engine:policy:protected")
@pytest.mark.parametrize("name", ["./.env/../.git/config", ".git//config", "a/../.git/config", ".git/./config"])
def test_other_spellings_of_a_protected_path_are_protected(tmp_path: Path, name: str) -> None:
    bench = make_bench("memory", "local", tmp_path)
    (bench.root / ".env").mkdir()
    (bench.root / "a").mkdir()

    with pytest.raises(ProtectedPath):
        bench.workspace.session().create(name, "x")
    bench.workspace.close()


@requirement("engine:policy:state_dir")
def test_the_state_directory_inside_a_root_is_closed_to_every_tool(tmp_path: Path) -> None:
    with real_workspace(tmp_path, state=tmp_path / "inside" / "state") as workspace:
        workspace.session().create("a", "x")

        for attempt in _attempts(workspace, "inside/state/state.db"):
            with pytest.raises(SureholdError) as refused:
                attempt()
            assert refused.value.reason == "protected_path"


def _attempts(workspace: Workspace, path: str) -> list[Callable[[], object]]:
    session = workspace.session()
    return [
        lambda: session.read(path),
        lambda: session.edit(path, ("a", "b")),
        lambda: session.create(path, "x"),
        lambda: session.delete(path, expected_sha256="0" * 64),
        lambda: session.move(path, "b"),
        lambda: session.move("a", path),
    ]


@requirement("engine:policy:protected", "claude:permission:five_names")
def test_the_five_protected_files_of_the_contract_are_protected() -> None:
    assert {".gitconfig", ".bashrc", ".zshrc", ".mcp.json", ".claude.json"} <= set(PROTECTED)


@pytest.mark.parametrize("name", [".git", "sub/.git", ".ssh", ".vscode", ".claude"])
def test_a_file_with_the_name_of_a_protected_directory_is_protected_too(name: str) -> None:
    assert RULES.rules_for(name, name).protected_by


def test_accents_may_be_composed_either_way() -> None:
    composed, parted = "caf\u00e9", "cafe\u0301"

    for rule, name in ((composed, parted), (parted, composed)):
        with pytest.raises(DeniedByRule):
            Policy(deny=(rule,)).check_read(name, name)


def test_rules_say_nothing_about_directories_above_a_root_however_it_is_spelled(tmp_path: Path) -> None:
    (tmp_path / "data" / ".claude" / "tree").mkdir(parents=True)
    (tmp_path / "home").symlink_to("data")
    root = tmp_path / "home" / ".claude" / "tree"
    with real_workspace(root, state=tmp_path / "state", allow=("/src",)) as workspace:
        session = workspace.session(mode="dontAsk")
        session.create(f"{root}/src/a", "x")
        session.create(f"{root.resolve()}/src/b", "x")
        with pytest.raises(PermissionDenied):
            session.create(f"{root}/c", "x")
        with pytest.raises(ProtectedPath):
            session.create(f"{root}/.claude/c", "x")


def test_rules_apply_to_a_link_in_one_root_that_leads_to_another(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    (two / "a").write_bytes(b"x")
    (one / "hidden").symlink_to(two)
    settings = Settings(state_dir=tmp_path / "state", deny=("/hidden",))
    with open_workspace(one, two, settings=settings) as workspace:
        for name in ("hidden/a", f"{one}/hidden/a", f"{one}/./hidden//a"):
            with pytest.raises(DeniedByRule):
                workspace.read(name)
        assert workspace.read(str(two / "a")).data == b"x"


@requirement("engine:policy:protected")
@pytest.mark.parametrize(("key", "named"), [("", "state/a"), ("state/b", "state/b")])
def test_a_path_in_the_state_is_refused_by_its_name_in_the_workspace(key: str, named: str) -> None:
    with pytest.raises(ProtectedPath) as refused:
        Policy(state_dir="state").check_read("state/a", "state/a", key=key)
    assert (refused.value.path, refused.value.message) == (named, f"`{named}` belongs to Surehold itself.")


@pytest.mark.parametrize("kind", ["deny", "ask", "allow", "protected", "unprotected"])
@pytest.mark.parametrize(("rule", "problem"), [("!", "Invalid git pattern: '!'"), ("[z-a]", "bad character range z-a")])
def test_a_rule_of_any_kind_that_cannot_be_understood_is_refused_at_once(kind: str, rule: str, problem: str) -> None:
    bad: dict[str, Any] = {kind: ("fine", rule)}
    with pytest.raises(InvalidArgument) as refused:
        Policy(**bad)

    assert refused.value.reason == "bad_rule"
    assert refused.value.message.startswith(f"A rule cannot be understood: {problem}")
