"""`surehold run`: runs any command, unchanged, and records what it does to the files of the workspace."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from surehold.errors import InvalidArgument, PermissionDenied
from surehold.front.cli.command import Argument, CommandContext, argument, as_path, command, flag, parse_positive
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
_DEFAULT_GUARD = 100
_WRITABLE = ("/tmp", "/var/tmp", "/dev", "/proc/self")  # noqa: S108 - where a confined command may write besides
_SHOWN_PATHS = 20


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
    argument("--session", "S", "the session that the change belongs to"),
    argument("--turn", "T", "the turn of that session"),
    argument("--agent", "A", "who runs it (default: you)"),
    argument("--reason", "TEXT", "why, for the history"),
    argument("--report", "FILE", "write what changed to this file, as JSON"),
    argument(
        "--guard",
        "N",
        "ask before the Nth deletion and before a protected file changes (default: 100 at a terminal)",
        type=parse_positive,
        default=0,
    ),
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
        message, action = "No command was given.", "Write it after two dashes: surehold run -- make format"
        raise InvalidArgument(message, reason="no_command", action=action)
    context.check_root()
    root = os.path.realpath(context.root)
    report = os.path.abspath(args.report) if args.report else ""  # noqa: PTH100 - as it is spelled
    if (outer := joined_run()) is not None:
        return _run_joined(argv, root, report, *outer)
    from surehold.capture.filter import can_listen

    if why := can_listen():
        if args.best_effort:
            return _run_compared(context, args, argv, root=root, report=report, why=why)
        raise _impossible(why)
    try:
        return _run_captured(context, args, argv, root, report)
    except PermissionDenied as refused:
        if not args.best_effort or refused.reason != "capture_impossible":
            raise
        return _run_compared(context, args, argv, root=root, report=report, why=refused.message)


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
    writable = (root, *_WRITABLE, os.environ.get("TMPDIR", "/tmp")) if args.confine else None  # noqa: S108 - as named
    line = CommandLine(argv=tuple(argv), environment=environment, wait=args.wait, writable=writable)
    if not args.guard and _has_terminal():  # asked here: the supervisor has no terminal
        args.guard = _DEFAULT_GUARD
    book = _CommandBook(context=context, args=args, argv=tuple(argv), root=root, change_id=change_id, report=report)
    context.out.flush()
    context.err.flush()
    ending = run_captured(line, lambda: book, _ask_at_terminal)
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

    def make_guard(self, ask: Callable[[dict[str, Any]], bool]) -> "DeletionGuard | None":
        limit = self.args.guard
        return _RemovalGuard(limit=limit, root=os.fsencode(self.root), ask=ask) if limit else None

    def conclude(self, exit_code: int, notes: Sequence[tuple[bytes, str]], running: Sequence[str]) -> dict[str, Any]:
        from surehold.capture.settle import Settlement, UnkeptPath

        settled = Settlement()
        if self._recorder is not None:
            settled = self._recorder.preview() if running else self._recorder.finish(exit_code)
        settled.not_kept += [UnkeptPath(key=os.fsdecode(path), why=why) for path, why in notes]
        answer: dict[str, Any] = {
            "change_id": self.change_id if settled.changes or running else None,
            "exit_code": exit_code,
            **settled.count_paths(),
            "complete": settled.complete,
            "not_kept": [{"path": one.key, "why": one.why} for one in settled.not_kept],
            "running": list(running),
        }
        if self.report:
            _write_report(self.report, answer)
        return answer


@dataclass(slots=True, kw_only=True)
class _RemovalGuard:
    """Asks a person before very much is removed; the whole process tree waits for the answer."""

    limit: int
    root: bytes
    ask: Callable[[dict[str, Any]], bool]
    _removed: list[str] = field(default_factory=list[str])
    _removals_allowed: bool | None = None
    _protected_allowed: bool | None = None

    def allows_removal(self, path: bytes, keeper: "Keeper") -> bool:
        """Count what was there before the command; what it made itself may go."""
        if keeper.touch(path) is None:
            return True
        self._removed.append(os.fsdecode(path.removeprefix(self.root + b"/")))
        if len(self._removed) < self.limit:
            return True
        if self._removals_allowed is None:
            shown = self._removed[-_SHOWN_PATHS:]
            self._removals_allowed = self.ask({"removes": len(self._removed), "paths": shown})
        return self._removals_allowed

    def allows_change(self, path: bytes, keeper: "Keeper") -> bool:  # noqa: ARG002 - the same for every guard
        """Ask once before the first change of a file that configures another program."""
        name = os.fsdecode(path.removeprefix(self.root + b"/"))
        if not _is_protected(name):
            return True
        if self._protected_allowed is None:
            self._protected_allowed = self.ask({"protected": name, "paths": [name]})
        return self._protected_allowed


def _is_protected(name: str) -> bool:
    from surehold.workspace.access.policy import Policy
    from surehold.workspace.access.protected_names import PROTECTED

    inside_git = "/.git/" in f"/{name}"
    if inside_git and not name.endswith("/config") and "/hooks/" not in name:
        return False  # git's own record of its work
    return bool(Policy(protected=PROTECTED).rules_for(name, name, key=name).protected_by)


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask_at_terminal(question: dict[str, Any]) -> bool:
    """Show what is about to go and ask; without a terminal the answer is no."""
    try:
        with open("/dev/tty", "r+b", buffering=0) as terminal:  # noqa: PTH123 - the terminal itself
            what = (
                f"change the protected file {question['protected']}"
                if "protected" in question
                else f"delete its file number {question['removes']}"
            )
            rows = [f"surehold: the command is about to {what}:", *(f"  {one}" for one in question["paths"])]
            text = "\n".join(escape_text(row) for row in rows)
            terminal.write(f"{text}\nLet it go on? y = yes, n = no: ".encode())
            return terminal.readline().strip().lower().startswith(b"y")
    except OSError:
        return False


def _run_joined(argv: Sequence[str], root: str, report: str, change_id: str, outer: str) -> int:
    """Run a command inside of another run, which records what it does."""
    if not f"{root}/".startswith(f"{outer}/"):
        raise _impossible(f"this is part of a run in {outer}, and a process can be captured only once")
    import subprocess

    try:
        code = subprocess.call(list(argv))  # noqa: S603 - that is the purpose
    except FileNotFoundError:
        sys.stderr.write(f"surehold: {argv[0]}: not found\n")
        code = 127
    except OSError as error:
        sys.stderr.write(f"surehold: {argv[0]}: {error.strerror}\n")
        code = 126
    exit_code = 128 - code if code < 0 else code
    if report:
        counts = dict.fromkeys(("created", "changed", "deleted", "moved"), 0)
        answer = {"change_id": change_id, "exit_code": exit_code, **counts, "complete": True}
        _write_report(report, {**answer, "not_kept": [], "running": [], "joined": True})
    return exit_code


def _run_compared(
    context: CommandContext, args: argparse.Namespace, argv: Sequence[str], *, root: str, report: str, why: str
) -> int:
    """Keep the whole tree before the command, and compare after it; that is never complete."""
    import subprocess

    from surehold.workspace.settings import new_id

    book = _CommandBook(context=context, args=args, argv=tuple(argv), root=root, change_id=new_id(), report=report)
    keeper = book.open_keeper()
    keeper.keep_tree()
    try:
        code = subprocess.call(list(argv))  # noqa: S603 - that is the purpose
    except FileNotFoundError:
        code = 127
    keeper.find_new()
    exit_code = 128 - code if code < 0 else code
    keeper.add_note(b"", f"the tree was compared before and after, since it could not be captured: {why}")
    book.conclude(exit_code, (), ())
    return exit_code


def _write_report(path: str, answer: dict[str, Any]) -> None:
    import json

    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 - strings all the way
        file.write(json.dumps(answer) + "\n")
    os.replace(temporary, path)  # noqa: PTH105


def joined_run() -> tuple[str, str] | None:
    """Return the change and the root of the run that this process is part of."""
    change_id, _, root = os.environ.get(_JOINED, "").partition(" ")
    if not (change_id and root):
        return None
    with open("/proc/self/status", encoding="ascii", errors="replace") as facts:  # noqa: PTH123
        filtered = any(row.split()[1:] == ["2"] for row in facts if row.startswith("Seccomp:"))
    return (change_id, root) if filtered else None  # else the name is left over from a run that has ended
