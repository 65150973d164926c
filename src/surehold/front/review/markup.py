"""What the page shows, as HTML. Everything that comes from files or agents is escaped, and steers nothing."""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from surehold.front.review.questions import Question
from surehold.stores.base import Entry
from surehold.text.visible import safe, safe_rows
from surehold.workspace.past import ChangeView
from surehold.workspace.receipt import FileReceipt

_MOST_DIFF = 200_000
_EDITABLE = 200_000
_SHORT = 10
_MOST_FILES = 50
_MOST_ROWS = 16
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")


def document(title: str, body: str, *, notice: str = "", state: str = "") -> str:
    """Return a whole page."""
    said = f'<p class="notice" role="status">{escape(safe(notice))}</p>' if notice else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title>
<link rel="stylesheet" href="/review/page.css"><script src="/review/page.js" defer></script>
</head>
<body data-state="{escape(state)}">
<header><a href="/">Surehold</a> <span>what agents did, and what they ask for</span></header>
<main>{said}{body}</main>
</body>
</html>
"""


def sign_in(*, wrong: bool = False) -> str:
    """Return the page of somebody who has not shown the token yet."""
    said = '<p class="notice">This is not the token.</p>' if wrong else ""
    return document(
        "Surehold: sign in",
        f"""<section class="card"><h1>Sign in</h1>{said}
<form method="post" action="/review/sign-in" id="sign-in">
<label>Token <input name="token" type="password" autocomplete="off" autofocus required></label>
<button>Sign in</button></form>
<p class="quiet">The token is printed where <code>surehold serve</code> was started.</p></section>""",
    )


def overview(questions: Sequence[Question], views: Iterable[ChangeView], *, more: str = "") -> str:
    """Return what waits for an answer, and what happened, newest first."""
    waiting = "".join(_question(one) for one in questions) or '<p class="quiet">Nothing waits for you.</p>'
    found = "".join(_row(view) for view in views)
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


def change(view: ChangeView, diff: str, *, cut: bool = False) -> str:
    """Return one change with its difference, or with the beginning of it."""
    first = view.entries[0]
    facts = [
        ("When", f"{_moment(first.timestamp)} UTC"),
        ("Who", first.call.agent or "-"),
        ("Tool", first.call.tool),
        ("Session", first.call.session or "-"),
        ("Note", first.call.reason),
        ("Refused", "" if first.ok else first.message),
        ("Undone by", view.undone_by),
    ]
    shown = "".join(f"<dt>{name}</dt><dd>{escape(safe(value))}</dd>" for name, value in facts if value)
    return (
        f'<section class="card"><h1>{escape(_what(first))} <code>{escape(_places(view))}</code></h1>'
        f"<dl>{shown}</dl>{_ways_back(view)}{_diff(diff, cut=cut)}</section>"
    )


def _question(question: Question) -> str:
    request = question.request
    call, many = request.call, len(request.files) > 1
    deed = f"change {len(request.files)} files" if many else request.files[0].deed
    warnings = "".join(f"<p>Warning: {escape(safe(said))}</p>" for one in request.files for said in one.warnings)
    return f"""<article class="card question" id="question-{escape(question.id)}">
<h2>{escape(safe(call.agent or "An agent"))} wants to {escape(safe(deed))}</h2>
{_deeds(request.files) if many else ""}
<p>{escape(safe(request.why))} It calls <code>{escape(safe(call.tool))}</code>.{_note(call.reason)}</p>
{warnings}{_diff(request.diff, cut=any(one.change.diff_truncated for one in request.files))}
<form method="post" action="/review/question/{escape(question.id)}">
{_content_field(question)}
<label>What the agent should hear <input name="note" maxlength="500"></label>
<p class="buttons"><button name="decision" value="allow" class="yes">Allow</button>
<button name="decision" value="always">Allow for this session</button>
<button name="decision" value="refuse" class="no">Refuse</button></p>
</form></article>"""


def _deeds(files: Sequence[FileReceipt]) -> str:
    named = "".join(f"<li>{escape(safe(one.deed))}</li>" for one in files[:_MOST_FILES])
    rest = f"<li>and {len(files) - _MOST_FILES} more</li>" if len(files) > _MOST_FILES else ""
    return f"<ul>{named}{rest}</ul>"


def _note(reason: str) -> str:
    return f" Its note: {escape(safe(reason))}" if reason else ""


def _content_field(question: Question) -> str:
    """Offer the new content of one small text file, so that the person may change it first."""
    content = offered_content(question)
    if content is None:
        return ""
    height = min(content.count("\n") + 2, _MOST_ROWS)
    return (
        "<details><summary>Change it first</summary>"
        f'<textarea name="content" rows="{height}" spellcheck="false">\n{escape(content)}</textarea></details>'
    )


def offered_content(question: Question) -> str | None:
    """Return the text that the person may change; None where a form cannot hold it."""
    files = question.request.files
    after = files[0].plan.after if len(files) == 1 else None
    if after is None or not after.exists or not after.is_text or after.size > _EDITABLE:
        return None
    text = after.text.removeprefix("\ufeff")
    plain = text.replace("\r\n", "\n")
    holdable = "\r" not in plain and plain == plain.encode("utf-8", "replace").decode()
    return plain if holdable else None


def _row(view: ChangeView) -> str:
    first = view.entries[0]
    state = "undone" if view.undone_by else "" if first.ok else "refused"
    return (
        f'<tr class="{state}"><td><time datetime="{escape(first.timestamp)}">{_moment(first.timestamp)}</time></td>'
        f"<td>{escape(safe(first.call.agent or '-'))}</td><td>{escape(_what(first))}</td>"
        f'<td><a href="/review/change/{escape(view.id)}"><code>{escape(_places(view))}</code></a></td>'
        f"<td>{state or _ways_back(view)}</td></tr>"
    )


def _what(entry: Entry) -> str:
    return (
        entry.call.operation
        if entry.call.tool == entry.call.operation
        else f"{entry.call.operation} ({entry.call.tool})"
    )


def _places(view: ChangeView) -> str:
    names = [
        f"{safe(one.change.path)} → {safe(one.change.to_path)}" if one.change.to_path else safe(one.change.path)
        for one in view.entries
    ]
    rest = f" and {len(names) - _SHORT} more" if len(names) > _SHORT else ""
    return ", ".join(names[:_SHORT]) + rest


def _ways_back(view: ChangeView) -> str:
    first = view.entries[0]
    if not first.ok or first.call.operation in ("external", "gc"):
        return ""
    word = "redo" if view.undone_by else "undo"
    return (
        f'<form method="post" action="/review/change/{escape(view.id)}/{word}">'
        f"<button>{word.capitalize()}</button></form>"
    )


def _moment(timestamp: str) -> str:
    """Return a moment of the ledger, which counts in UTC, to the second."""
    return escape(timestamp[:19].replace("T", " "))


def _kinds(rows: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield every row of a diff with what it is: inside a hunk `--- x` is a removed line, outside it is a header."""
    old = new = 0
    for row in rows:
        if row.startswith("\\"):
            kind = "note"
        elif old > 0 or new > 0:
            kind = {"+": "added", "-": "removed"}.get(row[:1], "")
            old, new = old - (kind != "added"), new - (kind != "removed")
        elif hunk := _HUNK.match(row):
            kind = "hunk"
            old, new = (int(part or 1) for part in hunk.groups())
        else:
            kind = "header"
        yield kind, row


def _diff(text: str, *, cut: bool = False) -> str:
    rows = safe_rows(text[:_MOST_DIFF]).rstrip("\n").split("\n")
    spans = "".join(f'<span class="{kind}">{escape(row)}\n</span>' for kind, row in _kinds(rows))
    note = (
        '<p class="notice">The difference is longer than what is shown here.</p>'
        if cut or len(text) > _MOST_DIFF
        else ""
    )
    return f'<pre class="diff">{spans}</pre>{note}' if text else '<p class="quiet">The content stays the same.</p>'
