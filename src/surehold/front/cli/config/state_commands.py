"""Commands on the place where histories are kept: state init, state status, state migrate."""

import argparse
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from surehold.errors import InvalidArgument
from surehold.front.cli.command import CommandContext, argument, as_path, command
from surehold.front.cli.output import TableCell, TableColumn, format_count

if TYPE_CHECKING:
    from surehold.app import Settings
    from surehold.disk.probe import ProbeResult
    from surehold.stores.postgres.database import PostgresDatabase

_URL = "postgresql://USER@HOST/DATABASE"
_WORKSPACE_COLUMNS = (
    TableColumn(title="workspace", least=16),
    TableColumn(title="entries", align="right"),
    TableColumn(title="open", align="right", rank=1),
    TableColumn(title="root", least=16, keep="end", rank=2),
)


@command(
    "init",
    "Set up a database for histories, or bring it up to date.",
    argument("url", "URL", f"{_URL} (default: what --state names)", nargs="?", default=""),
    argument("--role", "NAME", "also let this role use it, and do nothing else"),
    example="surehold state init postgresql://owner@db.example/surehold --role agents",
)
def init_state_command(context: CommandContext, args: argparse.Namespace) -> None:
    from surehold.stores.postgres import schema

    url: str = args.url or context.state
    if not url:
        action = f"Name it: surehold state init {_URL}, or set SUREHOLD_STATE."
        raise InvalidArgument("No database is named.", reason="bad_state_url", action=action)
    database = _open_database(url)
    try:
        before, after = schema.set_up(database)
        if args.role:
            schema.grant_to(database, args.role)
        shown = database.address.shown
    finally:
        database.close()
    done = "is up to date" if before == after else "was brought up to date" if before else "was set up"
    context.print_outcome(
        f"The schema at {shown} {done} (version {after}).", state=shown, schema=after, schema_before=before
    )
    if not args.role:
        context.print_hint(f"To use it: surehold --state {shown} log")


@command(
    "status",
    "Show what a place for histories holds (the default).",
    argument("url", "PLACE", f"a directory, or {_URL} (default: what --state names)", nargs="?", default=""),
    example="surehold state status postgresql://agents@db.example/surehold",
)
def status_state_command(context: CommandContext, args: argparse.Namespace) -> None:
    from surehold.workspace.settings import Limits

    given: str = getattr(args, "url", "")
    url = given if "://" in given else "" if given else context.state
    facts = _describe_database(url) if url else _describe_directory(context, given)
    facts["lease_seconds"] = Limits().lease
    if context.json:
        context.out.print_json(facts)
        return
    out = context.out
    out.print_labelled("State", str(facts["state"]))
    out.print_labelled("Schema", f"version {facts['schema']} (this Surehold: {facts['supported_schema']})")
    out.print_labelled("Lease", f"{facts['lease_seconds']:g} seconds")
    rows: list[tuple[TableCell, ...]] = [
        (
            (one["name"], "plain"),
            (str(one["entries"]), "plain"),
            (str(one["open_intents"]), "plain"),
            (one["root"], "dim"),
        )
        for one in facts["workspaces"]
    ]
    out.print_table(_WORKSPACE_COLUMNS, rows)


@command(
    "migrate",
    "Copy this workspace's history to another place, and check it there.",
    argument("target", "TARGET", f"a new directory, or {_URL}"),
    example="surehold state migrate postgresql://agents@db.example/surehold",
    note="The source is what --state or --state-dir names, and is not changed. Stop servers of this workspace first.",
)
def migrate_state_command(context: CommandContext, args: argparse.Namespace) -> None:
    from surehold.app import Settings, open_store
    from surehold.stores.migration import copy_history

    target = replace(_target_settings(args.target), blobs=context.blobs_address)
    context.check_root()
    if not context.has_history():
        context.open_recorded_workspace()
    _refuse_same_place(context, target)
    source = open_store(
        context.state_directory, Settings(state=context.state, blobs=context.blobs_address), root=context.root
    )
    try:
        there = open_store(target.state_dir or context.state_directory, target, root=context.root, importing=True)
        try:
            moved = copy_history(source, there)
        finally:
            there.close()
    finally:
        source.close()
    shown = args.target if not target.state else _shown(target.state)
    context.print_outcome(
        f"Copied {format_count(moved.entries, 'entry', 'entries')} and {format_count(moved.blobs, 'version')} to {shown}.",
        source=context.state_place,
        target=shown,
        **asdict(moved),
    )
    context.print_hint(f"To use it: surehold --state {shown} log")


def _target_settings(target: str) -> "Settings":
    from surehold.app import Settings

    if "://" not in target:
        if not target:
            raise InvalidArgument(
                "The target has no name.", reason="bad_state_url", action=f"Name a directory, or {_URL}."
            )
        return Settings(state_dir=as_path(target))
    from surehold.stores.postgres import schema

    settings = Settings(state=target)
    database = _open_database(target)
    try:
        if not database.transact(schema.read_version):
            schema.set_up(database)
    finally:
        database.close()
    return settings


def _refuse_same_place(context: CommandContext, target: "Settings") -> None:
    same = target.state == context.state if target.state else _same_directory(context, target)
    if same:
        action = "Name another directory or database."
        raise InvalidArgument("The history is there already.", reason="same_state", action=action)


def _same_directory(context: CommandContext, target: "Settings") -> bool:
    import os

    assert target.state_dir is not None
    return not context.state and os.path.realpath(target.state_dir) == os.path.realpath(context.state_directory)


def _describe_database(url: str) -> "dict[str, Any]":
    from surehold.stores.postgres import schema

    database = _open_database(url)
    try:
        return {
            "state": database.address.shown,
            "schema": schema.require_version(database),
            "supported_schema": schema.LATEST,
            "schema_name": database.address.schema,
            "workspaces": [asdict(one) for one in schema.list_workspaces(database)],
        }
    finally:
        database.close()


def examine_state(url: str, blobs: str) -> "tuple[ProbeResult, ...]":
    """Look at a database, and at the place of large versions, as `doctor` reports it."""
    from surehold.disk.probe import ProbeResult
    from surehold.stores.blobs.large_versions import probe_blobs
    from surehold.stores.postgres import schema
    from surehold.workspace.settings import Limits

    database = _open_database(url)
    try:
        found = [ProbeResult(**asdict(one)) for one in schema.examine_database(database)]
    finally:
        database.close()
    found.append(
        ProbeResult(name="state_lease", ok=True, detail=f"{Limits().lease:g} seconds, by the database's clock")
    )
    if blobs:
        problem = probe_blobs(blobs)
        found.append(ProbeResult(name="state_blobs", ok=not problem, detail=problem or f"{blobs} honours conditions"))
    return tuple(found)


def _describe_directory(context: CommandContext, given: str) -> "dict[str, Any]":
    from surehold.app import Settings, open_store
    from surehold.front.shared.locate import has_state_database
    from surehold.stores.sqlite.schema import LATEST

    directory = as_path(given) if given else context.state_directory
    workspaces = list[dict[str, object]]()
    if has_state_database(directory):
        store = open_store(directory, Settings(), root=context.root)
        try:
            entries, opened = store.verify(blobs=False).entries, len(store.open_intents())
        finally:
            store.close()
        root = str(as_path(context.root).resolve())
        workspaces.append(
            {"name": directory.name, "root": root, "host": "", "entries": entries, "open_intents": opened}
        )
    return {
        "state": str(directory),
        "schema": LATEST if workspaces else 0,
        "supported_schema": LATEST,
        "schema_name": "",
        "workspaces": workspaces,
    }


def _open_database(url: str) -> "PostgresDatabase":
    from surehold.stores.postgres.address import is_postgres_url, parse_address
    from surehold.stores.postgres.database import PostgresDatabase

    if not is_postgres_url(url):
        raise InvalidArgument(f"`{url}` is not the URL of a database.", reason="bad_state_url", action=f"Use {_URL}.")
    return PostgresDatabase(parse_address(url), patience=0)


def _shown(url: str) -> str:
    from surehold.stores.postgres.address import hide_password

    return hide_password(url)


state_command = replace(
    status_state_command,
    name="state",
    arguments=(),
    help="Set up, show or move the place where histories are kept.",
    actions=(init_state_command, status_state_command, migrate_state_command),
)
