"""What the page shows, as HTML. Everything that comes from files or agents is escaped, and steers nothing."""

from collections.abc import Iterable, Sequence
from html import escape

from surehold.front.review.questions import Question
from surehold.stores.base import Entry
from surehold.text.visible import safe, safe_rows
from surehold.workspace.past import ChangeView

_MOST_DIFF = 200_000
_EDITABLE = 200_000
_SHORT = 10
_KINDS = {"+": "added", "-": "removed", "@": "place"}


def document(title: str, body: str, *, notice: str = "", state: str = "") -> str:
    """Return a whole page."""
    said = f'<p class="notice" role="status">{escape(notice)}</p>' if notice else ""
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
    rows = "".join(_row(view) for view in views)
    happened = (
        f"<table><thead><tr><th>When</th><th>Who</th><th>What</th><th>Where</th><th></th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
        if rows
        else '<p class="quiet">Nothing has been changed here yet.</p>'
    )
    older = f'<p><a href="/?before={escape(more)}">Older changes</a></p>' if more else ""
    return (
        f'<section id="questions"><h1>Waiting for you</h1>{waiting}</section>'
        f'<section id="changes"><h1>Changes</h1>{happened}{older}</section>'
    )


def change(view: ChangeView, diff: str) -> str:
    """Return one change with its difference."""
    first = view.entries[0]
    facts = [
        ("When", first.timestamp),
        ("Who", first.call.agent or "-"),
        ("Tool", first.call.tool),
        ("Session", first.call.session or "-"),
        ("Note", first.call.reason),
        ("Refused", "" if first.ok else first.message),
        ("Undone by", view.undone_by),
    ]
    rows = "".join(f"<dt>{name}</dt><dd>{escape(safe(value))}</dd>" for name, value in facts if value)
    return (
        f'<section class="card"><h1>{escape(_what(first))} <code>{escape(_places(view))}</code></h1>'
        f"<dl>{rows}</dl>{_ways_back(view)}{_diff(diff)}</section>"
    )


def _question(question: Question) -> str:
    request = question.request
    places = ", ".join(safe(one.path) for one in request.files)
    return f"""<article class="card question" id="question-{escape(question.id)}">
<h2>{escape(safe(request.call.agent or "An agent"))} wants to {escape(request.call.operation)}
<code>{escape(places)}</code></h2>
<p>{escape(safe(request.why))}{_note(request.call.reason)}</p>
{_diff(request.diff)}
<form method="post" action="/review/question/{escape(question.id)}">
{_content_field(question)}
<label>What the agent should hear <input name="note" maxlength="500"></label>
<p class="buttons"><button name="decision" value="allow" class="yes">Allow</button>
<button name="decision" value="always">Allow for this session</button>
<button name="decision" value="refuse" class="no">Refuse</button></p>
</form></article>"""


def _note(reason: str) -> str:
    return f" Its note: {escape(safe(reason))}" if reason else ""


def _content_field(question: Question) -> str:
    """Offer the new content of one small text file, so that the person may change it first."""
    content = offered_content(question)
    if content is None:
        return ""
    return (
        "<details><summary>Change it first</summary>"
        f'<textarea name="content" rows="16" spellcheck="false">\n{escape(content)}</textarea></details>'
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
        f'<tr class="{state}"><td><time datetime="{escape(first.timestamp)}">{escape(first.timestamp[:19])}</time></td>'
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


def _diff(text: str) -> str:
    shown = safe_rows(text[:_MOST_DIFF])
    rows = "".join(
        f'<span class="{_KINDS.get(row[:1], "")}">{escape(row)}\n</span>' for row in shown.rstrip("\n").split("\n")
    )
    cut = '<p class="quiet">The difference goes on.</p>' if len(text) > _MOST_DIFF else ""
    return f'<pre class="diff">{rows}</pre>{cut}' if text else '<p class="quiet">No bytes differ.</p>'
