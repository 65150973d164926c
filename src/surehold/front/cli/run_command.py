"""`surehold run`: runs any command, unchanged, and records what it does to the files of the workspace."""

import argparse
import errno
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from surehold.capture.joined import find_open_run
from surehold.errors import InvalidArgument, PermissionDenied
from surehold.front.cli.command import (
    Argument,
    CommandContext,
    UsageError,
    argument,
    as_path,
    command,
    flag,
    parse_count,
    parse_positive,
)
from surehold.front.cli.run_guard import PersonAsker, RemovalGuard, has_terminal
from surehold.front.shared.person import person_name
from surehold.text.escape import escape_text, reveal_text

if TYPE_CHECKING:
    from surehold.capture.caller import CommandLine, RunEnding
    from surehold.capture.joined import OpenRun
    from surehold.capture.kept.keeper import Keeper
    from surehold.capture.settled.settlement import Settlement
    from surehold.capture.supervisor import DeletionGuard
    from surehold.workspace.runs.recorder import RunRecorder

_DEFAULT_WAIT_SECONDS = 2.0
_DEFAULT_GUARD = 100
_WRITABLE = ("/tmp", "/var/tmp", "/dev", "/proc/self")  # noqa: S108 - where a confined command may write besides
_SHOWN_UNKEPT = 20


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
    "Run a command; what it changes is recorded and can be undone.",
    argument("--session", "S", "its session (default with --agent or --turn: one of its own)"),
    argument("--turn", "T", "the turn of that session"),
    argument("--agent", "A", "who runs it (default: you)"),
    argument("--call", "ID", "the tool call of the host that it belongs to"),
    argument("--reason", "TEXT", "why, for the history"),
    argument("--report", "FILE", "write what changed to this file, as JSON"),
    argument(
        "--guard",
        "N",
        "ask before the Nth deletion and before a protected file changes; 0 never asks (default: 100 where a person can be asked)",
        type=parse_count,
        default=None,
    ),
    argument("--ask-through", None, argparse.SUPPRESS, type=parse_positive, default=0),
    flag("--end-tree", argparse.SUPPRESS),
    flag("--confine", "let it write only below the workspace and temporary directories (Landlock)"),
    flag("--best-effort", "where capture is impossible, compare the tree before and after instead"),
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
        raise UsageError("No command was given.", hint="Write it after two dashes: surehold run -- make format")
    from surehold.capture.caller import occupy_closed_streams

    occupy_closed_streams()
    context.check_root()
    root = os.path.realpath(context.root)
    report = os.path.abspath(args.report) if args.report else ""  # noqa: PTH100 - as it is spelled
    _check_report(report)
    if args.confine:
        _check_confinement()
    context = context.with_absolute_paths()  # the supervisor has a working directory of its own
    book = _CommandBook(context=context, args=args, argv=tuple(argv), root=root, report=report)
    if (outer := find_open_run()) is not None:
        return _tell_ending(context, _run_joined(book, outer))
    from surehold.capture.filter import can_listen

    if why := can_listen():
        return _tell_ending(context, _run_compared(book, why))
    ending = _run_captured(book)
    return _tell_ending(context, _run_compared(book, ending.refused) if ending.refused else ending)


def _impossible(why: str) -> PermissionDenied:
    return PermissionDenied(
        f"What a command changes cannot be captured here: {why}.",
        reason="capture_impossible",
        action="Nothing was run. Run the command without `surehold run`, or with --best-effort.",
    )


def _check_report(path: str) -> None:
    """Refuse before anything runs when the report could not be written."""
    try:
        if path:
            _replace_file(path, None)
    except OSError as error:
        raise InvalidArgument(
            f"The report cannot be written to `{path}`: {error.strerror}.",
            path=path,
            reason="unwritable_report",
            action="Nothing was run. Name a file in a directory that exists and can be written to.",
        ) from None


def _check_confinement() -> None:
    from surehold.capture.landlock import landlock_version

    if not landlock_version():
        raise PermissionDenied(
            "A command cannot be confined here: the kernel has no Landlock.",
            reason="confine_impossible",
            action="Nothing was run. Run it without --confine.",
        )


def _refuse_guard(book: "_CommandBook", why: str) -> None:
    if book.args.guard:
        raise InvalidArgument(f"--guard has no effect here: {why}.", reason="guard_impossible", action="Leave it out.")


def _run_captured(book: "_CommandBook") -> "RunEnding":
    from surehold.capture.runner import run_captured

    asker = book.make_asker()
    asker.uses_terminal = bool(book.args.guard) or has_terminal()  # asked here: the supervisor has no terminal
    if book.args.guard is None and (asker.uses_terminal or _has_channel(asker)):
        book.args.guard = _DEFAULT_GUARD
    book.context.out.flush()
    book.context.err.flush()
    ending = run_captured(book.command_line(), lambda: book, asker)
    for sentence in asker.refusals:
        book.context.err.print_line(f"surehold: {reveal_text(sentence)}")
    return ending


def _has_channel(asker: PersonAsker) -> bool:
    """Tell whether a server of this workspace can ask a person about this command."""
    if asker.through is not None:
        return True
    from surehold.front.shared.command_channels import find_channels

    return bool(find_channels(asker.state_dir))


def _tell_ending(context: CommandContext, ending: "RunEnding") -> int:
    err = context.err
    if ending.problem:
        err.print_line(f"surehold: {reveal_text(ending.problem)}")
    report = ending.report
    if problem := report.pop("problem", "") if report else "":
        err.print_line(f"surehold: {reveal_text(problem)}")
    if report is None:
        err.print_line(
            "surehold: the supervisor ended before the command did. What was kept is recorded by: surehold recover"
        )
    elif report["not_kept"] and not report.get("joined"):
        err.print_line("surehold: what the command did was not captured completely:")
        for one in report["not_kept"][:_SHOWN_UNKEPT]:
            where = f"{reveal_text(one['path'])}: " if one["path"] else ""
            err.print_line(f"  {where}{reveal_text(one['why'])}")
        if len(report["not_kept"]) > _SHOWN_UNKEPT:
            err.print_line(f"  … {len(report['not_kept']) - _SHOWN_UNKEPT} more")
    err.flush()
    if context.json and report is not None:
        context.out.print_json_line(report)
    return ending.exit_code


def _new_id() -> str:
    from surehold.stores.owner import new_id

    return new_id()


@dataclass(slots=True, kw_only=True)
class _CommandBook:
    """Keeps and records for one command; everything heavy is loaded when the first file is about to change."""

    context: CommandContext
    args: argparse.Namespace
    argv: tuple[str, ...]
    root: str
    report: str
    change_id: str = field(default_factory=_new_id)
    _recorder: "RunRecorder | None" = None
    _guard: RemovalGuard | None = None
    _covers: Callable[[bytes], bool] | None = None

    def command_line(self) -> "CommandLine":
        from surehold.capture.caller import CommandLine

        temporary = os.environ.get("TMPDIR", "/tmp")  # noqa: S108 - as named
        return CommandLine(
            argv=self.argv,
            environment=dict(os.environ),
            run_id=self.change_id,
            root=self.root,
            wait=self.args.wait,
            ends_tree=self.args.end_tree,
            writable=(self.root, *_WRITABLE, temporary) if self.args.confine else None,
        )

    @property
    def history_directory(self) -> str:
        return os.path.realpath(self.context.state_directory)

    def covers(self, path: bytes) -> bool:
        if self._covers is None:
            from surehold.capture.kept.covered import CoveredPaths

            self._covers = CoveredPaths([os.fsencode(self.root)], [os.fsencode(self.history_directory)]).covers
        return self._covers(path)

    def open_keeper(self) -> "Keeper":
        from surehold.app import Settings, open_workspace
        from surehold.stores.base import Call

        state_dir = as_path(self.context.state_dir) if self.context.state_dir else None
        settings = Settings(state_dir=state_dir, state=self.context.state, blobs=self.context.blobs_address)
        workspace = open_workspace(self.root, settings=settings)
        call = Call(tool="run", operation="run", writer="run", argv=self.argv, **self.caller())
        self._recorder = workspace.record_run(call, self.change_id)
        return self._recorder.open_keeper()

    def caller(self) -> dict[str, Any]:
        """Return on whose behalf the command runs, and why."""
        args = self.args
        own = (
            self.change_id if args.agent or args.turn else ""
        )  # an agent's command is a session by itself, and so is a turn
        names = {"session": args.session or own, "turn": args.turn, "call_id": args.call}
        one_line = {name: escape_text(value or "") for name, value in names.items()}
        return {"agent": escape_text(args.agent or "") or person_name(), **one_line, "reason": args.reason or ""}

    def make_asker(self) -> PersonAsker:
        through = None
        if self.args.ask_through:
            import socket

            through = socket.socket(fileno=self.args.ask_through)
            through.set_inheritable(False)
        state_dir = os.fspath(self.context.state_directory)
        return PersonAsker(facts={"argv": self.argv, **self.caller()}, state_dir=state_dir, through=through)

    def make_guard(self, ask: Callable[[dict[str, Any]], dict[str, Any]]) -> "DeletionGuard | None":
        if self.args.guard:
            self._guard = RemovalGuard(limit=self.args.guard, root=os.fsencode(self.root), ask=ask)
        return self._guard

    def conclude(self, exit_code: int, notes: Sequence[tuple[bytes, str]], running: Sequence[str]) -> dict[str, Any]:
        from surehold.capture.settled.settlement import UnkeptPath

        settled, is_recorded = self._settle(exit_code, is_running=bool(running))
        above = os.fsencode(self.root.rstrip("/")) + b"/"
        settled.not_kept += [UnkeptPath(key=os.fsdecode(path.removeprefix(above)), why=why) for path, why in notes]
        answer: dict[str, Any] = {
            "change_id": self.change_id if settled.changes or running or not is_recorded else None,
            "exit_code": exit_code,
            **settled.count_paths(),
            "complete": settled.complete and not running,
            "not_kept": [{"path": one.key, "why": one.why} for one in settled.not_kept],
            "running": list(running),
        }
        self.write_report(answer)
        return answer

    def _settle(self, exit_code: int, *, is_running: bool) -> "tuple[Settlement, bool]":
        """Record what the command did, and tell whether that went well: what was kept stays where it is if not."""
        from surehold.capture.settled.settlement import Settlement, UnkeptPath
        from surehold.errors import SureholdError

        recorder, settled, failure = self._recorder, Settlement(), ""
        if recorder is None:
            return settled, True
        try:
            if not is_running:
                return recorder.finish(exit_code, self._guard.approval if self._guard else None), True
        except (SureholdError, OSError) as error:
            failure = error.message if isinstance(error, SureholdError) else str(error)
        with suppress(SureholdError, OSError):
            settled = recorder.preview()
        if failure:
            why = f"it is kept, and not in the history yet ({failure}) When that is mended: surehold recover"
            settled.not_kept.insert(0, UnkeptPath(key="", why=why))
        return settled, not failure

    def write_report(self, answer: dict[str, Any]) -> None:
        """Write the report where it was asked for; a failure is told, and changes nothing else."""
        if self.report:
            try:
                _replace_file(self.report, answer)
            except OSError as error:
                answer["problem"] = f"the report could not be written to {self.report}: {error.strerror}"


def _run_joined(book: _CommandBook, outer: "OpenRun") -> "RunEnding":
    """Run a command inside of another run, which records what it does."""
    if not f"{book.root}/".startswith(f"{outer.root.rstrip('/')}/"):
        raise _impossible(f"this is part of a run in {outer.root}, and a process can be captured only once")
    _refuse_guard(book, "this is part of another run, whose guard counts")
    from surehold.capture.caller import run_plainly

    ending = run_plainly(book.command_line())
    why = f"it is part of the run {outer.change_id}, whose report has what it changed"
    counts = dict.fromkeys(("created", "changed", "deleted", "moved"))  # not known apart from the rest
    ending.report = {"change_id": outer.change_id, "exit_code": ending.exit_code, **counts, "complete": False}
    ending.report |= {"not_kept": [{"path": "", "why": why}], "running": [], "joined": True}
    book.write_report(ending.report)
    return ending


def _run_compared(book: _CommandBook, why: str) -> "RunEnding":
    """Keep the whole tree before the command, and compare after it; that is never complete."""
    if not book.args.best_effort:
        raise _impossible(why)
    _refuse_guard(book, "calls cannot be held up, since they cannot be captured")
    from surehold.capture.caller import run_plainly

    keeper = book.open_keeper()
    keeper.keep_tree()
    ending = run_plainly(book.command_line())
    keeper.find_new()
    keeper.add_note(b"", f"the tree was compared before and after, since it could not be captured: {why}")
    ending.report = book.conclude(ending.exit_code, (), ())
    return ending


def _replace_file(path: str, answer: dict[str, Any] | None) -> None:
    """Put a report at a path, all at once; with None only try whether that is possible."""
    import json

    if os.path.isdir(path):  # noqa: PTH112 - strings all the way
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
            file.write(json.dumps(answer) + "\n")
        if answer is not None:
            os.replace(temporary, path)  # noqa: PTH105
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)  # noqa: PTH108
