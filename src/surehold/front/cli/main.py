"""`surehold …`: finds the command, runs it, and turns the outcome into an exit code.

0 done · 1 refused · 2 wrong usage · 3 a bug in Surehold · 130 interrupted

Nothing heavy is imported here: `surehold --help` answers before the engine is loaded.
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from surehold.errors import InvalidArgument, NotFound, SureholdError
from surehold.front.cli.command import Command, CommandContext
from surehold.front.cli.doctor import DOCTOR
from surehold.front.cli.file_commands import FILE_COMMANDS
from surehold.front.cli.history_commands import HISTORY_COMMANDS
from surehold.front.cli.output import Output, OutputFailed, escape_text, output_to, prepare_streams
from surehold.front.cli.search_commands import SEARCH_COMMANDS
from surehold.front.cli.server_commands import ACP_COMMANDS, SERVER_COMMANDS
from surehold.front.cli.tool_commands import TOOL_COMMANDS
from surehold.front.cli.trash_commands import TRASH_COMMANDS
from surehold.front.cli.upkeep_commands import UPKEEP_COMMANDS
from surehold.front.cli.view_command import VIEW_COMMANDS

DONE, REFUSED, USAGE, BUG, INTERRUPTED = 0, 1, 2, 3, 130

COMMANDS: tuple[Command, ...] = (
    *HISTORY_COMMANDS,
    *FILE_COMMANDS,
    *VIEW_COMMANDS,
    *SEARCH_COMMANDS,
    *TRASH_COMMANDS,
    *SERVER_COMMANDS,
    *ACP_COMMANDS,
    *TOOL_COMMANDS,
    *UPKEEP_COMMANDS,
    DOCTOR,
)

_PROGRAM = "surehold"
_INTRODUCTION = "Surehold: file tools for AI agents that never lose an edit."
_GLOBAL_USAGE = " [--root DIR] [--state-dir DIR] [--json] [--no-color]"
_USAGE_COLUMNS = 78
_UNKNOWN_CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from")


class UsageError(Exception):
    """The words on the command line do not make a command."""

    def __init__(self, message: str, *, program: str, usage: str) -> None:
        super().__init__(message)
        self.program = program
        self.usage = usage


class CommandParser(argparse.ArgumentParser):
    """Raises instead of ending the process, takes no abbreviations, and has the global options everywhere."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **settings)
        # Without a default of its own, an option behind the command does not erase one before it.
        add_global_options(self, default=argparse.SUPPRESS)

    def format_usage(self) -> str:
        """Return the usage without the global options, which the help lists below."""
        import textwrap

        words = " ".join(super().format_usage().split()).replace(_GLOBAL_USAGE, "")
        return (
            textwrap.fill(words, width=_USAGE_COLUMNS, break_on_hyphens=False, subsequent_indent=" " * len("usage: "))
            + "\n"
        )

    def format_help(self) -> str:
        """Return the help, with that usage."""
        self.usage = self.format_usage().removeprefix("usage: ").strip().replace("%", "%%")
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        """Leave through `run`, which knows how to say it."""
        raise UsageError(message, program=self.prog, usage=self.format_usage().strip())


def add_global_options(parser: argparse.ArgumentParser, *, default: Any) -> None:
    """Add what every command understands."""
    group = parser.add_argument_group("everywhere")
    group.add_argument("--root", metavar="DIR", default=default, help="the workspace (default: the current directory)")
    group.add_argument("--state-dir", metavar="DIR", default=default, help="where its history is kept")
    group.add_argument("--json", action="store_true", default=default, help="print one JSON document")
    group.add_argument("--no-color", action="store_true", default=default, help="no colour; NO_COLOR does the same")


def entry() -> NoReturn:
    """Run the program."""
    prepare_streams()
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    wants_json, no_color = "--json" in argv, "--no-color" in argv
    out, err = (output_to(stream, no_color=no_color) for stream in (sys.stdout, sys.stderr))
    try:
        code = _run_command(argv, out, err, wants_json=wants_json)
        out.flush()
    except BrokenPipeError:  # the reader had enough, as `head` does
        _let_go_of_stdout()
        return DONE
    except OutputFailed as error:
        _let_go_of_stdout()
        err.print_line(f"The output cannot be written: {error}.")
        return REFUSED
    return code


def _run_command(argv: Sequence[str], out: Output, err: Output, *, wants_json: bool) -> int:
    try:
        args = build_parser().parse_args(_expand_help(argv))
        if args.wants_help or not args.command:
            out.print_line(overview_text())
            return DONE
        context = CommandContext(
            root=_resolve_root(args.root), state_dir=args.state_dir or "", json=bool(args.json), out=out, err=err
        )
        command = next(one for one in COMMANDS if one.name == args.command)
        return command.run(context, args)
    except UsageError as error:
        return _report_wrong_usage(error, argv, out, err, wants_json=wants_json)
    except SureholdError as error:
        return _report_refusal(error, out, err, wants_json=wants_json)
    except KeyboardInterrupt:
        err.print_line("Interrupted.")
        return INTERRUPTED
    except SystemExit as end:  # argparse has printed a help text
        return end.code if isinstance(end.code, int) else DONE
    except (BrokenPipeError, OutputFailed):
        raise
    except Exception as error:  # noqa: BLE001 - the last line of defence: whatever it is, it is our bug
        return _report_bug(error, argv, out, err, wants_json=wants_json)


def _resolve_root(given: str) -> str:
    root = given or "."
    if not os.path.isabs(root):  # noqa: PTH117 - pathlib is not loaded yet
        try:
            os.getcwd()  # noqa: PTH109 - neither here
        except FileNotFoundError:
            raise NotFound(
                "The current directory is gone.",
                reason="no_such_root",
                action="Change to a directory that exists, or name one with --root.",
            ) from None
    return root


def _expand_help(argv: Sequence[str]) -> list[str]:
    """Let `surehold help log` mean `surehold log --help`."""
    return [*argv[1:2], "--help"] if list(argv[:1]) == ["help"] else list(argv)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    top = CommandParser(prog=_PROGRAM, add_help=False)
    top.set_defaults(root="", state_dir="", json=False, no_color=False, command="")
    top.add_argument("-h", "--help", action="store_true", dest="wants_help")
    top.add_argument("--version", action="store_const", const="version", dest="command")
    words = top.add_subparsers(dest="command", metavar="COMMAND", parser_class=CommandParser)
    for command in COMMANDS:
        one = words.add_parser(command.name, description=command.help, epilog=f"example:\n  {command.example}")
        command.add_arguments(one)
    return top


def overview_text() -> str:
    """Return the help text of the whole program."""
    longest = max(len(command.name) for command in COMMANDS)
    parts = [_INTRODUCTION, "", "usage: surehold COMMAND [options]"]
    for group in dict.fromkeys(command.group for command in COMMANDS):
        rows = [f"  {one.name:<{longest}}  {one.help}" for one in COMMANDS if one.group == group]
        parts += ["", f"{group}:", *rows]
    options = argparse.ArgumentParser(add_help=False, usage=argparse.SUPPRESS)
    add_global_options(options, default=None)
    parts += ["", options.format_help().strip().replace("everywhere:", "Everywhere, before or behind the command:")]
    parts += ["", "Help on one command, with an example: surehold COMMAND --help"]
    return "\n".join(parts)


def _report_wrong_usage(error: UsageError, argv: Sequence[str], out: Output, err: Output, *, wants_json: bool) -> int:
    message, action = str(error), error.usage
    if unknown := _UNKNOWN_CHOICE.search(message):
        message, action = _explain_unknown_word(unknown[1], error)
    elif message.startswith("unrecognized"):
        word = next((word for word in argv if word in {command.name for command in COMMANDS}), "")
        action = f"See: {' '.join(filter(None, (_PROGRAM, word)))} --help"
    if wants_json:
        out.print_json({"error": InvalidArgument(message, reason="usage", action=action).as_dict()})
    else:
        err.print_line(f"{err.paint('Wrong usage', 'red', 'bold')}: {escape_text(message)}")
        err.print_line(escape_text(action, keep="\n"))
    return USAGE


def _explain_unknown_word(word: str, error: UsageError) -> tuple[str, str]:
    import difflib

    if error.program != _PROGRAM:
        return f"`{word}` is not an action of `{error.program}`.", error.usage
    close = difflib.get_close_matches(word, [command.name for command in COMMANDS], n=2)
    guess = f"Did you mean: {' or '.join(f'{_PROGRAM} {name}' for name in close)}" if close else "See: surehold --help"
    return f"`{word}` is not a command.", guess


def _report_refusal(error: SureholdError, out: Output, err: Output, *, wants_json: bool) -> int:
    if wants_json:
        out.print_json({"error": error.as_dict()})
        return REFUSED
    err.print_line(f"{err.paint('Refused', 'red', 'bold')}: {escape_text(error.message)}")
    if cause := error.details.get("cause"):
        place = f" ({escape_text(error.path)})" if error.path else ""
        err.print_line(f"Reason: {escape_text(str(cause))}{place}")
    if error.action:
        err.print_line(f"{err.paint('Next', 'bold')}: {escape_text(error.action)}")
    return REFUSED


def _report_bug(error: Exception, argv: Sequence[str], out: Output, err: Output, *, wants_json: bool) -> int:
    from surehold.front.shared.bug_report import write_report

    place = write_report(error, argv)
    message = f"Surehold itself failed ({type(error).__name__}); this is a bug."
    if wants_json:
        out.print_json(
            {"error": SureholdError(message, reason="bug", action="Please report it.", report=place).as_dict()}
        )
    else:
        err.print_line(f"{err.paint('Bug', 'red', 'bold')}: {message}")
        err.print_line(f"Next: please report it, with this file: {escape_text(place)}")
    return BUG


def _let_go_of_stdout() -> None:
    """Keep the interpreter from complaining about the closed pipe when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
