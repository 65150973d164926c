"""The question of a command that waits: how it is put, and how it is answered."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from surehold.errors import PermissionDenied
from surehold.workspace.access.permission import Approval
from surehold.workspace.runs.questions import CommandCall, CommandQuestion, answer_question

Ends = tuple[socket.socket, socket.socket]
DELETION: dict[str, Any] = {"argv": ["rm", "-r", "d"], "next": "d/c", "paths": ["d/a", "d/b"], "removed": 1200}
CHANGE: dict[str, Any] = {"argv": ["sh"], "next": ".bashrc", "protected": True, "agent": "ada", "ancestors": [3, 4]}


@pytest.fixture
def ends() -> Iterator[Ends]:
    """The side of the command, and the side that asks."""
    both = socket.socketpair()
    yield both
    for one in both:
        one.close()


def test_a_deletion_says_how_many_paths_went_and_which_is_next(ends: Ends) -> None:
    request = CommandCall(connection=ends[1], message={**DELETION, "protected": False}).to_request()

    assert request.command
    assert request.command == CommandQuestion(
        argv=("rm", "-r", "d"), next="d/c", removed=("d/a", "d/b"), removed_count=1200, is_protected=False
    )
    assert request.summary == request.command.summary == "delete more than 1,200 paths"
    assert request.why == "The command has deleted 1,200 paths, and is about to delete `d/c`."
    assert request.command.totals == "1,200 paths were deleted; a yes allows this and all further deletions"
    assert (request.is_protected, request.files, request.call.argv) == (False, (), ("rm", "-r", "d"))
    assert (request.call.tool, request.call.operation, request.call.agent) == ("run", "run", "")


def test_a_change_of_a_protected_file_names_it(ends: Ends) -> None:
    asked = CommandCall(connection=ends[1], message=CHANGE)
    request = asked.to_request()

    assert request.command
    assert request.command.summary == "change `.bashrc`"
    assert request.why == "The command is about to change `.bashrc`, which configures another program."
    assert request.command.totals == "A yes allows this and further changes of such files"
    assert (request.is_protected, request.command.removed, request.command.removed_count) == (True, (), 0)
    assert (request.call.agent, request.call.session, asked.ancestors) == ("ada", "", {3, 4})
    assert CommandCall(connection=ends[1], message=DELETION).ancestors == frozenset()


def test_a_question_is_open_until_the_command_goes_or_another_place_has_answered(ends: Ends) -> None:
    command, asker = ends
    asked = CommandCall(connection=asker, message=CHANGE)
    assert (asked.is_gone(), asked.is_withdrawn()) == (False, False)

    command.sendall(b"\n")
    assert (asked.is_gone(), asked.is_withdrawn()) == (False, True)
    asker.recv(1)
    command.close()
    assert (asked.is_gone(), asked.is_withdrawn()) == (True, False)
    asker.close()
    assert (asked.is_gone(), asked.is_withdrawn()) == (True, False)


def refuse(_: CommandCall) -> Approval:
    raise PermissionDenied("No one is there.")


def fail(_: CommandCall) -> Approval:
    raise OSError("broken")


def allow(_: CommandCall) -> Approval:
    return Approval(allowed=True, where="page", who="ada", note="once")


def deny(_: CommandCall) -> Approval:
    return Approval(allowed=False)


@pytest.mark.parametrize(
    ("ask", "reply"),
    [
        (allow, {"answer": True, "where": "page", "who": "ada", "note": "once"}),
        (deny, {"answer": False, "where": "callback", "who": "", "note": ""}),
        (refuse, {"problem": "No one is there."}),
        (fail, {"problem": "the question could not be asked (OSError: broken)"}),
    ],
)
def test_every_question_is_answered_in_one_line(
    ends: Ends, ask: Callable[[CommandCall], Approval], reply: dict[str, object]
) -> None:
    command, asker = ends
    line = json.dumps(CHANGE).encode() + b"\n"
    command.sendall(line[:10])
    rest = threading.Timer(0, command.sendall, [line[10:]])
    rest.start()

    assert answer_question(asker, ask)

    rest.join()
    assert json.loads(command.recv(1 << 16)) == reply


def test_a_side_that_ends_before_its_question_did_is_not_asked_about(ends: Ends) -> None:
    command, asker = ends
    command.sendall(b'{"argv": ')
    command.shutdown(socket.SHUT_WR)
    assert not answer_question(asker, fail)
    asker.close()
    assert not answer_question(asker, fail)


def test_an_answer_to_a_command_that_has_gone_is_lost_quietly(ends: Ends) -> None:
    command, asker = ends

    def go_away(_: CommandCall) -> Approval:
        command.close()
        return Approval(allowed=True)

    command.sendall(json.dumps(CHANGE).encode() + b"\n")
    assert answer_question(asker, go_away)
