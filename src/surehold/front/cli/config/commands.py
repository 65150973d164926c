"""`surehold config` shows every setting and where it is from; `surehold completion` prints a script for a shell."""

import argparse
import os
from typing import Any

from surehold.front.cli.command import GLOBAL_OPTIONS, CommandContext, UsageError, argument, command
from surehold.front.cli.output import TableColumn

_CONFIG_COLUMNS = (
    TableColumn(title="setting"),
    TableColumn(title="value", least=16),
    TableColumn(title="from", least=12, keep="end"),
    TableColumn(title="what it is", least=10, rank=1),
)


@command(
    "config",
    "Show the settings of agents, and where each is from.",
    argument("name", "SETTING", "only this one", nargs="?", default=""),
    note=(
        "Settings are kept in surehold.toml of the workspace, which can only tighten, "
        "and in config.toml of your configuration directory; options win."
    ),
    example="surehold config\n  surehold config deny --json",
)
def config_command(context: CommandContext, args: argparse.Namespace) -> None:
    from surehold.front.cli.config.configuration import SETTINGS, load_configuration

    context.check_root()
    known = {one.name: one for one in SETTINGS}
    name = args.name.replace("_", "-")
    if name and name not in known:
        hint = f"Choose one of {', '.join(known)}."
        raise UsageError(f"There is no setting `{args.name}`.", hint=hint, reason="no_such_setting")
    found = load_configuration([os.path.realpath(context.root)], {})
    values = [one for one in found.values.values() if name in {"", one.name}]
    if context.json:
        rows = [{"name": one.name, "value": one.value, "source": one.source} for one in values]
        context.out.print_json({"settings": rows, "without_effect": found.without_effect})
        return
    context.out.print_table(
        _CONFIG_COLUMNS,
        [
            (
                (one.name, "cyan"),
                (_spell_value(one.value), "plain"),
                (one.source, "dim" if one.source == "default" else "yellow"),
                (known[one.name].help, "dim"),
            )
            for one in values
        ],
    )
    for sentence in found.without_effect:
        context.print_note(sentence)


def _spell_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value or "")  # pyright: ignore[reportUnknownArgumentType]
    return text or "-"


@command(
    "completion",
    "Print a script with which your shell completes our commands.",
    argument("shell", "bash|zsh|fish", "the shell", choices=("bash", "zsh", "fish")),
    note="Load it where your shell starts; open a new shell then.",
    example=(
        "surehold completion bash > ~/.local/share/bash-completion/completions/surehold\n"
        "  surehold completion zsh > ~/.zfunc/_surehold    (with fpath+=~/.zfunc before compinit)\n"
        "  surehold completion fish > ~/.config/fish/completions/surehold.fish"
    ),
)
def completion_command(context: CommandContext, args: argparse.Namespace) -> None:
    from surehold.front.cli.command import COMMAND_MODULES, load_command
    from surehold.front.cli.config.completion import completion_script

    text = completion_script(args.shell, tuple(map(load_command, COMMAND_MODULES)), GLOBAL_OPTIONS)
    context.print_outcome(text.rstrip("\n"), shell=args.shell, script=text)
