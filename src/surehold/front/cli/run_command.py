"""`surehold run`: runs any command, unchanged, and records what it does to the files of the workspace."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from surehold.errors import InvalidArgument, PermissionDenied
from surehold.front.cli.command import Argument, CommandContext, argument, as_path, command
from surehold.front.shared.person import person_name
from surehold.text.escape import escape_text

if TYPE_CHECKING:
    from surehold.capture.keeper import Keeper
    from surehold.capture.runner import RunEnding
    from surehold.capture.supervisor import DeletionGuard
    from surehold.workspace.runs.recorder import RunRecorder

_JOINED = "SUREHOLD_RUN"
"""Names the run that a process is part of: the id of its change, and the root."""
_DEFAULT_WAIT_SECONDS = 2.0


def _parse_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds


@command(
    "run",
    "Run a command and record what it changes, so that it can be undone.",
    argument("--session", "S", "the session that the change belongs to"),
    argument("--turn", "T", "the turn of that session"),
    argument("--agent", "A", "who runs it (default: you)"),
    argument("--reason", "TEXT", "why, for the history"),
    argument("--report", "FILE", "write what changed to this file, as JSON"),
    argument(
        "--wait",
        "S",
        "seconds to wait for what the command leaves running (default: 2)",
        type=_parse_seconds,
        default=_DEFAULT_WAIT_SECONDS,
    ),
    Argument(("argv",), {"metavar": "-- CMD …", "nargs": argparse.REMAINDER, "help": "the command and its arguments"}),
    note="Its streams, signals and exit code are those of the command.",
    example="surehold run -- make format",
)
def run_command(context: CommandContext, args: argparse.Namespace) -> int:
    argv: list[str] = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
    if not argv:
        message, action = "No command was given.", "Write it after two dashes: surehold run -- make format"
        raise InvalidArgument(message, reason="no_command", action=action)
    context.check_root()
    root = os.path.realpath(context.root)
    report = os.path.abspath(args.report) if args.report else ""  # noqa: PTH100 - as it is spelled
    from surehold.capture.filter import can_listen

    if why := can_listen():
        raise _impossible(why)
    return _run_captured(context, args, argv, root, report)


def _impossible(why: str) -> PermissionDenied:
    return PermissionDenied(
        f"What a command changes cannot be captured here: {why}.",
        reason="capture_impossible",
        action="Nothing was run. Run the command without `surehold run`, or with --best-effort.",
    )


def _run_captured(
    context: CommandContext, args: argparse.Namespace, argv: Sequence[str], root: str, report: str
) -> int:
    from surehold.capture.runner import CommandLine, run_captured
    from surehold.workspace.settings import new_id

    change_id = new_id()
    environment = {**os.environ, _JOINED: f"{change_id} {root}"}
    line = CommandLine(argv=tuple(argv), environment=environment, wait=args.wait)
    book = _CommandBook(context=context, args=args, argv=tuple(argv), root=root, change_id=change_id, report=report)
    context.out.flush()
    context.err.flush()
    ending = run_captured(line, lambda: book, lambda _: False)
    return _tell_ending(context, ending)


def _tell_ending(context: CommandContext, ending: "RunEnding") -> int:
    if ending.refused:
        raise _impossible(ending.refused)
    err = context.err
    if ending.problem:
        err.print_line(f"surehold: {escape_text(ending.problem)}")
    if ending.report is None:
        err.print_line(
            "surehold: the supervisor ended before the command did. What was kept is recorded by: surehold recover"
        )
    elif not ending.report["complete"]:
        err.print_line("surehold: what the command did was not captured completely:")
        for one in ending.report["not_kept"][:20]:
            where = f"{escape_text(one['path'])}: " if one["path"] else ""
            err.print_line(f"  {where}{escape_text(one['why'])}")
    err.flush()
    return ending.exit_code


@dataclass(slots=True, kw_only=True)
class _CommandBook:
    """Keeps and records for one command; everything heavy is loaded when the first file is about to change."""

    context: CommandContext
    args: argparse.Namespace
    argv: tuple[str, ...]
    root: str
    change_id: str
    report: str
    _recorder: "RunRecorder | None" = None
    _covers: Callable[[bytes], bool] | None = None

    def covers(self, path: bytes) -> bool:
        if self._covers is None:
            from surehold.capture.keeper import CoveredPaths

            state = os.path.realpath(self.context.state_directory)
            self._covers = CoveredPaths([os.fsencode(self.root)], [os.fsencode(state)]).covers
        return self._covers(path)

    def open_keeper(self) -> "Keeper":
        from surehold.app import Settings, open_workspace
        from surehold.stores.base import Call

        state_dir = as_path(self.context.state_dir) if self.context.state_dir else None
        workspace = open_workspace(self.root, settings=Settings(state_dir=state_dir))
        call = Call(
            tool="run",
            operation="run",
            writer="run",
            agent=self.args.agent or person_name(),
            session=self.args.session,
            turn=self.args.turn,
            reason=self.args.reason,
            argv=self.argv,
        )
        self._recorder = workspace.record_run(call, self.change_id)
        return self._recorder.open_keeper()

    def make_guard(self, ask: Callable[[dict[str, Any]], bool]) -> "DeletionGuard | None":  # noqa: ARG002
        return None

    def conclude(self, exit_code: int, notes: Sequence[tuple[bytes, str]], running: Sequence[str]) -> dict[str, Any]:
        from surehold.capture.settle import Settlement, UnkeptPath

        settled = Settlement()
        if self._recorder is not None:
            settled = self._recorder.preview() if running else self._recorder.finish(exit_code)
        settled.not_kept += [UnkeptPath(key=os.fsdecode(path), why=why) for path, why in notes]
        answer: dict[str, Any] = {
            "change_id": self.change_id if settled.changes or running else None,
            "exit_code": exit_code,
            "created": settled.created,
            "changed": settled.changed,
            "deleted": settled.deleted,
            "moved": settled.moved,
            "complete": settled.complete,
            "not_kept": [{"path": one.key, "why": one.why} for one in settled.not_kept],
            "running": list(running),
        }
        if self.report:
            _write_report(self.report, answer)
        return answer


def _write_report(path: str, answer: dict[str, Any]) -> None:
    import json

    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 - strings all the way
        file.write(json.dumps(answer) + "\n")
    os.replace(temporary, path)  # noqa: PTH105


def joined_run() -> tuple[str, str] | None:
    """Return the change and the root of the run that this process is part of."""
    change_id, _, root = os.environ.get(_JOINED, "").partition(" ")
    return (change_id, root) if change_id and root and sys.platform == "linux" else None
