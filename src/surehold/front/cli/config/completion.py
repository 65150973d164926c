"""Writes the script with which bash, zsh or fish completes our command line, from the table of commands.

The script knows commands, options and the values of options; everything else is completed as a file name. It does not call
Surehold, so it answers at once.
"""

import shlex
from collections.abc import Iterator, Sequence

from surehold.front.cli.command import Argument, Command


class CommandWords:
    """What may follow one command: its options, their values, and its actions."""

    def __init__(self, command: Command, common: Sequence[Argument]) -> None:
        self.name, self.help = command.name, command.help
        self.actions = [(one.name, one.help) for one in command.actions]
        self._arguments = [*_flatten(command.arguments), *common]
        for one in command.actions:
            self._arguments += _flatten(one.arguments)

    def options(self) -> Iterator[Argument]:
        """Yield each option once; one of the command itself hides the global one of that name."""
        known = set[str]()
        for one in self._arguments:
            if one.names[0].startswith("-") and one.settings.get("help") != "==SUPPRESS==" and not known & {*one.names}:
                known.update(one.names)
                yield one

    def words(self) -> list[str]:
        """Return every word that may be there: options, actions, and the values of what has no option."""
        names = [name for one in self.options() for name in one.names]
        fixed = [
            str(value) for one in self._arguments if not _is_option(one) for value in one.settings.get("choices", ())
        ]
        return [*names, "--help", *(name for name, _ in self.actions), *fixed]


def _flatten(arguments: Sequence[Argument | tuple[Argument, ...]]) -> list[Argument]:
    return [one for item in arguments for one in (item if isinstance(item, tuple) else (item,))]


def _is_option(one: Argument) -> bool:
    return one.names[0].startswith("-")


def takes_value(one: Argument) -> bool:
    return one.settings.get("action") not in {"store_true", "store_const"}


def completion_script(shell: str, commands: Sequence[Command], common: Sequence[Argument]) -> str:
    known = [CommandWords(one, common) for one in commands]
    return {"bash": _bash_script, "zsh": _zsh_script, "fish": _fish_script}[shell](known, common)


def _choices_by_option(known: Sequence[CommandWords]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield command, option and values for every option whose values are known."""
    for command in known:
        for one in command.options():
            if values := [str(value) for value in one.settings.get("choices", ())]:
                yield command.name, "|".join(one.names), values


def _bash_script(known: Sequence[CommandWords], common: Sequence[Argument]) -> str:
    names = " ".join([*(one.name for one in known), *(name for one in common for name in one.names)])
    valued = " ".join(name for one in common if takes_value(one) for name in one.names)
    rows = ["# bash completion for surehold", "_surehold() {", "    local cur prev word command='' values='' skip=''"]
    rows += ["    COMPREPLY=()", '    cur="${COMP_WORDS[COMP_CWORD]}"', '    prev="${COMP_WORDS[COMP_CWORD-1]}"']
    rows += ['    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do']
    rows += ['        if [[ -n "$skip" ]]; then skip=""; continue; fi']
    rows += [f'        case " {valued} " in *" $word "*) skip=1; continue ;; esac']
    rows += ['        case "$word" in -*) ;; *) command="$word"; break ;; esac', "    done"]
    rows += ['    if [[ -n "$skip" ]]; then return; fi']
    rows += ['    case "$command:$prev" in']
    rows += [
        f"        {'|'.join(f'{name}:{option}' for option in options.split('|'))}) values={shlex.quote(' '.join(values))} ;;"
        for name, options, values in _choices_by_option(known)
    ]
    rows += ["    esac"]
    rows += ['    if [[ -n "$values" ]]; then COMPREPLY=($(compgen -W "$values" -- "$cur")); return; fi']
    rows += ['    case "$command" in']
    rows += [f"        '') values={shlex.quote(names)} ;;"]
    rows += [f"        {one.name}) values={shlex.quote(' '.join(one.words()))} ;;" for one in known]
    rows += ["    esac", '    COMPREPLY=($(compgen -W "$values" -- "$cur"))', "}"]
    rows += ["complete -o bashdefault -o default -F _surehold surehold"]
    return "\n".join(rows) + "\n"


def _zsh_script(known: Sequence[CommandWords], common: Sequence[Argument]) -> str:
    rows = ["#compdef surehold", "_surehold() {", "    local -a commands", "    local context state state_descr line"]
    rows += ["    typeset -A opt_args", "    commands=("]
    rows += [f"        {shlex.quote(f'{one.name}:{_one_line(one.help)}')}" for one in known]
    rows += ["    )", "    _arguments -C \\"]
    rows += [f"        {spec} \\" for one in common for spec in _zsh_specs(one)]
    rows += ["        '1:command:->command' '*::argument:->arguments'", "    case $state in"]
    rows += ["        command) _describe -t commands command commands ;;", "        arguments)"]
    rows += ["            case $words[1] in"]
    for command in known:
        specs = [spec for one in command.options() for spec in _zsh_specs(one)]
        fixed = [word for word in command.words() if not word.startswith("-")]
        first = f"'1:word:({' '.join(fixed)})'" if fixed else "'*:file:_files'"
        rows += [f"                {command.name}) _arguments {' '.join(specs)} '--help[show help]' {first} ;;"]
    rows += ["            esac ;;", "    esac", "}"]
    rows += ['if [ "$funcstack[1]" = "_surehold" ]; then _surehold "$@"; else compdef _surehold surehold; fi']
    return "\n".join(rows) + "\n"


def _zsh_specs(one: Argument) -> list[str]:
    text = _one_line(str(one.settings.get("help") or "")).replace("[", "(").replace("]", ")").replace(":", ",")
    values = " ".join(map(str, one.settings.get("choices", ())))
    action = f"({values})" if values else "_files"
    value = f":{str(one.settings.get('metavar') or 'value').lower()}:{action}" if takes_value(one) else ""
    repeated = "*" if one.settings.get("action") == "append" else ""
    return [shlex.quote(f"{repeated}{name}[{text}]{value}") for name in one.names]


def _fish_script(known: Sequence[CommandWords], common: Sequence[Argument]) -> str:
    names = " ".join(one.name for one in known)
    rows = ["# fish completion for surehold", f"set -l commands {names}"]
    rows += [
        f"complete -c surehold -n 'not __fish_seen_subcommand_from $commands' -f -a {one.name} -d {_fish_quote(one.help)}"
        for one in known
    ]
    rows += [f"complete -c surehold {_fish_option(one)}" for one in common]
    for command in known:
        seen = f"-n '__fish_seen_subcommand_from {command.name}'"
        globally = {name for one in common for name in one.names}
        rows += [
            f"complete -c surehold {seen} {_fish_option(one)}"
            for one in command.options()
            if not globally & {*one.names}
        ]
        if fixed := [word for word in command.words() if not word.startswith("-")]:
            rows += [f"complete -c surehold {seen} -f -a {_fish_quote(' '.join(fixed))}"]
    return "\n".join(rows) + "\n"


def _fish_option(one: Argument) -> str:
    names = [f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in one.names]
    values = " ".join(map(str, one.settings.get("choices", ())))
    value = (f"-x -a {_fish_quote(values)}" if values else "-r") if takes_value(one) else ""
    return " ".join(filter(None, (*names, value, "-d", _fish_quote(str(one.settings.get("help") or "")))))


def _fish_quote(text: str) -> str:
    escaped = _one_line(text).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _one_line(text: str) -> str:
    return " ".join(text.replace("%%", "%").split())
