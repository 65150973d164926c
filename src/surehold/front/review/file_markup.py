"""Renders what happened to one file: its name and facts, its diff, and what can be done about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from surehold.front.review.diff_markup import FileSides, PageRoom, render_diff
from surehold.front.review.markup import render_sentence
from surehold.front.shared.ledger_json import format_move
from surehold.text.escape import reveal_text
from surehold.workspace.undo.part import ChangedText

if TYPE_CHECKING:
    from surehold.workspace.past.net_diff import FileNetDiff

FILE_ROWS = 200
"""How much of one file's diff is shown beside those of others; by itself it has the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFile:
    """One file on a page."""

    net: "FileNetDiff"
    more: str
    """The address of the following rows, to which their number is added."""
    undo: str = ""
    """What undoes all of it, as HTML."""
    part_words: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the form that undoes one part sends; empty if no part can be."""
    room: PageRoom
    """How much more of diffs the page shows."""
    split: bool = False
    first: int = 0
    is_alone: bool = True


def changed_text(net: "FileNetDiff") -> ChangedText:
    return ChangedText(key=net.to_key or net.key, before=net.before, after=net.after, diff=net.diff)


def render_file(one: ShownFile) -> str:
    net = one.net
    name, key = escape(reveal_text(format_move(net.key, net.to_key))), net.to_key or net.key
    facts = f'<p class="facts">{escape(reveal_text("; ".join(net.facts)))}</p>' if net.facts else ""
    conflict = (
        f'<p class="notice">Each change by itself, since {render_sentence(net.conflict)}.</p>' if net.conflict else ""
    )
    text = changed_text(net)
    has_parts = bool(one.part_words) and not net.conflict and net.diff.count("\n@@ -") > 1 and text.has_parts
    diff = render_diff(
        net.diff,
        split=one.split,
        first=one.first if one.is_alone else 0,
        limit=None if one.is_alone else FILE_ROWS,
        more=one.more,
        sides=None if net.conflict else FileSides(name=key, before=net.before, after=net.after),
        part=(lambda number: render_form("Undo this part", "/review/part", {**one.part_words, "part": f"{number}"}))
        if has_parts
        else None,
        room=one.room,
    )
    if not net.diff and net.facts:
        diff = ""
    return (
        f'<article class="file" tabindex="-1"><h2><a href="{escape(file_path(key))}"><code>{name}</code></a> '
        f"{render_counts(net.added, net.removed)}</h2>{one.undo}{facts}{conflict}{diff}</article>"
    )


def render_form(label: str, action: str, words: Mapping[str, str]) -> str:
    fields = "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">' for name, value in words.items() if value
    )
    return f'<form method="post" action="{action}" class="inline">{fields}<button>{label}</button></form>'


def file_path(key: str, first_line: int = 0) -> str:
    words = {"path": key, **({"line": f"{first_line}"} if first_line else {})}
    return f"/review/file?{urlencode(words, errors='surrogateescape')}"


def render_counts(added: int, removed: int) -> str:
    return f'<span class="counts"><b class="plus">+{added:,}</b> <b class="minus">−{removed:,}</b></span>'
