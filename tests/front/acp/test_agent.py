"""The agent without a model, driven by a real client over a real pipe."""

import asyncio
import hashlib
import json
import subprocess
from typing import Any

import pytest
from acp.exceptions import RequestError

from front.acp.editor import Json, command, connected, run, silent
from front.acp.place import Place, call
from spec.marks import requirement
from surehold import Settings, open_workspace


def test_every_mode_is_offered_and_no_other_is_taken(place: Place) -> None:
    async def scenario() -> None:
        async with connected(command(place.root, place.state, "--mode", "plan")) as editor:
            opened = await editor.begin(place.root)
            assert opened["modes"]["currentModeId"] == "plan"
            assert [one["id"] for one in opened["modes"]["availableModes"]] == [
                *("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")
            ]
            with pytest.raises(RequestError, match="There is no mode `yolo`"):
                await editor.conn.set_session_mode(session_id=editor.session, mode_id="yolo")
            with pytest.raises(RequestError, match="There is no session"):
                await editor.conn.set_session_mode(session_id="other", mode_id="plan")

    run(scenario())


def test_a_session_begins_in_the_roots_only(place: Place) -> None:
    (place.root / "inner").mkdir()
    place.put("inner/a.txt", "inner\n")

    async def scenario() -> None:
        async with connected(command(place.root, place.state)) as editor:
            with pytest.raises(RequestError, match="lies outside"):
                await editor.begin(place.root.parent)
            with pytest.raises(RequestError, match="is not an absolute path"):
                await editor.begin("inner")
            await editor.begin(place.root / "inner")
            await editor.say("/read a.txt")
            assert editor.events[0]["locations"] == [{"path": str(place.root / "inner/a.txt")}]
            assert editor.statuses[-1] == "completed"

    run(scenario())


def test_a_root_that_is_no_directory_is_refused_at_once(place: Place) -> None:
    words = command(place.root / "missing", place.state)
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (1, "")
    assert f"`{place.root}/missing` is not a directory." in done.stderr


@requirement("session:turn:acp")
def test_two_prompts_at_once_run_one_after_the_other(place: Place) -> None:
    place.put("a.txt", "one\n")

    async def scenario() -> None:
        async with place.editor("--mode", "acceptEdits") as editor:
            first = call("edit_file", path="a.txt", expectedSha256=place.sha256("a.txt"), edits=[_edit("one", "two")])
            wanted = hashlib.sha256(b"two\n").hexdigest()
            second = call("edit_file", path="a.txt", expectedSha256=wanted, edits=[_edit("two", "three")])
            assert await asyncio.gather(editor.say(first), editor.say(second)) == ["end_turn", "end_turn"]
            assert editor.statuses == ["pending", "in_progress", "completed"] * 2

    run(scenario())
    assert place.get("a.txt") == b"three\n"
    with open_workspace(place.root, settings=Settings(state_dir=place.state)) as workspace:
        calls = [entry.call for entry in workspace.history.log()]
        turns = workspace.store.list_turns(calls[0].session)
    assert [(one.turn, bool(one.call_id)) for one in calls] == [("2", True), ("1", True)]
    assert [one.title[:20] for one in turns] == ['{"tool": "edit_file"'] * 2


def test_two_sessions_do_not_wait_for_each_other(place: Place) -> None:
    place.put("a.txt", "one\n")

    async def scenario() -> None:
        async with place.editor(answer=silent) as editor:
            waiting = asyncio.ensure_future(editor.say(place.edit("a.txt", ("one", "two"))))
            await editor.wait_until_asked()
            first = editor.session
            editor.session = (await editor.conn.new_session(cwd=str(place.root), mcp_servers=[])).session_id
            assert await editor.say("/read a.txt") == "end_turn"
            await editor.conn.cancel(session_id=first)
            assert await waiting == "cancelled"

    run(scenario())


def test_a_failed_call_ends_the_script(place: Place) -> None:
    place.put("a.txt", "one\n")

    async def scenario() -> None:
        async with place.editor("--mode", "acceptEdits") as editor:
            await editor.say("/read a.txt\n/read nowhere.txt\n/create b.txt text")
            assert editor.statuses == ["pending", "in_progress", "completed", "pending", "in_progress", "failed"]
            rows = editor.message.split("\n")
            assert [row.split(":")[0] for row in rows] == [
                "Done. read_file",
                "Failed. read_file",
                "1 more call was not run, since the turn failed.",
            ]

    run(scenario())
    assert not (place.root / "b.txt").exists()


def test_a_prompt_that_is_no_script_runs_nothing_and_gets_the_help(place: Place) -> None:
    prompts = {
        "Please fix the bug.": "This is neither JSON nor a command: Please fix the bug.",
        '{"tool": "read_file"': "This is not JSON (Expecting ',' delimiter)",
        "/create b.txt text\nand then?": "This is neither JSON nor a command: and then?",
        "[" * 100_000: "This is not JSON (it is nested too deeply, or a number too long)",
    }

    async def scenario() -> None:
        async with place.editor("--mode", "bypassPermissions") as editor:
            for prompt, why in prompts.items():
                assert await editor.say(prompt) == "end_turn"
                assert editor.message.startswith(f"Nothing was run. {why}")
                assert "/read PATH[:FIRST-LAST]" in editor.message
            for prompt in ("", "/help", "help", "  \n"):
                await editor.say(prompt)
                assert editor.message.startswith("This agent has no model: it runs the tool calls that you write.")
            assert editor.events == []

    run(scenario())
    assert list(place.root.iterdir()) == []


@requirement("front:acp:agent")
def test_calls_are_run_in_whichever_way_they_are_written(place: Place) -> None:
    place.put("a.txt", "one\n")
    prompts = [
        '{"tool": "read_file", "arguments": {"path": "a.txt"}}',
        '```json\n{"tool": "read_file",\n "arguments": {"path": "a.txt"}}\n```',
        "/read a.txt",
        'tool read_file {"path": "a.txt"}',
    ]

    async def scenario() -> None:
        async with place.editor() as editor:
            for prompt in prompts:
                await editor.say(prompt)
                pending, running, completed = editor.events[-3:]
                assert (pending["title"], pending["kind"]) == ("Read a.txt", "read")
                assert pending["rawInput"] == {"path": "a.txt"}
                assert running["status"] == "in_progress"
                assert completed["rawOutput"]["data"]["content"] == "one\n"
                assert completed["content"][0]["content"]["text"].startswith("a.txt")

    run(scenario())


def test_a_file_that_is_mentioned_is_named_by_its_path(place: Place) -> None:
    from acp import resource_link_block, text_block

    path = place.put("with space.txt", "one\n")

    async def scenario() -> None:
        async with place.editor() as editor:
            blocks: list[Any] = [text_block("/read "), resource_link_block("with space.txt", f"{path.as_uri()}#L1:2")]
            await editor.conn.prompt(session_id=editor.session, prompt=blocks)
            assert editor.statuses[-1] == "completed"
            assert editor.events[0]["title"] == "Read with space.txt"

    run(scenario())


def test_the_commands_are_announced_when_a_session_begins(place: Place) -> None:
    async def scenario() -> None:
        async with place.editor() as editor:
            await editor.say("/help")
            (announced,) = [u for u in editor.updates if u["sessionUpdate"] == "available_commands_update"]
            names = [one["name"] for one in announced["availableCommands"]]
            assert names == ["read", "edit", "create", "grep", "find", "ls", "tool", "help"]

    run(scenario())


def test_every_family_reports_what_it_changed(place: Place) -> None:
    place.put("a.txt", "one\n")
    path = str(place.root / "a.txt")

    async def scenario() -> None:
        async with place.editor("--mode", "acceptEdits") as editor:
            await editor.say(call("create_file", path="b.txt", content="b\n"))
            await editor.say(call("delete_file", path="a.txt", expectedSha256=place.sha256("a.txt")))
            trash = editor.events[-1]["rawOutput"]["data"]["trashId"]
            deleted = editor.events[-1]["content"][0]
            await editor.say(call("restore_file", trashId=trash))
            restored = editor.events[-1]["content"][0]
            assert deleted == {"type": "diff", "path": path, "oldText": "one\n", "newText": ""}
            assert restored == {"type": "diff", "path": path, "newText": "one\n"}
            await editor.say(call("move_file", fromPath="a.txt", toPath="c.txt", expectedSha256=place.sha256("a.txt")))
            assert editor.events[-1]["locations"] == [{"path": path}, {"path": str(place.root / "c.txt")}]
            patch = "*** Begin Patch\n*** Update File: c.txt\n-one\n+two\n*** Delete File: b.txt\n*** End Patch\n"
            await editor.say(call("apply_patch", patch=patch))
            diffs = [one["path"] for one in editor.events[-1]["content"] if one["type"] == "diff"]
            assert diffs == [str(place.root / "c.txt"), str(place.root / "b.txt")]
            await editor.say("/tool Read " + json.dumps({"file_path": str(place.root / "c.txt")}))
            await editor.say(
                "/tool Edit " + json.dumps({"file_path": "c.txt", "old_string": "two", "new_string": "six"})
            )
            assert [one["type"] for one in editor.events[-1]["content"]] == ["diff", "content"]
            assert set(editor.statuses) == {"pending", "in_progress", "completed"}

    run(scenario())
    assert place.get("c.txt") == b"six\n"


def test_lines_that_are_no_messages_are_answered_and_the_session_goes_on(place: Place) -> None:
    place.put("a.txt", "one\n")

    async def scenario() -> None:
        async with place.editor() as editor:
            assert editor.process.stdin
            for line in (
                b"no json",
                b"[1, 2]",
                b"7",
                b'{"id": [1], "method": "x"}',
                b'{"id": 99, "error": "odd"}',
                b"",
            ):
                editor.process.stdin.write(line + b"\n")
            assert await editor.say("/read a.txt") == "end_turn"
            codes = [one["error"]["code"] for one in editor.received if "error" in one]
            assert codes == [-32700, -32600, -32600, -32600]

    run(scenario())


def test_half_a_character_is_refused_and_does_not_end_the_agent(place: Place) -> None:
    async def scenario() -> None:
        async with place.editor("--mode", "acceptEdits") as editor:
            await editor.say('{"tool": "create_file", "arguments": {"path": "a.txt", "content": "\\ud83d"}}')
            assert editor.events[-1]["rawOutput"]["error"]["reason"] == "lone_surrogate"
            assert await editor.say('/read "\\ud83d"') == "end_turn"

    run(scenario())
    assert not (place.root / "a.txt").exists()


def _edit(old: str, new: str) -> Json:
    return {"oldText": old, "newText": new}
