"""Renders what happened: conversations with their turns and net diffs, lists of changes, files and the trash."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from surehold.front.review.diff_markup import PageRoom
from surehold.front.review.file_markup import ShownFile, file_path, render_counts, render_file, render_form
from surehold.front.review.markup import render_sentence
from surehold.front.shared.ledger_json import format_command, format_move
from surehold.stores.base import Entry
from surehold.stores.upkeep import TrashItem
from surehold.text.escape import reveal_text
from surehold.workspace.undo.switch_board import ChangeView

if TYPE_CHECKING:
    from surehold.stores.conversations import SessionTurn
    from surehold.workspace.past.blame import BlamedLine
    from surehold.workspace.past.net_diff import FileNetDiff
    from surehold.workspace.past.overview import SessionSummary

SHOWN_STEPS = 50
SHOWN_FILES = 50
SHOWN_LINES = 1000
_MAX_LISTED_PATHS = 10
_MAX_LINE_CHARS = 1000
_MAX_REASON_CHARS = 300
NOT_UNDOABLE = frozenset({"gc"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationView:
    """Everything that the page of one conversation shows."""

    summary: "SessionSummary"
    turns: "Sequence[SessionTurn]"
    changes: Sequence[ChangeView]
    """Those that are shown, oldest first."""
    file: str = ""
    """The only file whose diff is shown; empty for all."""
    split: bool = False
    first_row: int = 0
    first_file: int = 0
    newer_changes: int = 0
    """How many changes come after those that are shown."""
    has_older_changes: bool = False

    def address(self, **more: str) -> str:
        words = {"view": "split" if self.split else "", "file": self.file, **more}
        found = urlencode({name: value for name, value in words.items() if value}, errors="surrogateescape")
        return f"{conversation_path(self.summary.session)}{'?' + found if found else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlamePart:
    """Some lines of a file with who wrote them."""

    lines: "Sequence[BlamedLine]" = ()
    first: int = 0
    """How many lines come before them."""
    count: int = 0
    """How many lines the file has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFilter:
    """What a person looks for in the list of changes."""

    agent: str = ""
    path: str = ""
    text: str = ""
    since: str = ""
    refused: bool = False
    before: int = field(default=0)

    def query(self, **more: str) -> str:
        words = {"agent": self.agent, "path": self.path, "text": self.text, "since": self.since}
        words["refused"] = "1" if self.refused else ""
        found = urlencode({k: v for k, v in {**words, **more}.items() if v}, errors="surrogateescape")
        return f"/review/changes?{found}"


def conversation_path(session: str) -> str:
    return f"/review/session/{quote(session, safe='', errors='surrogateescape')}"


def render_time(timestamp: str) -> str:
    """Return a moment of the ledger, which counts in UTC; the script shows it in the time of the reader."""
    return f'<time datetime="{escape(timestamp)}">{escape(timestamp[:19].replace("T", " "))} UTC</time>'


def render_conversations(found: "Sequence[SessionSummary]", *, more: bool, older: int = 0) -> str:
    if not found:
        return ""
    rows = "".join(
        f'<li id="conversation-{escape(reveal_text(one.session))}" data-version="{escape(one.ended)}">'
        f'<a href="{conversation_path(one.session)}">{escape(reveal_text(one.agent or "an agent"))}</a> '
        f"{render_time(one.ended)} · {_count(one.turns, 'turn')}, {_count(one.changes, 'change')} in "
        f"{_count(one.files, 'file')} {render_counts(one.added, one.removed)}</li>"
        for one in found
    )
    link = '<p><a href="/review/sessions">All conversations</a></p>' if more else ""
    link += f'<p><a href="/review/sessions?skip={older}">Older conversations</a></p>' if older else ""
    return f'<section id="conversations"><h1>Conversations</h1><ul class="rows" id="conversation-rows">{rows}</ul>{link}</section>'


def render_summary(one: "SessionSummary") -> str:
    """Render who a conversation was with, and how much it did."""
    undo_all = _undo_form("Undo this conversation", session=one.session)
    facts = (
        f"{render_time(one.started)} to {render_time(one.ended)} · {_count(one.turns, 'turn')}, "
        f"{_count(one.changes, 'change')} in {_count(one.files, 'file')} {render_counts(one.added, one.removed)}"
    )
    return (
        f'<section class="card"><h1>{escape(reveal_text(one.agent or "An agent"))}</h1><p>{facts}</p>'
        f'<p class="quiet">Session <code>{escape(reveal_text(one.session))}</code></p>{undo_all}</section>'
    )


def render_net_diffs(view: ConversationView, nets: "Sequence[FileNetDiff]") -> str:
    """Render what a conversation did to each file, all together."""
    other = view.address(view="" if view.split else "split")
    toggle = f'<p><a href="{escape(other)}">{"One column" if view.split else "Side by side"}</a></p>'
    chosen = [net for net in nets if view.file in {"", net.key}]
    shown, room = chosen[view.first_file : view.first_file + SHOWN_FILES], PageRoom()
    files = "".join(_render_file(view, net, room) for net in shown)
    files = files or '<p class="quiet">Nothing of it is in effect.</p>'
    if rest := len(chosen) - view.first_file - len(shown):
        link = escape(view.address(at=f"{view.first_file + len(shown)}"))
        files += f'<p class="notice">{_count(rest, "more file")}. <a href="{link}">Go on</a></p>'
    if view.file:
        files += f'<p><a href="{conversation_path(view.summary.session)}">All files of this conversation</a></p>'
    return f"<section><h1>What it did, all together</h1>{toggle}{files}</section>"


def render_turns(view: ConversationView) -> str:
    """Render the changes of a conversation, turn by turn."""
    titles = {turn.id: turn.title for turn in view.turns}
    order = [*titles, *dict.fromkeys(one.entries[0].call.turn for one in view.changes)]
    by_turn: dict[str, list[ChangeView]] = {turn: [] for turn in dict.fromkeys(order)}
    for one in view.changes:
        by_turn[one.entries[0].call.turn].append(one)
    applied = [one.id for one in view.changes if one.entries[0].ok]
    newest = applied[-1] if applied and not view.newer_changes else ""
    parts = list[str]()
    for turn, changes in by_turn.items():
        if not changes:
            continue
        unmarked = "Without a turn" if any(by_turn[name] for name in by_turn if name) else "The whole session"
        title = titles.get(turn) or (f"Turn {turn}" if turn else unmarked)
        undo = _undo_form("Undo this turn", session=view.summary.session, turn=turn) if turn else ""
        rows = "".join(_render_step(view, one, is_newest=one.id == newest) for one in changes)
        parts.append(
            f'<article class="turn"><h2>{escape(reveal_text(title))}</h2>{undo}<ol class="rows">{rows}</ol></article>'
        )
    older = newer = ""
    if view.has_older_changes:
        link = escape(view.address(skip=f"{view.newer_changes + len(view.changes)}"))
        older = f'<p><a href="{link}">Older changes of this conversation</a></p>'
    if view.newer_changes:
        link = escape(view.address(skip=f"{max(view.newer_changes - SHOWN_STEPS, 0) or ''}"))
        newer = f'<p><a href="{link}">Newer changes of this conversation</a></p>'
    return f"<section><h1>Turns</h1>{older}{''.join(parts)}{newer}</section>" if parts else ""


def _render_step(view: ConversationView, one: ChangeView, *, is_newest: bool) -> str:
    first = one.entries[0]
    reason = f" {escape(reveal_text(first.call.reason))}" if first.call.reason else ""
    state = change_state(one)
    after = ""
    if first.ok and not is_newest:
        after = _undo_form("Undo everything after this", session=view.summary.session, after=one.id)
    return (
        f'<li class="{state}" tabindex="-1">{render_time(first.timestamp)} {escape(operation_name(first))} '
        f'<a href="/review/change/{escape(one.id)}"><code>{escape(path_list(one))}</code></a>{reason} '
        f"{f'<em>{state}</em> ' if state else ''}{after}</li>"
    )


def _render_file(view: ConversationView, net: "FileNetDiff", room: PageRoom) -> str:
    session, key = view.summary.session, net.to_key or net.key
    return render_file(
        ShownFile(
            net=net,
            more=view.address(file=net.key, first="0").removesuffix("0"),
            undo=_undo_form("Undo this file", session=session, path=key),
            part_words={"session": session, "path": net.key, "before": net.before.sha256, "after": net.after.sha256},
            split=view.split,
            first=view.first_row,
            room=room,
            is_alone=view.file == net.key,
        )
    )


def render_changes(views: Iterable[ChangeView], *, empty: str = "Nothing has been changed here yet.") -> str:
    found = "".join(_render_change_row(view) for view in views)
    if not found:
        return f'<p class="quiet">{escape(empty)}</p>'
    return (
        '<table class="changes"><thead><tr><th>When</th><th>Who</th><th>What</th><th>Where</th><th>State</th></tr></thead>'
        f'<tbody id="change-rows">{found}</tbody></table>'
    )


def render_change_list(views: Sequence[ChangeView], wanted: ChangeFilter, *, more: str, note: str = "") -> str:
    older = f'<p><a href="{escape(wanted.query(before=more))}">Older changes</a></p>' if more else ""
    said = f'<p class="notice">{escape(note)}</p>' if note else ""
    return (
        f'<section id="changes"><h1>Changes</h1>{render_filter(wanted)}{said}'
        f"{render_changes(views, empty='No change matches.')}{older}</section>"
    )


def render_filter(wanted: ChangeFilter) -> str:
    fields = "".join(
        f'<label>{title} <input name="{name}" value="{escape(value)}" placeholder="{hint}"></label>'
        for name, title, value, hint in (
            ("agent", "Agent", wanted.agent, "claude"),
            ("path", "File or folder", wanted.path, "src"),
            ("text", "Text", wanted.text, "in diff, reason, name"),
            ("since", "Since", wanted.since, "2h, 10:00, yesterday"),
        )
    )
    checked = " checked" if wanted.refused else ""
    return (
        f'<form method="get" action="/review/changes" class="filter" role="search">{fields}'
        f'<label class="tick"><input type="checkbox" name="refused" value="1"{checked}> refused only</label>'
        "<button>Find</button></form>"
    )


def _render_change_row(view: ChangeView) -> str:
    first, state = view.entries[0], change_state(view)
    agent = escape(reveal_text(author_name(first)))
    if first.call.session:
        agent = f'<a href="{conversation_path(first.call.session)}">{agent}</a>'
    return (
        f'<tr class="{state}" id="change-{escape(view.id)}" data-version="{state}"><td>{render_time(first.timestamp)}</td>'
        f"<td>{agent}</td><td>{escape(operation_name(first))}</td>"
        f'<td><a href="/review/change/{escape(view.id)}"><code>{escape(path_list(view))}</code></a> '
        f"{_render_size(view)}{_render_purpose(view)}</td>"
        f"<td>{state or render_undo_button(view)}</td></tr>"
    )


def _render_size(view: ChangeView) -> str:
    return render_counts(view.added, view.removed) if view.entries[0].ok and (view.added or view.removed) else ""


def _render_purpose(view: ChangeView) -> str:
    """Render the reason of a change, or the command that made it."""
    call = view.entries[0].call
    text = call.reason or (f"$ {format_command(call)}" if call.argv else "")
    cut = f"{text[:_MAX_REASON_CHARS]} …" if len(text) > _MAX_REASON_CHARS else text
    return f'<p class="reason">{escape(reveal_text(cut))}</p>' if text else ""


def author_name(entry: Entry) -> str:
    """Return the agent of an entry; `outside` for what other programs did."""
    return entry.call.agent or ("outside" if entry.call.operation == "external" else "-")


def change_state(view: ChangeView) -> str:
    return "undone" if view.undone_by else "" if view.entries[0].ok else "refused"


def operation_name(entry: Entry) -> str:
    call = entry.call
    return call.operation if call.tool == call.operation else f"{call.operation} ({call.tool})"


def counted_entries(view: ChangeView) -> Sequence[Entry]:
    """Return the entries without those of directories whose time follows from the others."""
    return [entry for entry in view.entries if not entry.change.sets_times_only] or view.entries


def path_list(view: ChangeView) -> str:
    names = [reveal_text(format_move(one.change.path, one.change.to_path)) for one in counted_entries(view)]
    rest = f" and {len(names) - _MAX_LISTED_PATHS} more" if len(names) > _MAX_LISTED_PATHS else ""
    return ", ".join(names[:_MAX_LISTED_PATHS]) + rest


def render_undo_button(view: ChangeView) -> str:
    first = view.entries[0]
    if not first.ok or first.call.operation in NOT_UNDOABLE:
        return ""
    word = "redo" if view.undone_by else "undo"
    return (
        f'<form method="post" action="/review/change/{escape(view.id)}/{word}">'
        f"<button>{word.capitalize()}</button></form>"
    )


def _undo_form(label: str, **words: str) -> str:
    return render_form(label, "/review/undo", words)


def render_conflict(message: str, words: dict[str, str]) -> str:
    back = conversation_path(words["session"]) if words.get("session") else "/"
    return (
        f'<section class="card"><h1>It cannot all be undone</h1><p class="notice">{render_sentence(message)}</p>'
        f"{_undo_form('Undo what can be undone', **{**words, 'partial': '1'})}"
        f'<p><a href="{back}">Back, and change nothing</a></p></section>'
    )


def render_file_history(
    key: str, views: Sequence[ChangeView], blame: "BlamePart", *, problem: str = "", more: bool = False
) -> str:
    older = f'<p><a href="{escape(ChangeFilter(path=key).query())}">All changes of this file</a></p>' if more else ""
    rows = "".join(
        f'<span class="same" data-old="{one.number}">{_blame_label(one)} {escape(_cut_line(one.text))}\n</span>'
        for one in blame.lines
    )
    lines = f'<pre class="diff blame" tabindex="0">{rows}</pre>{_render_blame_links(key, blame)}' if rows else ""
    said = f'<p class="notice">{render_sentence(problem)}</p>' if problem else ""
    return (
        f'<section class="card"><h1><code>{escape(reveal_text(key))}</code></h1>{render_changes(views)}{older}</section>'
        f"<section><h1>Who wrote each line</h1>{said}{lines}</section>"
    )


def _render_blame_links(key: str, blame: BlamePart) -> str:
    """Render the way to the lines before and after those that are shown."""
    last, links = blame.first + len(blame.lines), list[str]()
    if blame.first:
        links.append(f'<a href="{escape(file_path(key, max(blame.first - SHOWN_LINES, 0)))}">Earlier lines</a>')
    if last < blame.count:
        links.append(f'<a href="{escape(file_path(key, last))}">Later lines</a>')
    if not links:
        return ""
    return f'<p class="notice">Lines {blame.first + 1:,} to {last:,} of {blame.count:,}. {" ".join(links)}</p>'


def _cut_line(text: str) -> str:
    rest = len(text) - _MAX_LINE_CHARS
    return reveal_text(text) if rest <= 0 else f"{reveal_text(text[:_MAX_LINE_CHARS])} … {rest:,} more characters"


def _blame_label(line: "BlamedLine") -> str:
    if line.entry is None or line.entry.call.operation == "external":
        return '<span class="who">outside</span>'
    who = escape(reveal_text(line.entry.call.agent or "-")[:12])
    return f'<a class="who" href="/review/change/{escape(line.entry.change_id)}">{who}</a>'


def render_trash(items: Sequence[TrashItem], *, more: bool = False) -> str:
    rows = "".join(
        f"<tr><td>{render_time(one.trashed)}</td><td>{escape(reveal_text(one.agent or '-'))}</td>"
        f"<td><code>{escape(reveal_text(one.path))}</code></td><td>{one.version.size:,} bytes</td>"
        f'<td><form method="post" action="/review/restore"><input type="hidden" name="item" value="{escape(one.id)}">'
        "<button>Restore</button></form></td></tr>"
        for one in items
    )
    if not rows:
        return '<section><h1>Trash</h1><p class="quiet">The trash is empty.</p></section>'
    link = escape(f"/review/trash?{urlencode({'after': items[-1].id})}")
    older = f'<p><a href="{link}">Files that were deleted earlier</a></p>' if more else ""
    head = "<tr><th>Deleted</th><th>By</th><th>File</th><th>Size</th><th>Restore</th></tr>"
    return f"<section><h1>Trash</h1><table><thead>{head}</thead><tbody>{rows}</tbody></table>{older}</section>"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
