"""Renders the page of one change: who, when and why, and what it did to each file."""

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from surehold.front.review.diff_markup import PageRoom, render_diff
from surehold.front.review.file_markup import ShownFile, render_file
from surehold.front.review.history_markup import (
    NOT_UNDOABLE,
    author_name,
    conversation_path,
    operation_name,
    path_list,
    render_time,
    render_undo_button,
)
from surehold.front.shared.ledger_json import describe_approval
from surehold.text.escape import reveal_text
from surehold.workspace.undo.switch_board import ChangeView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from surehold.workspace.past.net_diff import FileNetDiff


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePage:
    """Everything that the page of one change shows."""

    view: ChangeView
    files: "Sequence[FileNetDiff]"
    """Those that are shown."""
    count: int
    """How many there are."""
    proposed: str = ""
    """What the agent had proposed, if the person wrote something else."""
    cut: bool = False
    split: bool = False
    file: str = ""
    first_row: int = 0
    first_file: int = 0

    def address(self, **more: str) -> str:
        words = {"view": "split" if self.split else "", "file": self.file, **more}
        found = urlencode({name: value for name, value in words.items() if value}, errors="surrogateescape")
        return f"/review/change/{self.view.id}{'?' + found if found else ''}"


def render_change_facts(view: ChangeView) -> str:
    """Render who made a change, when and why, and the button that undoes it."""
    first = view.entries[0]
    approval = {label: text for entry in view.entries for label, text in describe_approval(entry).items()}
    facts = [
        ("Who", author_name(first)),
        ("Tool", first.call.tool),
        ("Command", " ".join(first.call.argv)),
        ("Note", first.call.reason),
        ("Refused", "" if first.ok else first.message),
        ("Undone by", view.undone_by),
        *approval.items(),
    ]
    shown = "".join(f"<dt>{name}</dt><dd>{escape(reveal_text(value))}</dd>" for name, value in facts if value)
    session = first.call.session
    if session:
        link = f'<a href="{conversation_path(session)}">{escape(reveal_text(session))}</a>'
        shown += f"<dt>Session</dt><dd>{link}</dd>"
    return (
        f'<section class="card"><h1>{escape(operation_name(first))} <code>{escape(path_list(view))}</code></h1>'
        f"<dl><dt>When</dt><dd>{render_time(first.timestamp)}</dd>{shown}</dl>{render_undo_button(view)}</section>"
    )


def render_change(page: ChangePage) -> str:
    """Render what a change did, file by file."""
    view = page.view
    first = view.entries[0]
    other = escape(page.address(view="" if page.split else "split"))
    toggle = f'<p><a href="{other}">{"One column" if page.split else "Side by side"}</a></p>'
    can_undo = first.ok and not view.undone_by and first.call.operation not in NOT_UNDOABLE
    room = PageRoom()
    files = "".join(
        render_file(
            ShownFile(
                net=net,
                more=page.address(file=net.key if page.count > 1 else "", first="0").removesuffix("0"),
                part_words={"change": view.id, "path": net.key} if can_undo else {},
                split=page.split,
                first=page.first_row,
                room=room,
                is_alone=len(page.files) == 1,
            )
        )
        for net in page.files
    )
    instead = f"<h2>What the agent had proposed</h2>{render_diff(page.proposed, room=room)}" if page.proposed else ""
    whole = '<p class="notice">The diff is longer than what is shown here.</p>' if page.cut else ""
    if not first.ok and not any(net.diff or net.to_key for net in page.files):
        why = "No diff is kept: the call was refused before it was known what it would change."
        return f'<section><p class="quiet">{why}</p></section>'
    title = "What it did" if first.ok else "What it would have done"
    return f"<section><h1>{title}</h1>{toggle}{whole}{files}{_render_other_files(page)}{instead}</section>"


def _render_other_files(page: ChangePage) -> str:
    if page.file:
        return f'<p><a href="/review/change/{escape(page.view.id)}">All files of this change</a></p>'
    following = page.first_file + len(page.files)
    if following >= page.count:
        return ""
    link = escape(page.address(at=f"{following}"))
    return f'<p class="notice">{page.count - following:,} more files. <a href="{link}">Go on</a></p>'
