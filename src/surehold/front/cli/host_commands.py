"""Commands for the hosts that run agents: setup and hook."""

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from surehold.errors import InvalidArgument
from surehold.front.cli.command import DRY_RUN_FLAG, CommandContext, argument, command, flag, wrong_usage
from surehold.front.shared.person import person_name
from surehold.text.escape import reveal_text

if TYPE_CHECKING:
    from surehold.front.hosts.agent_host import AgentHost, SetupScope
    from surehold.front.hosts.setup import HostSetup
    from surehold.workspace.proposal import Receipt

_BLOCKED = 2
"""With this exit code a hook stops what the host was about to do."""
_HOST_ARGUMENT = argument("host", "HOST", "claude, codex, gemini, opencode, cursor, copilot or vscode")


def named_host(key: str) -> "AgentHost":
    """Return the host that a person named on the command line."""
    from surehold.front.hosts.agent_host import find_agent_host

    try:
        return find_agent_host(key)
    except InvalidArgument as error:
        raise wrong_usage(error) from None


@command(
    "setup",
    "Set up an agent's host: our server, our hooks, and its shell.",
    _HOST_ARGUMENT,
    (
        flag("--project", "in the files of this project (default)"),
        flag("--user", "in your own files, for all projects"),
    ),
    DRY_RUN_FLAG,
    flag("--remove", "take it out again"),
    example="surehold setup claude --dry-run",
    note="What the host's own tools and its shell change can then be undone too. Every other setting keeps its bytes.",
)
def setup_command(context: CommandContext, args: argparse.Namespace) -> None:
    from surehold.app import Settings, open_workspace
    from surehold.front.hosts.setup import plan_setup

    scope: SetupScope = "user" if args.user else "project"
    plan = plan_setup(named_host(args.host), scope, root=context.root, environment=os.environ)
    state_dir = plan.state_dir if plan.scope == "user" else None
    if state_dir is None and context.state_dir:
        from pathlib import Path

        state_dir = Path(context.state_dir)
    with open_workspace(
        plan.base, settings=Settings(state_dir=state_dir, state=context.state, protected=())
    ) as workspace:
        act = plan.remove if args.remove else plan.apply
        try:
            receipt = act(workspace, author=person_name(), dry_run=args.dry_run)
        except InvalidArgument as refused:
            if not (context.json or args.remove) and (wanted := refused.details.get("wanted")):
                context.print_note(f"This belongs in `{refused.path}`:")
                context.err.print_line(reveal_text(str(wanted), keep="\n"))
            raise
    _print_setup(context, plan, receipt, removed=args.remove)


def _print_setup(context: CommandContext, plan: "HostSetup", receipt: "Receipt | None", *, removed: bool) -> None:
    from surehold.front.cli.change_view import print_diff
    from surehold.front.shared.ledger_json import receipt_record

    next_step = "" if removed else plan.host.next_steps[plan.scope]
    if context.json:
        facts = {"host": plan.host.key, "scope": plan.scope, "directory": str(plan.base), "next": next_step or None}
        unchanged: dict[str, Any] = {"change_id": None, "files": []}
        context.out.print_json({**facts, **(receipt_record(receipt) if receipt else unchanged)})
        return
    if receipt is None:
        done = "is not set up here" if removed else "is set up here already"
        context.out.print_line(f"{plan.host.name} {done}; nothing was changed.")
        return
    print_diff(context.out, receipt.diff)
    verb = "Would change" if receipt.dry_run else "Changed"
    for one in receipt.files:
        context.out.print_labelled(verb, str(plan.base / one.path), "green")
    if receipt.dry_run:
        return
    if next_step:
        context.out.print_labelled("Next", next_step)
    undo = f"surehold setup {plan.host.key} --{plan.scope} --remove"
    context.print_hint(
        f"To reverse this: {undo}" if not removed else f"To reverse this: {undo.removesuffix(' --remove')}"
    )


@command(
    "hook",
    "What the hooks of a host call: records what its own tools do.",
    _HOST_ARGUMENT,
    argument("event", "EVENT", "the event, where the host does not put its name into the JSON", nargs="?", default=""),
    flag("--strict", "block the host if something cannot be recorded"),
    example="surehold hook claude < event.json",
    note="It reads one event as JSON from standard input, and prints what the host is to be told.",
)
def hook_command(context: CommandContext, args: argparse.Namespace) -> int:
    from surehold.front.hosts.hook import run_hook

    root = context.root if args.root else ""
    outcome = run_hook(
        args.host,
        sys.stdin.buffer.read(),
        event_name=args.event,
        root=root,
        state_dir=context.state_dir,
        blobs=context.blobs_address,
        state=context.state,
    )
    if outcome.failure:
        context.err.print_line(reveal_text(outcome.failure))
        return _BLOCKED if args.strict else 0
    context.out.print_line(outcome.text)
    return 0
