"""Runs `surehold …`: finds the command, runs it, and turns the outcome into an exit code.

0 done · 1 refused · 2 wrong usage · 3 a bug in Surehold · 130 interrupted

Nothing heavy is imported here: `surehold --help` answers before the engine is loaded.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, NoReturn, cast

from surehold.errors import InvalidArgument, NotFound, SureholdError
from surehold.front.cli.command import (
    COMMAND_MODULES,
    GLOBAL_OPTIONS,
    Argument,
    Command,
    CommandContext,
    UsageError,
    load_command,
    make_context,
    overview_text,
)
from surehold.front.cli.output import Output, OutputFailed, output_to, prepare_streams, terminal_columns
from surehold.text.escape import reveal_text

DONE, REFUSED, USAGE, BUG, INTERRUPTED = 0, 1, 2, 3, 130

_PROGRAM = "surehold"
_USAGE_COLUMNS = 78
_UNKNOWN_WORD = re.compile(r"argument [^-].*?: invalid choice: '(.*?)' \(choose from")
_UNKNOWN_VALUE = re.compile(r"argument (-\S+): invalid choice: '(.*?)' \(choose from (.*)\)")
_ELSEWHERE = frozenset({"mcp", "serve", "acp", "hook"})
"""Commands that find out by themselves where they work."""
_NOT_STARTED = frozenset({"capture_impossible", "no_such_root"})
"""Why `run` refuses a command before it starts it."""
_PATH_ARGUMENTS = frozenset({"path", "paths", "source", "target", "to"})
_PATH_OR_ID_ARGUMENTS = frozenset({"subject", "item"})
_GLOBAL_USAGE = re.compile(
    r" \[(-C DIR|--root DIR|--state-dir DIR|--state PLACE|--blobs PLACE|--json|--no-color|--no-pager)\]"
)
_VALUE_OPTIONS = frozenset({"--root", "-C", "--state-dir", "--state", "--blobs"})
_JOINED_OPTIONS = ("--root=", "--state-dir=", "--state=", "--blobs=")
_FLAGS = frozenset({"--json", "--no-color", "--no-pager"})


class HelpLayout(argparse.RawDescriptionHelpFormatter):
    """Knows how wide the terminal is without `shutil`, which brings what unpacks archives."""

    def __init__(self, prog: str, **settings: Any) -> None:
        super().__init__(prog, **{"width": terminal_columns(sys.__stdout__ or sys.stdout) - 2, **settings})


class CommandParser(argparse.ArgumentParser):
    """Raises instead of exiting, accepts no abbreviations, and has the global options on every command."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", HelpLayout)
        # `tool` has a `--json` of its own, which takes the place of the global one.
        super().__init__(allow_abbrev=False, conflict_handler="resolve", **settings)
        # Without a default of its own, an option after the command does not erase one before it.
        _add_global_options(self, default=argparse.SUPPRESS)

    def format_usage(self) -> str:
        """Return the usage without the global options, which the help lists below."""
        import textwrap

        words = _GLOBAL_USAGE.sub("", " ".join(super().format_usage().split()))
        indent = " " * len("usage: ")
        return textwrap.fill(words, width=_USAGE_COLUMNS, break_on_hyphens=False, subsequent_indent=indent) + "\n"

    def format_help(self) -> str:
        self.usage = self.format_usage().removeprefix("usage: ").strip().replace("%", "%%")
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        unknown = _UNKNOWN_WORD.match(message)
        if unknown and self.prog == _PROGRAM:
            raise UsageError(f"`{unknown[1]}` is not a command.", hint=_suggest_command(unknown[1]))
        if unknown:
            message = f"`{unknown[1]}` is not an action of `{self.prog}`."
        if value := _UNKNOWN_VALUE.match(message):
            names = value[3].replace("'", "")
            message = f"{value[1]}: unknown value `{value[2]}`; choose from {names}."
        raise UsageError(message, hint=self.format_usage().strip())


def _suggest_command(word: str) -> str:
    import difflib

    close = difflib.get_close_matches(word, COMMAND_MODULES, n=2)
    return f"Did you mean: {' or '.join(f'{_PROGRAM} {name}' for name in close)}" if close else "See: surehold --help"


def _add_global_options(parser: argparse.ArgumentParser, *, default: Any) -> None:
    group = parser.add_argument_group("global options")
    for one in GLOBAL_OPTIONS:
        group.add_argument(*one.names, **{**one.settings, "default": default})


def entry() -> NoReturn:
    prepare_streams()
    sys.exit(run(sys.argv[1:]))


def run(argv: Sequence[str]) -> int:
    own = argv[: argv.index("--")] if "--" in argv else argv
    wants_json, no_color = "--json" in own, "--no-color" in own
    out, err = (output_to(stream, no_color=no_color) for stream in (sys.stdout, sys.stderr))
    code = DONE
    try:
        code = _run_command(argv, out, err, wants_json=wants_json)
        out.flush()
    except BrokenPipeError:  # the reader had enough, as `head` does
        _let_go_of_stdout()
        return code
    except OutputFailed as error:
        _let_go_of_stdout()
        err.print_line(f"The output cannot be written: {error}.")
        return REFUSED
    return code


def _run_command(argv: Sequence[str], out: Output, err: Output, *, wants_json: bool) -> int:
    try:
        if list(argv[:1]) == ["-c"]:
            return _run_as_shell(argv[1:], out, err)
        args = None if _asks_for_overview(argv) else _parse_arguments(argv)
        if args is None or args.wants_help or not args.run:
            out.print_line(overview_text())
            return DONE
        _change_directory(args)
        root = _locate_root(args)
        context = make_context(args, root, out=out, err=err)
        if root not in {".", args.root} and not context.json and args.command != "run":
            context.print_note(f"Workspace: {root}")
        with _paged_if_long(args, context):
            return args.run(context, args) or DONE
    except UsageError as error:
        return _report_wrong_usage(error, out, err, wants_json=wants_json)
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


def _paged_if_long(args: argparse.Namespace, context: CommandContext) -> AbstractContextManager[None]:
    command = load_command(args.command) if args.command else None
    if not (command and command.is_paged) or context.json or args.no_pager or getattr(args, "follow", False):
        return nullcontext()
    from surehold.front.cli.pager import page_output

    return page_output(context.out)


def _run_as_shell(words: Sequence[str], out: Output, err: Output) -> int:
    """Run a script as `sh -c SCRIPT` would, and record it; hosts call us so that are told which shell to use."""
    if not words:
        raise UsageError("-c requires a script.", hint="See: surehold --help")
    from surehold.front.hosts.shell import plan_script

    call = plan_script(words[0])
    if not call.is_recorded:
        call.run_unrecorded()
    args = _parse_arguments(call.run_words())
    context = make_context(args, args.root, out=out, err=err)
    try:
        return args.run(context, args) or DONE
    except SureholdError as error:
        if error.reason not in _NOT_STARTED:
            raise
        call.run_unrecorded(str(error))


def _change_directory(args: argparse.Namespace) -> None:
    """Go where `-C` says, as if the command had been typed there."""
    if not args.directory:
        return
    if args.command in _ELSEWHERE:
        args.root = args.root or args.directory
        return
    try:
        os.chdir(args.directory)
    except OSError as error:
        message = f"`{args.directory}` cannot be entered: {error.strerror}."
        action = "Name a directory that exists with -C."
        raise NotFound(message, path=args.directory, reason="no_such_root", action=action) from None


def _locate_root(args: argparse.Namespace) -> str:
    """Return the workspace of a command. If that is a directory above, the paths in the arguments are spelled from there."""
    if os.path.isabs(args.root):  # noqa: PTH117 - pathlib is not loaded yet
        return args.root
    try:
        here = os.getcwd()  # noqa: PTH109 - neither here
    except FileNotFoundError:
        from surehold.front.shared.locate import find_removed_workspace

        return find_removed_workspace("" if args.root else os.environ.get("PWD", ""), args.state_dir)
    if args.root or args.state_dir or args.state or args.command in _ELSEWHERE:
        return args.root or "."
    from surehold.front.shared.locate import find_workspace

    root = find_workspace(here)
    if root == here:
        return "."
    below = os.path.relpath(here, root)
    for name in _PATH_ARGUMENTS & vars(args).keys():
        setattr(args, name, _spell_from_root(getattr(args, name), below))
    for name in _PATH_OR_ID_ARGUMENTS & vars(args).keys():
        given = getattr(args, name)
        if isinstance(given, list):
            words = cast("list[str]", given)
            setattr(args, name, [_spell_from_root(one, below) if os.path.exists(one) else one for one in words])  # noqa: PTH110
        elif os.path.exists(given or ""):  # noqa: PTH110 - as above
            setattr(args, name, _spell_from_root(given, below))
    return root


def _spell_from_root(given: Any, below: str) -> Any:
    if isinstance(given, list):
        return [_spell_from_root(one, below) for one in cast("list[str]", given)]
    return os.path.normpath(os.path.join(below, given)) if given else given  # noqa: PTH118 - as above


def _parse_arguments(argv: Sequence[str]) -> argparse.Namespace:
    words = [*argv[1:2], "--help"] if list(argv[:1]) == ["help"] else argv  # `help log` is `log --help`
    only = _command_word(words)
    args, unknown = build_parser((only,) if only else COMMAND_MODULES).parse_known_args(words)
    if unknown:
        command = next((word for word in argv if word in COMMAND_MODULES), "")
        hint = f"See: {' '.join(filter(None, (_PROGRAM, command)))} --help"
        raise UsageError(f"unrecognized arguments: {' '.join(unknown)}", hint=hint)
    return args


def _asks_for_overview(argv: Sequence[str]) -> bool:
    """Tell it without the parser, which needs every command."""
    return list(argv) == ["help"] or all(word in _FLAGS or word in {"-h", "--help"} for word in argv)


def _command_word(argv: Sequence[str]) -> str:
    """Return the command, when nothing but global options is before it; it is then the only one to load."""
    words = iter(argv)
    for word in words:
        if word in COMMAND_MODULES:
            return word
        if word in _VALUE_OPTIONS:
            next(words, "")
        elif word not in _FLAGS and not word.startswith(_JOINED_OPTIONS):
            break
    return ""


def build_parser(names: Iterable[str] = COMMAND_MODULES) -> argparse.ArgumentParser:
    """Return the parser of these commands; loading them all takes a while."""
    top = CommandParser(prog=_PROGRAM, add_help=False)
    top.add_argument("-h", "--help", action="store_true", dest="wants_help")
    top.add_argument("-V", "--version", action="store_const", const=_run_version, dest="run")
    # With `prog` given, argparse need not format a usage line for it, and import `shutil` for that.
    words = top.add_subparsers(prog=_PROGRAM, dest="command", metavar="COMMAND", parser_class=CommandParser)
    for one in map(load_command, names):
        description = f"{one.help} {one.note}".strip()
        _fill_parser(words.add_parser(one.name, description=description, epilog=f"example:\n  {one.example}"), one)
    top.set_defaults(
        **dict.fromkeys(("root", "directory", "state_dir", "state", "blobs", "command"), ""),
        **dict.fromkeys(("json", "no_color", "no_pager"), False),
        run=None,
    )
    return top


def _run_version(context: CommandContext, args: argparse.Namespace) -> int | None:
    return load_command("version").run(context, args)


def _fill_parser(parser: argparse.ArgumentParser, command: Command) -> None:
    parser.set_defaults(run=command.run)
    for one in command.arguments:
        if isinstance(one, Argument):
            parser.add_argument(*one.names, **one.settings)
            continue
        group = parser.add_mutually_exclusive_group()
        for choice in one:
            group.add_argument(*choice.names, **choice.settings)
    if command.actions:
        metavar = "|".join(action.name for action in command.actions)
        actions = parser.add_subparsers(title="actions", metavar=metavar, parser_class=CommandParser)
        for one in command.actions:
            _fill_parser(actions.add_parser(one.name, help=one.help, description=one.help), one)


def _report_wrong_usage(error: UsageError, out: Output, err: Output, *, wants_json: bool) -> int:
    if wants_json:
        out.print_json({"error": InvalidArgument(str(error), reason=error.reason, action=error.hint).as_dict()})
        return USAGE
    err.print_labelled("Wrong usage", str(error), "red", "bold")
    if error.hint:
        err.print_line(reveal_text(error.hint, keep="\n"))
    return USAGE


def _report_refusal(error: SureholdError, out: Output, err: Output, *, wants_json: bool) -> int:
    if wants_json:
        with suppress(BrokenPipeError):  # it is a refusal, whether it is read or not
            out.print_json({"error": error.as_dict()})
        return REFUSED
    err.print_labelled("Refused", error.message, "red", "bold")
    if (cause := str(error.details.get("cause", ""))) and cause not in error.message:
        err.print_labelled("Reason", f"{cause} ({error.path})" if error.path else cause)
    if error.action:
        err.print_labelled("Next", error.action, "bold")
    return REFUSED


def _report_bug(error: Exception, argv: Sequence[str], out: Output, err: Output, *, wants_json: bool) -> int:
    from surehold.front.shared.bug_report import write_report

    report = write_report(error, argv)
    message = f"Surehold itself failed ({type(error).__name__}); this is a bug."
    if wants_json:
        bug = SureholdError(message, reason="bug", action="Please report it.", report=report)
        out.print_json({"error": bug.as_dict()})
    else:
        err.print_labelled("Bug", message, "red", "bold")
        err.print_labelled("Next", f"please report it, with this file: {report}")
    return BUG


def _let_go_of_stdout() -> None:
    """Keep the interpreter from complaining about the closed pipe when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
