"""Renders the review page as HTML. Everything from files or agents is escaped."""

from collections.abc import Iterable, Sequence
from html import escape

from surehold.front.shared.approval_queue import PendingApproval
from surehold.front.shared.ledger_json import classify_rows, describe_approval, format_move
from surehold.stores.base import Entry
from surehold.text.escape import escape_lines, escape_text
from surehold.workspace.history import ChangeView
from surehold.workspace.proposal import FileReceipt

_MAX_DIFF_CHARS = 200_000
_MAX_EDITABLE_BYTES = 200_000
_MAX_LISTED_PATHS = 10
_MAX_LISTED_FILES = 50
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
<header><a href="/">Surehold</a> <span>what agents did, and what they ask for</span></header>
<main>{status}{body}</main>
</body>
</html>
"""


def render_sign_in(*, wrong: bool = False) -> str:
    problem = '<p class="notice">This is not the token.</p>' if wrong else ""
    return render_document(
        "Surehold: sign in",
        f"""<section class="card"><h1>Sign in</h1>{problem}
<form method="post" action="/review/sign-in" id="sign-in">
<label>Token <input name="token" type="password" autocomplete="off" autofocus required></label>
<button>Sign in</button></form>
<p class="quiet">The token is printed where <code>surehold serve</code> was started.</p></section>""",
    )


def render_overview(questions: Sequence[PendingApproval], views: Iterable[ChangeView], *, more: str = "") -> str:
    waiting = "".join(_render_question(one) for one in questions) or '<p class="quiet">Nothing waits for you.</p>'
    found = "".join(_render_row(view) for view in views)
    happened = (
        f"<table><thead><tr><th>When (UTC)</th><th>Who</th><th>What</th><th>Where</th><th></th></tr></thead>"
        f"<tbody>{found}</tbody></table>"
        if found
        else '<p class="quiet">Nothing has been changed here yet.</p>'
    )
    older = f'<p><a href="/?before={escape(more)}">Older changes</a></p>' if more else ""
    return (
        f'<section id="questions"><h1>Waiting for you</h1>{waiting}</section>'
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


def _render_question(question: PendingApproval) -> str:
    request = question.request
    call, many = request.call, len(request.files) > 1
    summary = f"change {len(request.files)} files" if many else request.files[0].summary
    warnings = "".join(f"<p>Warning: {escape(escape_text(text))}</p>" for one in request.files for text in one.warnings)
    note = f" Its note: {escape(escape_text(call.reason))}" if call.reason else ""
    return f"""<article class="card question" id="question-{escape(question.id)}">
<h2>{escape(escape_text(call.agent or "An agent"))} wants to {escape(escape_text(summary))}</h2>
{_render_file_list(request.files) if many else ""}
<p>{escape(escape_text(request.why))} It calls <code>{escape(escape_text(call.tool))}</code>.{note}</p>
{warnings}{_render_diff(request.diff, cut=any(one.change.diff_truncated for one in request.files))}
<form method="post" action="/review/question/{escape(question.id)}">
{_render_content_field(question)}
<label>Note to the agent <input name="note" maxlength="500"></label>
<p class="buttons"><button name="decision" value="allow" class="yes">Allow</button>
<button name="decision" value="always">Allow for this session</button>
<button name="decision" value="refuse" class="no">Refuse</button></p>
</form></article>"""


def _render_file_list(files: Sequence[FileReceipt]) -> str:
    named = "".join(f"<li>{escape(escape_text(one.summary))}</li>" for one in files[:_MAX_LISTED_FILES])
    rest = f"<li>and {len(files) - _MAX_LISTED_FILES} more</li>" if len(files) > _MAX_LISTED_FILES else ""
    return f"<ul>{named}{rest}</ul>"


def _render_content_field(question: PendingApproval) -> str:
    """Offer the new content of one small text file, so that the person may change it first."""
    content = offered_content(question)
    if content is None:
        return ""
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
    text = after.text.removeprefix("\ufeff")
    plain = text.replace("\r\n", "\n")
    holdable = "\r" not in plain and plain == plain.encode("utf-8", "replace").decode()
    return plain if holdable else None


def _render_row(view: ChangeView) -> str:
    first = view.entries[0]
    state = "undone" if view.undone_by else "" if first.ok else "refused"
    return (
        f'<tr class="{state}"><td><time datetime="{escape(first.timestamp)}">{_format_time(first.timestamp)}</time></td>'
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
