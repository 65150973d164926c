"""The command that opens the review page: the one that is served already, else one of its own."""

import argparse
import os
import sys
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from surehold.errors import missing_extra
from surehold.front.cli.command import CommandContext, UsageError, argument, command, flag

if TYPE_CHECKING:
    from pathlib import Path

    from surehold.front.review.page_records import PageRecord

_HIGHEST_PORT = 65_535
_DISPLAY_VARIABLES = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


@command(
    "review",
    "Open the page to review what agents did.",
    argument("--port", None, "serve it at this port (default: the one of the last time)", type=int, default=0),
    flag("--no-browser", "only print the link"),
    note="If `surehold mcp --review` or `surehold serve` runs here, it is their page, where questions of agents are answered. "
    "Otherwise the page is served until Ctrl-C.",
    example="surehold review",
)
def review_command(context: CommandContext, args: argparse.Namespace) -> int | None:
    from surehold.front.review.page_records import ask_page, list_pages

    if not 0 <= args.port <= _HIGHEST_PORT:
        raise UsageError(f"{args.port} is not a port.")
    context.check_root()
    for record in list_pages(context.state_directory):
        if code := ask_page(record, "/review/code"):
            note = "The link signs you in once, within 2 minutes."
            _show_link(context, args, record, f"{record.url}/#{code}", running=True, note=note)
            return None
    if find_spec("uvicorn") is None or find_spec("starlette") is None:
        raise missing_extra("The review page cannot be served", "serve")
    return _serve_page(context, args, context.state_directory)


def _serve_page(context: CommandContext, args: argparse.Namespace, state_dir: "Path") -> int:
    import signal

    from surehold.front.review.page_records import PageRecord
    from surehold.front.review.page_server import PageServer
    from surehold.front.review.site import ReviewPage

    signal.signal(signal.SIGTERM, lambda _, __: sys.exit(0))
    with (
        context.open_workspace() as workspace,
        PageServer(state_dir, partial(ReviewPage, workspace, None), port=args.port, answers=False) as page,
    ):
        page.start()
        record = PageRecord(url=page.url, door="", pid=os.getpid(), answers=False)
        _show_link(context, args, record, page.link, running=False, note="Ctrl-C ends it.")
        while True:
            signal.pause()


def _show_link(
    context: CommandContext, args: argparse.Namespace, record: "PageRecord", link: str, *, running: bool, note: str
) -> None:
    facts = {"url": record.url, "link": link, "running": running, "answers": record.answers, "pid": record.pid}
    context.print_outcome(link, **facts)
    context.out.flush()
    if context.json:
        return
    context.print_note(note)
    if not args.no_browser and any(os.environ.get(name) for name in _DISPLAY_VARIABLES):
        import webbrowser

        webbrowser.open(link)
