"""Renders the review page as HTML. Everything from files or agents is escaped."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from surehold.front.shared.approval_queue import PendingApproval
from surehold.front.shared.change_text import TextRow, unseen_lines
from surehold.front.shared.ledger_json import describe_approval, format_move
from surehold.stores.base import Entry
from surehold.text.diff_rows import classify_rows
from surehold.text.escape import escape_editable, escape_lines, escape_text
from surehold.workspace.history import ChangeView

_MAX_DIFF_CHARS = 200_000
_MAX_EDITABLE_BYTES = 200_000
_MAX_LISTED_PATHS = 10
_SECONDS_PER_MINUTE = 60
_MAX_TEXTAREA_ROWS = 16


def render_document(title: str, body: str, *, notice: str = "", state: str = "") -> str:
    status = f'<p class="notice" role="status">{escape(escape_text(notice))}</p>' if notice else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title>
<link rel="stylesheet" href="/review/page.css"><script src="/review/page.js" defer></script>
</head>
<body data-state="{escape(state)}">
<p class="alert" id="connection" role="alert" hidden></p>
<p class="alert" id="news" hidden><a href="#questions">News</a></p>
<header><a href="/">Surehold</a> <span>what agents did, and what they ask for</span></header>
<main>{status}{body}</main>
</body>
</html>
"""


def render_sign_in(*, wrong: bool = False, token_is_printed: bool = True) -> str:
    source = (
        "The token is printed where <code>surehold serve</code> was started."
        if token_is_printed
        else "The token is the one that <code>surehold serve</code> was given, in a file or in <code>SUREHOLD_TOKEN</code>."
    )
    problem = '<p class="notice">This is not the token.</p>' if wrong else ""
    return render_document(
        "Surehold: sign in",
        f"""<section class="card"><h1>Sign in</h1>{problem}
<form method="post" action="/review/sign-in" id="sign-in">
<label>Token <input name="token" type="password" autocomplete="off" autofocus required></label>
<button>Sign in</button></form>
<p class="quiet">{source}</p></section>""",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionCard:
    """A question, and how long it has waited and waits yet, in seconds."""

    question: PendingApproval
    age: float
    left: float

    @property
    def version(self) -> str:
        """What differs when the answers that are offered do."""
        return "ended" if self.question.ended else f"open {self.question.unseen}"


def render_overview(cards: Sequence[QuestionCard], views: Iterable[ChangeView], *, more: str = "") -> str:
    waiting = "".join(_render_question(one) for one in cards)
    waiting = waiting or '<p class="quiet" id="nothing-waits">Nothing waits for you.</p>'
    found = "".join(_render_row(view) for view in views)
    happened = (
        f"<table><thead><tr><th>When (UTC)</th><th>Who</th><th>What</th><th>Where</th><th></th></tr></thead>"
        f'<tbody id="change-rows">{found}</tbody></table>'
        if found
        else '<p class="quiet">Nothing has been changed here yet.</p>'
    )
    older = f'<p><a href="/?before={escape(more)}">Older changes</a></p>' if more else ""
    return (
        f'<section id="questions"><h1>Waiting for you</h1><div id="question-list">{waiting}</div></section>'
        f'<section id="changes"><h1>Changes</h1>{happened}{older}</section>'
    )


def render_change(view: ChangeView, diff: str, *, proposed: str = "", cut: bool = False) -> str:
    first = view.entries[0]
    approval = {label: text for entry in view.entries for label, text in describe_approval(entry).items()}
    facts = [
        ("When", f"{_format_time(first.timestamp)} UTC"),
        ("Who", first.call.agent or "-"),
        ("Tool", first.call.tool),
        ("Session", first.call.session or "-"),
        ("Note", first.call.reason),
        ("Refused", "" if first.ok else first.message),
        ("Undone by", view.undone_by),
        *approval.items(),
    ]
    instead = f"<h2>What the agent had proposed</h2>{_render_diff(proposed)}" if proposed else ""
    shown = "".join(f"<dt>{name}</dt><dd>{escape(escape_text(value))}</dd>" for name, value in facts if value)
    return (
        f'<section class="card"><h1>{escape(_operation_name(first))} <code>{escape(_path_list(view))}</code></h1>'
        f"<dl>{shown}</dl>{_render_undo_button(view)}{_render_diff(diff, cut=cut)}{instead}</section>"
    )


def render_question_page(card: QuestionCard, number: int) -> str:
    """Render one question by itself, with one page of its change and the way to the others."""
    text, path = card.question.text, f"/review/question/{escape(card.question.id)}"
    links = [
        f"<strong>{page}</strong>" if page == number else f'<a href="{path}?page={page}">{page}</a>'
        for page in range(1, text.page_count + 1)
    ]
    pages = f"<p>Page {' '.join(links)} of {text.page_count}</p>"
    following = f'<p><a href="{path}?page={number + 1}">Next page</a></p>' if number < text.page_count else ""
    return _render_question(card, f"{pages}{_render_rows(text.page(number))}{following}")


def _render_question(card: QuestionCard, body: str = "") -> str:
    question = card.question
    request, view = question.request, question.view
    call, many = request.call, len(request.files) > 1
    summary = f"change {len(request.files)} files" if many else request.files[0].summary
    note = f" Its note: {escape(escape_text(call.reason))}" if call.reason else ""
    return f"""<article class="card question" id="question-{escape(question.id)}" data-version="{card.version}">
<h2>{escape(escape_text(call.agent or "An agent"))} wants to {escape(escape_text(summary))}</h2>
<p class="status" aria-live="polite">{_render_status(card)}</p>
<p><strong>{escape(question.text.totals)}.</strong> {escape(escape_text(request.why))}
It calls <code>{escape(escape_text(call.tool))}</code>.{note}</p>
{body or _render_unseen(question) + _render_rows(view.rows, list_files=many)}
{_render_answers(card)}</article>"""


def _render_status(card: QuestionCard) -> str:
    question = card.question
    if question.ended:
        return f"The agent has gone. {escape(question.ended)} Nothing was written."
    also = " The client shows it too: the first answer counts." if question.has_channel else ""
    return (
        f'<span class="age" data-age="{card.age:.0f}" data-left="{card.left:.0f}">Asked {_format_span(card.age)} ago, '
        f"waits {_format_span(card.left)} more.</span>{also}"
    )


def _render_unseen(question: PendingApproval) -> str:
    hidden, pages = len(question.view.hidden), question.text.page_count
    if not hidden:
        return ""
    count = "1 page" if pages == 1 else f"{pages} pages"
    return (
        f'<p class="notice">{hidden:,} lines of this change are not shown whole here. '
        f'<a href="/review/question/{escape(question.id)}?page=1">Show everything ({count})</a></p>'
    )


def _render_answers(card: QuestionCard) -> str:
    question = card.question
    path = f"/review/question/{escape(question.id)}"
    if question.ended:
        return f"""<form method="post" action="{path}/dismiss"><p class="buttons"><button>Dismiss</button></p></form>"""
    unseen = question.unseen
    allow = '<button name="decision" value="allow" class="yes">Allow</button>\n<button name="decision" value="always">Allow for this session</button>'
    if unseen and question.request.is_protected:
        allow = "<span>A protected file can be allowed when everything was opened.</span>"
    elif unseen:
        allow = f'<button name="decision" value="allow" class="yes">Allow {unseen_lines(unseen)}</button>'
    return f"""<form method="post" action="{path}">
{_render_content_field(question)}
<label>Note to the agent <input name="note" maxlength="500"></label>
<p class="buttons"><input type="hidden" name="unseen" value="{unseen}">{allow}
<button name="decision" value="refuse" class="no">Refuse</button></p>
</form>"""


def _render_rows(rows: Sequence[TextRow], *, list_files: bool = True) -> str:
    listed = [row.text for row in rows if row.kind == "file" and list_files]
    files = f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in listed)}</ul>" if listed else ""
    warnings = "".join(f"<p>Warning: {escape(row.text)}</p>" for row in rows if row.kind == "warning")
    diff = [row for row in rows if row.kind not in {"file", "warning"}]
    spans = "".join(f'<span class="{kind}">{escape(text)}\n</span>' for kind, text in diff)
    return files + warnings + (f'<pre class="diff" tabindex="0">{spans}</pre>' if diff else "")


def _format_span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < _SECONDS_PER_MINUTE else f"{seconds // _SECONDS_PER_MINUTE:.0f} min"


def _render_content_field(question: PendingApproval) -> str:
    """Offer the new content of one small text file, so that the person may change it first."""
    content = offered_content(question)
    if content is None:
        return ""
    content = escape_editable(content)
    height = min(content.count("\n") + 2, _MAX_TEXTAREA_ROWS)
    return (
        "<details><summary>Change it first</summary>"
        f'<textarea name="content" rows="{height}" spellcheck="false">\n{escape(content)}</textarea></details>'
    )


def offered_content(question: PendingApproval) -> str | None:
    """Return the text that the person may change; None where a form cannot hold it."""
    files = question.request.files
    after = files[0].plan.after if len(files) == 1 else None
    if after is None or not after.exists or not after.is_text or after.size > _MAX_EDITABLE_BYTES:
        return None
    plain = after.text.removeprefix("\ufeff").replace("\r\n", "\n")
    return plain if plain == plain.encode("utf-8", "replace").decode() else None


def _render_row(view: ChangeView) -> str:
    first = view.entries[0]
    state = "undone" if view.undone_by else "" if first.ok else "refused"
    return (
        f'<tr class="{state}" id="change-{escape(view.id)}" data-version="{state}"><td><time datetime="{escape(first.timestamp)}">{_format_time(first.timestamp)}</time></td>'
        f"<td>{escape(escape_text(first.call.agent or '-'))}</td><td>{escape(_operation_name(first))}</td>"
        f'<td><a href="/review/change/{escape(view.id)}"><code>{escape(_path_list(view))}</code></a></td>'
        f"<td>{state or _render_undo_button(view)}</td></tr>"
    )


def _operation_name(entry: Entry) -> str:
    call = entry.call
    return call.operation if call.tool == call.operation else f"{call.operation} ({call.tool})"


def _path_list(view: ChangeView) -> str:
    names = [escape_text(format_move(one.change.path, one.change.to_path)) for one in view.entries]
    rest = f" and {len(names) - _MAX_LISTED_PATHS} more" if len(names) > _MAX_LISTED_PATHS else ""
    return ", ".join(names[:_MAX_LISTED_PATHS]) + rest


def _render_undo_button(view: ChangeView) -> str:
    first = view.entries[0]
    if not first.ok or first.call.operation in ("external", "gc"):
        return ""
    word = "redo" if view.undone_by else "undo"
    return (
        f'<form method="post" action="/review/change/{escape(view.id)}/{word}">'
        f"<button>{word.capitalize()}</button></form>"
    )


def _format_time(timestamp: str) -> str:
    """Return a moment of the ledger, which counts in UTC, to the second."""
    return escape(timestamp[:19].replace("T", " "))


def _render_diff(text: str, *, cut: bool = False) -> str:
    rows = classify_rows(escape_lines(text[:_MAX_DIFF_CHARS]).rstrip("\n"))
    spans = "".join(f'<span class="{kind}">{escape(row)}\n</span>' for kind, row in rows)
    cut = cut or len(text) > _MAX_DIFF_CHARS
    note = '<p class="notice">The diff is longer than what is shown here.</p>' if cut else ""
    return f'<pre class="diff">{spans}</pre>{note}' if text else '<p class="quiet">The content stays the same.</p>'
