"""The options of `surehold mcp`, and what is said at the start."""

import subprocess
import sys
from pathlib import Path

import pytest

from front.mcp.client import RpcFailed, StdioClient, surehold
from front.mcp.site import Site, data_of, text_of
from spec.marks import requirement
from surehold import __version__
from surehold.library.families import tools_of
from tool_names import DEFAULT_TOOLS
from waiting import HANG_SECONDS


def started(*words: str | Path, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a server whose client leaves at once."""
    import os

    kept = {name: value for name, value in os.environ.items() if name != "CLAUDE_PROJECT_DIR"}
    return subprocess.run(
        [sys.executable, *surehold(*words)],
        input="",
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**kept, **environment},
        timeout=HANG_SECONDS,
    )


@requirement("front:mcp:stdio", "front:mcp:flags")
def test_the_first_line_on_standard_error_says_what_is_served(site: Site) -> None:
    done = started("mcp", "--state-dir", site.state, cwd=site.root)
    named = started("mcp", "--state-dir", site.state, cwd=site.state, CLAUDE_PROJECT_DIR=str(site.root))

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        f"surehold {__version__}: {len(DEFAULT_TOOLS)} tools on {site.root} (the current directory) (mode acceptEdits); Ctrl-C ends it.\n"
    )
    assert f"{len(DEFAULT_TOOLS)} tools on {site.root} (CLAUDE_PROJECT_DIR) (mode acceptEdits)" in named.stderr


@requirement("front:mcp:flags")
@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["ROOT/missing"], 1, "is not a directory"),
        (["ROOT", "--tools", "nonsense"], 2, "No tool family is called `nonsense`."),
        (["ROOT", "--mode", "nonsense"], 2, "Wrong usage"),
        (["ROOT", "--http", "nonsense"], 2, "`nonsense` is not an address"),
        (["ROOT", "--http", "127.0.0.1:99999"], 2, "99999 is not a port."),
        (["ROOT", "--http", "1", "--token-file", "ROOT/missing"], 2, "cannot be read"),
        (["ROOT", "--max-chars", "none"], 2, "Wrong usage"),
        (["ROOT", "--state-dir", "ROOT/.."], 1, "must not be the workspace or contain it"),
    ],
)
def test_what_cannot_be_served_is_said_before_anything_is(site: Site, flags: list[str], code: int, said: str) -> None:
    words = [word.replace("ROOT", str(site.root)) for word in flags]
    done = started("mcp", *words, XDG_STATE_HOME=str(site.state))

    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_without_pipes_says_so(site: Site) -> None:
    command = f'exec "{sys.executable}" -m surehold mcp "{site.root}" --state-dir "{site.state}" <&-'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False, timeout=HANG_SECONDS)

    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    assert "Standard input or output is closed" in done.stderr


@requirement("front:mcp:flags")
def test_plan_mode_shows_changes_and_makes_none(site: Site) -> None:
    with site.start("--mode", "plan") as client:
        refused = client.call("create_file", {"path": "a.txt", "content": "x\n"})
        shown = client.call("create_file", {"path": "a.txt", "content": "x\n", "dryRun": True})
        client.wait_for_error("(mode plan)")

    assert (refused["isError"], data_of(refused)["error"]["reason"]) == (True, "plan_mode")
    assert text_of(refused).startswith("Nothing was written.")
    assert refused["structuredContent"] == data_of(refused)
    assert shown["isError"] is False
    assert list(site.root.iterdir()) == []
    assert site.log("a.txt") == [("create", False)]


@requirement("front:mcp:flags")
def test_a_lean_server_that_only_reads_lists_less_and_says_less(site: Site, server: StdioClient) -> None:
    site.put("seen.txt", "one\n")
    site.put("hidden.key", "no\n")
    with site.start("--lean", "--read-only", "--deny", "*.key", "--tools", "files") as client:
        lean = client.request("tools/list")["tools"]
        denied = client.call("read_file", {"path": "hidden.key"})
        listed = text_of(client.call("list_directory", {"path": "."}))
    full = {tool["name"]: tool["description"] for tool in server.request("tools/list")["tools"]}

    assert [tool["name"] for tool in lean] == [one.name for one in tools_of("files") if one.hints.read_only]
    assert all(tool["description"] == full[tool["name"]].partition("\n\n")[0] for tool in lean)
    assert len(client.opening["instructions"]) < len(server.opening["instructions"]) / 2
    assert data_of(denied)["error"]["reason"] == "policy"
    assert "seen.txt" in listed
    assert "hidden.key" not in listed


@requirement("front:mcp:flags")
def test_checks_and_protections_are_lifted_by_name_only(site: Site) -> None:
    site.put("a.txt", "one\n")
    site.put(".envrc", "one\n")
    edit = {"edits": [{"oldText": "one", "newText": "two"}]}
    flags = ("--allow-unchecked", "--unprotect", ".envrc", "--allow", ".bashrc", "--contract-errors")
    with site.start(*flags) as client:
        unchecked = client.call("edit_file", {"path": "a.txt", **edit})
        opened = client.call("edit_file", {"path": ".envrc", **edit})
        protected = client.call("create_file", {"path": ".bashrc", "content": "x"})

    assert (unchecked["isError"], opened["isError"], protected["isError"]) == (False, False, True)
    assert data_of(protected)["error"]["reason"] == "protected_path"


@requirement("front:mcp:flags")
def test_several_roots_are_served_together(site: Site, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    (second / "b.txt").write_text("two\n")
    command = surehold("mcp", site.root, second, "--state-dir", site.state)
    with StdioClient(command) as client:
        read = client.call("read_file", {"path": str(second / "b.txt")})
        uris = {row["uri"] for row in client.request("resources/list")["resources"]}

    assert text_of(read).endswith("two\n")
    assert {site.root.as_uri(), second.as_uri(), (second / "b.txt").as_uri()} <= uris


@requirement("front:mcp:flags")
def test_contract_errors_are_protocol_errors_of_one_family_and_of_no_other(site: Site) -> None:
    strings = {"old_string": "a", "new_string": "b"}
    outside = {"path": "/outside.txt", "content": "x", "edits": [strings], **strings}
    names = [tool.name for tool in tools_of("multi_edit")]
    codes = dict[str, int]()
    with site.start("--contract-errors", "--tools", "multi_edit,files") as client:
        for name in names:
            with pytest.raises(RpcFailed) as refused:
                client.call(name, outside)
            codes[name] = refused.value.code
        other = client.call("read_file", {"path": "/outside.txt"})

    assert sorted(codes) == ["edit_text_file", "multi_edit_text_file", "read_text_file", "write_text_file"]
    assert set(codes.values()) == {-32002}
    assert other["isError"]
