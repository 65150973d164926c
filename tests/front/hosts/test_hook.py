"""What the hooks of hosts record, with events as the hosts send them."""

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from front.shell import Said, Shell
from spec.marks import requirement
from surehold.capture.filter import can_listen
from surehold.front.cli.agent_commands import session_in
from surehold.front.hosts.agent_host import find_agent_host
from surehold.front.hosts.hook_notes import HookNotes
from surehold.front.hosts.shell import identify_caller

Event = Callable[[Shell, str], dict[str, Any]]
"""Returns an event of a host: `prompt`, `before`, `after`, `shell` or `end`."""

PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** Add File: new.txt\n+hi\n*** End Patch\n"


def claude(shell: Shell, kind: str) -> dict[str, Any]:
    names = {"prompt": "UserPromptSubmit", "before": "PreToolUse", "after": "PostToolUse", "end": "Stop"}
    call = {"tool_name": "Edit", "tool_input": {"file_path": str(shell.root / "a.txt")}, "tool_use_id": "call-1"}
    base = {"session_id": "s-1", "cwd": str(shell.root), "prompt_id": "t-1", "hook_event_name": names[kind]}
    return {**base, **(call if kind in {"before", "after"} else {}), "prompt": "do it"}


def codex(shell: Shell, kind: str) -> dict[str, Any]:
    names = {"prompt": "UserPromptSubmit", "after": "PostToolUse", "end": "Stop"}
    call = {"tool_name": "apply_patch", "tool_input": {"command": PATCH}, "tool_use_id": "call-1"}
    run = {"tool_name": "Bash", "tool_input": {"command": "rm 'a b.txt'"}, "tool_use_id": "call-1"}
    base = {"session_id": "s-1", "cwd": str(shell.root), "turn_id": "t-1", "prompt": "do it"}
    return {
        **base,
        **({"before": call, "after": call, "shell": run}.get(kind, {})),
        "hook_event_name": names.get(kind, "PreToolUse"),
    }


def gemini(shell: Shell, kind: str) -> dict[str, Any]:
    names = {"prompt": "BeforeAgent", "after": "AfterTool", "end": "AfterAgent"}
    call = {"tool_name": "replace", "tool_input": {"file_path": "a.txt", "old_string": "one", "new_string": "two"}}
    run = {"tool_name": "run_shell_command", "tool_input": {"command": "rm 'a b.txt'", "is_background": True}}
    base = {"session_id": "s-1", "cwd": str(shell.root), "prompt": "do it"}
    return {
        **base,
        **({"before": call, "after": call, "shell": run}.get(kind, {})),
        "hook_event_name": names.get(kind, "BeforeTool"),
    }


def opencode(shell: Shell, kind: str) -> dict[str, Any]:
    call = {"tool": "edit", "call": "call-1", "args": {"filePath": str(shell.root / "a.txt")}}
    return {"event": kind, "session": "s-1", "turn": "t-1", "cwd": str(shell.root), "prompt": "do it", **call}


def cursor(shell: Shell, kind: str) -> dict[str, Any]:
    names = {"prompt": "beforeSubmitPrompt", "after": "postToolUse", "end": "stop"}
    call = {"tool_name": "Write", "tool_input": {"file_path": str(shell.root / "a.txt")}, "tool_use_id": "call-1"}
    run = {"tool_name": "Shell", "tool_input": {"command": "rm 'a b.txt'"}, "tool_use_id": "call-1"}
    base = {"conversation_id": "s-1", "generation_id": "t-1", "workspace_roots": [str(shell.root)], "prompt": "do it"}
    return {
        **base,
        **({"before": call, "after": call, "shell": run}.get(kind, {})),
        "hook_event_name": names.get(kind, "preToolUse"),
    }


def copilot(shell: Shell, kind: str) -> dict[str, Any]:
    names = {"prompt": "userPromptSubmitted", "after": "postToolUse", "end": "agentStop"}
    call = {"toolName": "edit", "toolArgs": {"path": str(shell.root / "a.txt"), "old_str": "one", "new_str": "two"}}
    run = {"toolName": "bash", "toolArgs": {"command": "rm 'a b.txt'", "description": "d"}}
    base = {"sessionId": "s-1", "cwd": str(shell.root), "prompt": "do it"}
    return {
        **base,
        **({"before": call, "after": call, "shell": run}.get(kind, {})),
        "hook_event_name": names.get(kind, "preToolUse"),
    }


def vscode(shell: Shell, kind: str) -> dict[str, Any]:
    names = {"prompt": "UserPromptSubmit", "after": "PostToolUse", "end": "Stop"}
    path = {"filePath": str(shell.root / "a.txt")}
    call = {"tool_name": "replace_string_in_file", "tool_input": path, "tool_use_id": "call-1"}
    run = {"tool_name": "run_in_terminal", "tool_input": {"command": "rm 'a b.txt'"}, "tool_use_id": "call-1"}
    base = {"session_id": "s-1", "cwd": str(shell.root), "prompt": "do it"}
    return {
        **base,
        **({"before": call, "after": call, "shell": run}.get(kind, {})),
        "hook_event_name": names.get(kind, "PreToolUse"),
    }


EVENTS: dict[str, Event] = {one.__name__: one for one in (claude, codex, gemini, opencode, cursor, copilot, vscode)}
NAMED_TURNS = {"claude", "codex", "opencode", "cursor"}
NAMED_CALLS = {"claude", "codex", "opencode", "cursor", "vscode"}


def tell(shell: Shell, host: str, event: dict[str, Any] | str, *more: str) -> Said:
    data = event if isinstance(event, str) else json.dumps(event)
    return shell("hook", host, *more, stdin=data.encode())


@pytest.fixture(autouse=True)
def _no_project_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CLAUDE_CODE_SESSION_ID", "CODEX_SESSION_ID", "AI_AGENT"):
        monkeypatch.delenv(name, raising=False)


@requirement("host:hook:edits", "host:hook:turns")
@pytest.mark.parametrize("host", EVENTS)
def test_an_edit_of_the_host_is_a_change_that_can_be_undone(shell: Shell, host: str) -> None:
    event = EVENTS[host]
    path = shell.write("a.txt", "one\n")

    for kind in ("prompt", "before"):
        assert tell(shell, host, event(shell, kind)) == Said(code=0, out="{}\n", err="")
    path.write_text("two\n", encoding="utf-8")
    assert tell(shell, host, event(shell, "after")) == Said(code=0, out="{}\n", err="")

    entries = shell.json("log")["entries"]
    assert [(one["path"], one["session"], one["operation"]) for one in entries] == [("a.txt", "s-1", "edit")]
    assert entries[0]["turn"] == ("t-1" if host in NAMED_TURNS else "1")
    assert entries[0]["call_id"] == ("call-1" if host in NAMED_CALLS else None)
    assert "-one\n+two" in shell.json("show", entries[0]["change_id"])["diff"]
    shell("undo")
    assert path.read_text(encoding="utf-8") == "one\n"


def edit_by(shell: Shell, host: str, tool: str, kind: str) -> dict[str, Any]:
    """Return the event of an edit of `a.txt` by one of the tools of a host."""
    event = EVENTS[host](shell, kind)
    path = str(shell.root / "a.txt")
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\n"
    names = ("file_path", "notebook_path", "path", "filePath", "target_notebook")
    patched = {"command": patch, "patch": patch, "input": patch, "patchText": patch}
    arguments = patched if "patch" in tool else dict.fromkeys(names, path)
    for name, value in {"tool": tool, "tool_name": tool, "toolName": tool}.items():
        event |= {name: value} if name in event else {}
    for name in ("args", "tool_input", "toolArgs"):
        event |= {name: arguments} if name in event else {}
    return event


@requirement("host:hook:edits")
@pytest.mark.parametrize(
    ("host", "tool"), [(host, tool) for host in EVENTS for tool in find_agent_host(host).edit_tools]
)
def test_every_edit_tool_of_a_host_is_recorded_and_undone(shell: Shell, host: str, tool: str) -> None:
    path = shell.write("a.txt", "one\n")

    tell(shell, host, edit_by(shell, host, tool, "before"))
    path.write_text("two\n", encoding="utf-8")
    tell(shell, host, edit_by(shell, host, tool, "after"))

    assert [one["tool"] for one in shell.json("log")["entries"]] == [tool]
    shell("undo")
    assert path.read_text(encoding="utf-8") == "one\n"


@requirement("host:hook:edits")
def test_all_files_of_a_patch_are_one_change(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    tell(shell, "codex", codex(shell, "before"))
    shell.write("a.txt", "two\n")
    shell.write("new.txt", "hi\n")
    tell(shell, "codex", codex(shell, "after"))

    entries = shell.json("log")["entries"]
    assert {one["path"] for one in entries} == {"a.txt", "new.txt"}
    assert len({one["change_id"] for one in entries}) == 1
    shell("undo")
    assert {path.name: path.read_text(encoding="utf-8") for path in shell.root.iterdir()} == {"a.txt": "one\n"}


@requirement("host:hook:edits")
def test_an_edit_that_changed_nothing_is_no_change(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    tell(shell, "claude", claude(shell, "before"))
    tell(shell, "claude", {**claude(shell, "after"), "hook_event_name": "PostToolUseFailure"})

    assert shell.json("log")["entries"] == []


@requirement("host:hook:edits")
@pytest.mark.parametrize("kind", ["end", "prompt"])
def test_an_edit_whose_end_was_not_reported_is_recorded_later(shell: Shell, kind: str) -> None:
    shell.write("a.txt", "one\n")
    tell(shell, "claude", claude(shell, "before"))
    shell.write("a.txt", "two\n")
    tell(shell, "claude", claude(shell, kind))

    assert [one["call_id"] for one in shell.json("log")["entries"]] == ["call-1"]


@requirement("host:hook:edits")
def test_what_the_history_learned_in_between_is_not_counted_twice(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    tell(shell, "claude", claude(shell, "before"))
    shell.edit("a.txt", "one", "ours")
    tell(shell, "claude", claude(shell, "after"))
    assert [one["tool"] for one in shell.json("log")["entries"]] == ["edit"]

    tell(shell, "claude", claude(shell, "before"))
    shell.edit("a.txt", "ours", "ours again")
    shell.write("a.txt", "theirs\n")
    tell(shell, "claude", claude(shell, "after"))

    newest = shell.json("log")["entries"][0]
    assert "-ours again\n+theirs" in shell.json("show", newest["change_id"])["diff"]


@requirement("host:hook:shell")
@pytest.mark.parametrize("host", [name for name in EVENTS if name not in {"claude", "opencode"}])
def test_a_shell_command_is_put_under_our_shell(shell: Shell, host: str) -> None:
    tell(shell, host, EVENTS[host](shell, "prompt"))
    answer = json.loads(tell(shell, host, EVENTS[host](shell, "shell")).out)

    text = json.dumps(answer)
    commands = [value for value in _texts(answer) if " -c " in value]
    words = shlex.split(commands[0])
    facts = dict(word.split("=", 1) for word in words[:-3])
    assert words[-2:] == ["-c", "rm 'a b.txt'"]
    assert Path(words[-3]).name == "surehold"
    assert (facts["SUREHOLD_SESSION"], facts["SUREHOLD_TURN"]) == ("s-1", "t-1" if host in NAMED_TURNS else "1")
    assert ("is_background" in text) == (host == "gemini")
    assert ("description" in text) == (host == "copilot")


@requirement("host:hook:shell")
def test_a_rewritten_command_is_not_allowed_in_the_name_of_the_person(shell: Shell) -> None:
    answer = json.loads(tell(shell, "copilot", copilot(shell, "shell")).out)

    assert list(answer) == ["modifiedArgs"]


@requirement("host:hook:shell")
def test_commands_of_our_own_are_left_alone(shell: Shell) -> None:
    event = gemini(shell, "shell")
    event["tool_input"]["command"] = "surehold undo --session last"
    assert json.loads(tell(shell, "gemini", event).out) == {}
    event["tool_input"]["command"] = "surehold log; rm x"
    assert json.loads(tell(shell, "gemini", event).out) != {}


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for one in cast("dict[str, Any]", value).values() for text in _texts(one)]
    return [value] if isinstance(value, str) else []


@requirement("host:hook:open")
@pytest.mark.parametrize("data", ["", "{", "[]", '{"hook_event_name": 3}', '{"hook_event_name": "Unknown"}'])
def test_an_event_that_makes_no_sense_never_stops_the_host(shell: Shell, data: str) -> None:
    said = tell(shell, "claude", data)

    assert said.code == 0
    assert said.out == ("" if said.err else "{}\n")


@requirement("host:hook:open")
def test_what_cannot_be_recorded_is_said_and_logged_and_blocks_only_if_strict(shell: Shell, tmp_path: Path) -> None:
    event = claude(shell, "before")
    event["tool_input"]["file_path"] = str(tmp_path / "elsewhere.txt")

    said = tell(shell, "claude", event)
    strict = tell(shell, "claude", event, "--strict")

    assert (said.code, said.out, strict.code) == (0, "", 2)
    assert "elsewhere.txt" in said.err
    folder = next(shell.state_home.glob("surehold/*/hooks"))
    assert len(HookNotes(folder).failures()) == 2


@requirement("host:hook:open")
@pytest.mark.parametrize("host", EVENTS)
@pytest.mark.parametrize("lost", ["name", "session", "arguments"])
def test_an_event_that_lacks_what_its_record_needs_is_not_passed_over_in_silence(
    shell: Shell, host: str, lost: str
) -> None:
    shape, event = find_agent_host(host).event_shape, EVENTS[host](shell, "before")
    event.pop(getattr(shape, lost))

    said = tell(shell, host, event)
    strict = tell(shell, host, event, "--strict")

    assert (said.code, said.out, strict.code) == (0, "", 2)
    assert "cannot be undone, since it is not recorded: The event does not" in said.err


@requirement("host:hook:open")
def test_a_history_that_cannot_be_opened_never_stops_the_host(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    tell(shell, "claude", claude(shell, "before"))
    next(shell.state_home.glob("surehold/*/state.db")).write_bytes(b"not a database" * 100)

    said = tell(shell, "claude", claude(shell, "before"))

    assert (said.code, said.out) == (0, "")
    assert "What Edit does to a.txt cannot be undone" in said.err.replace(f"{shell.root}/", "")


_HEAVY = ("mcp", "acp", "pydantic", "asyncio", "tree_sitter", "surehold.dialects", "surehold.library")


@requirement("host:hook:light")
@pytest.mark.parametrize(
    ("kind", "unused"),
    [
        ("prompt", (*_HEAVY, "surehold.workspace.writer", "surehold.disk", "surehold.text.plan")),
        ("before", (*_HEAVY, "surehold.workspace.writer", "surehold.text.plan")),
        ("after", (*_HEAVY, "surehold.workspace.writer")),
        ("nothing", (*_HEAVY, "sqlite3", "surehold.stores", "surehold.workspace.reader", "surehold.front.hosts.setup")),
    ],
)
def test_a_real_hook_loads_only_what_its_event_needs(shell: Shell, kind: str, unused: tuple[str, ...]) -> None:
    shell.write("a.txt", "one\n")
    code = (
        "import sys; from surehold.front.cli.main import run; run(['hook', 'claude']); "
        f"print([name for name in {unused!r} if name in sys.modules])"
    )
    event = {"hook_event_name": "Notification", "session_id": "s-1", "cwd": str(shell.root)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=shell.root,
        env=shell.environment(),
        input=json.dumps(event if kind == "nothing" else claude(shell, kind)).encode(),
        capture_output=True,
        check=False,
    )
    assert done.stdout.decode().splitlines() == ["{}", "[]"], done.stderr


def test_a_server_of_claude_code_serves_the_session_that_its_hooks_name() -> None:
    named = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s-1"}

    assert session_in(named) == "s-1"
    assert session_in({**named, "SUREHOLD_SESSION": "mine"}) == "mine"
    assert session_in({**named, "CLAUDE_CODE_CHILD_SESSION": "1"}) == ""


@requirement("host:hook:shell")
def test_our_shell_knows_on_whose_behalf_it_runs(tmp_path: Path) -> None:
    notes = HookNotes(tmp_path)
    notes.set_turn("s-1", "t-1")
    caller = identify_caller({"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s-1"}, notes)
    assert (caller.agent, caller.session, caller.turn, caller.call_id) == ("claude-code", "s-1", "t-1", "")
    caller = identify_caller({"SUREHOLD_SESSION": "s-2", "SUREHOLD_TURN": "t", "CODEX_TOOL_CALL_ID": "c"}, notes)
    assert (caller.session, caller.turn, caller.call_id) == ("s-2", "t", "c")


@requirement("host:hook:shell")
@pytest.mark.skipif(bool(can_listen()), reason="commands cannot be captured here")
def test_what_a_script_changes_is_recorded_for_its_session_and_turn(shell: Shell) -> None:
    shell.write("a.txt", "one\n")
    tell(shell, "claude", claude(shell, "prompt"))

    done = shell.process("-c", "echo two > a.txt; rm -f b; exit 3", CLAUDECODE="1", CLAUDE_CODE_SESSION_ID="s-1")

    entries = [one for one in shell.json("log")["entries"] if one["path"] == "a.txt"]
    assert (done.returncode, done.stderr) == (3, b"")
    assert [(one["agent"], one["session"], one["turn"]) for one in entries] == [("claude-code", "s-1", "t-1")]
    shell("undo")
    assert (shell.root / "a.txt").read_text(encoding="utf-8") == "one\n"


@requirement("host:hook:shell")
@pytest.mark.parametrize("agent", ["claude-code_2_harness", ""])
def test_a_script_runs_in_a_shell_with_its_streams_and_its_exit_code(shell: Shell, agent: str) -> None:
    script = 'read line; echo "$line!"; echo err >&2; exit 7'
    environment = {"AI_AGENT": agent} if agent else {}

    done = shell.process("-c", script, stdin=b"hello\n", **environment)

    assert (done.returncode, done.stdout) == (7, b"hello!\n")
    assert done.stderr.endswith(b"err\n")
    assert list(shell.root.iterdir()) == []
