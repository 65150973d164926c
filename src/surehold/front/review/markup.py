"""Renders the frame of every page, the sign-in, and questions: what would happen, and the answers that a person may give.

Everything from files or agents is escaped.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from surehold.errors import InvalidArgument
from surehold.front.review.diff_markup import FileSides, PartControl, render_diff
from surehold.front.shared.change_text import TextRow, unseen_lines
from surehold.front.shared.pending_approval import PendingApproval
from surehold.text.escape import escape_editable, reveal_text
from surehold.text.snapshot import Snapshot
from surehold.workspace.undo.part import ChangedText

_MAX_EDITABLE_BYTES = 200_000
_SECONDS_PER_MINUTE = 60
_MAX_TEXTAREA_ROWS = 16
_MAX_FILES = 50
_QUOTED = re.compile("`([^`]+)`")
_NOT_ASKED_HERE = (
    "Nothing waits for you. Agents ask when their server was started with <code>surehold mcp --review</code> "
    "or <code>surehold serve</code>, or when their client can ask."
)


def render_sentence(text: str) -> str:
    """Render a sentence of ours; what it quotes by backticks, such as names, is shown as code."""
    return _QUOTED.sub(r"<code>\1</code>", escape(reveal_text(text)))


def render_document(title: str, body: str, *, notice: str = "", state: str = "", project: str = "") -> str:
    begin = render_document_begin(title, notice=notice, state=state, project=project)
    return f"{begin}{body or '<h1>This cannot be shown</h1>'}{DOCUMENT_END}"


def render_document_begin(title: str, *, notice: str = "", state: str = "", project: str = "") -> str:
    """Render all of a page up to what it is about; `DOCUMENT_END` goes after that."""
    name = escape(reveal_text(project)) if project else "what agents did, and what they ask for"
    status = f'<p class="notice" role="status">{render_sentence(notice)}</p>' if notice else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(reveal_text(title))}</title>
<link rel="icon" href="/review/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/review/page.css"><script src="/review/page.js" defer></script>
</head>
<body data-state="{escape(state)}">
<aside id="bars" aria-label="State of this page"><p class="alert" id="connection" role="alert" hidden></p>
<p class="alert" id="news" hidden><a href="#questions">News</a></p>
<p class="alert" id="stale" hidden><a href="">Something has changed since this page was made. Load it again.</a></p></aside>
<header><a href="/">Surehold</a> <span>{name}</span>
<nav aria-label="Pages"><a href="/review/sessions">Conversations</a> <a href="/review/changes">Find changes</a>
<a href="/review/trash">Trash</a> <button id="notify" type="button" hidden>Notify me of questions</button></nav></header>
<main>{status}"""


DOCUMENT_END = """</main>
<dialog id="keys"><h2>Keys</h2><dl><dt>j, k</dt><dd>next, previous</dd><dt>y, n</dt><dd>go to Allow, Refuse</dd>
<dt>u</dt><dd>go to Undo</dd><dt>?</dt><dd>this list</dd></dl><form method="dialog"><button>Close</button></form></dialog>
</body>
</html>
"""


def render_problem(message: str) -> str:
    return f'<p class="notice" role="alert">{render_sentence(message)}</p>'


def render_sign_in(project: str, *, wrong: bool = False, is_chosen: bool = False) -> str:
    source = (
        "Or enter the token that the server was given, in a file or in <code>SUREHOLD_TOKEN</code>:"
        if is_chosen
        else "Or enter the token: what follows <code>#</code> in the link that the server printed when it started."
    )
    problem = (
        '<p class="notice" role="alert">This is not the token, or the link was used or is too old.</p>' if wrong else ""
    )
    return render_document(
        "Surehold: sign in",
        f"""<section class="card"><h1>Sign in</h1>{problem}
<p>This page shows what agents changed in <strong>{escape(reveal_text(project))}</strong>, and lets you answer for them,
so it is for you alone. This browser is not signed in, or the server has another token now.</p>
<p>Run <code>surehold review</code> in the project: it prints a link that signs you in, and opens it.</p>
<form method="post" action="/review/sign-in" id="sign-in"><p>{source}</p>
<label>Token <input name="token" type="password" autocomplete="off" autofocus required></label>
<button>Sign in</button></form>
<p class="quiet">You stay signed in for 30 days, also when the server is started again.</p></section>""",
        project=project,
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


def render_overview(
    cards: Sequence[QuestionCard], conversations: str, changes: str, *, more: str = "", is_asked: bool = True
) -> str:
    """`is_asked`: agents can ask here; elsewhere nothing is known about their questions."""
    waiting = "".join(_render_question(one) for one in cards)
    nothing = "Nothing waits for you." if is_asked else _NOT_ASKED_HERE
    waiting = waiting or f'<p class="quiet" id="nothing-waits">{nothing}</p>'
    older = f'<p><a href="/?before={escape(more)}">Older changes</a></p>' if more else ""
    return (
        f'<section id="questions"><h1>Waiting for you</h1><div id="question-list">{waiting}</div></section>'
        f'{conversations}<section id="changes"><h1>Changes</h1>{changes}{older}</section>'
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
    call, many = request.call, len(request.files) != 1
    level = "h1" if body else "h2"
    note = f" Its note: {escape(reveal_text(call.reason))}" if call.reason else ""
    body = body or _render_files(question) or _render_unseen(question) + _render_rows(view.rows, list_files=many)
    return f"""<article class="card question" id="question-{escape(question.id)}" data-version="{card.version}">
<{level}>{escape(reveal_text(call.agent or "An agent"))} wants to {escape(reveal_text(request.summary))}</{level}>
<p class="status" aria-live="polite">{_render_status(card)}</p>
<p><strong>{escape(question.text.totals)}.</strong> {render_sentence(request.why)}
It calls <code>{escape(reveal_text(call.tool))}</code>.{note}</p>
{body}
{_render_answers(card)}</article>"""


def _render_status(card: QuestionCard) -> str:
    question = card.question
    if question.ended:
        outcome = "The command could not go on." if question.request.command else "Nothing was written."
        return f"The agent has gone. {render_sentence(question.ended)} {outcome}"
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
    lines = "1 line of this change is" if hidden == 1 else f"{hidden:,} lines of this change are"
    return (
        f'<p class="notice">{lines} not shown whole here. '
        f'<a href="/review/question/{escape(question.id)}?page=1">Show everything ({count})</a></p>'
    )


def _render_answers(card: QuestionCard) -> str:
    question = card.question
    path = f"/review/question/{escape(question.id)}"
    if question.ended:
        return f"""<form method="post" action="{path}/dismiss"><p class="buttons"><button>Dismiss</button></p></form>"""
    unseen = question.unseen
    allow = '<button name="decision" value="allow" class="yes">Allow</button>'
    if not question.request.command:
        allow += '\n<button name="decision" value="always">Allow for this session</button>'
    if unseen and question.request.is_protected:
        allow = "<span>A protected file can be allowed when everything was opened.</span>"
    elif unseen:
        allow = f'<button name="decision" value="allow" class="yes">Allow {unseen_lines(unseen)}</button>'
    parts = '<input type="hidden" name="parts" value="1">' if offers_parts(question) else ""
    return f"""<form method="post" action="{path}" id="answer-{escape(question.id)}">{parts}
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


def changed_texts(question: PendingApproval) -> list[ChangedText]:
    """Return the files of a change that is shown whole, both versions of each; nothing where one of them is not plain text."""
    files = question.request.files
    if question.view.hidden or len({one.path for one in files}) < len(files) or len(files) > _MAX_FILES:
        return []
    if any(one.displaced.exists or (one.change.to_path and question.request.is_protected) for one in files):
        return []  # of these more is shown than a difference
    found = [
        ChangedText(key=one.path, before=one.plan.before, after=one.plan.after, diff=one.change.diff) for one in files
    ]
    cut = any(one.change.diff_truncated for one in files)
    return [] if cut or not all(_is_plain(one.before) and _is_plain(one.after) for one in found) else found


def _is_plain(side: Snapshot) -> bool:
    """Tell whether a version is absent, or UTF-8 text without anything that a form could change in passing."""
    if not side.exists:
        return True
    return b"\r" not in side.data and side.is_text and side.encoding.name == "utf-8" and not side.encoding.bom


def offers_parts(question: PendingApproval) -> bool:
    """Tell whether the person may leave parts of a change out."""
    return sum(map(_count_boxes, changed_texts(question))) > 1


def _is_one_part(text: ChangedText) -> bool:
    """Tell whether a file comes or goes as a whole."""
    return text.before.exists != text.after.exists


def _count_boxes(text: ChangedText) -> int:
    return 1 if _is_one_part(text) else text.part_count


def chosen_parts(question: PendingApproval, form: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the files without the parts that were left out, and the new and deleted files that were left out whole."""
    if not form.get("parts") or not offers_parts(question):
        return {}, ()
    chosen = [
        (one, frozenset(part for part in range(_count_boxes(one)) if _part_name(index, part) not in form))
        for index, one in enumerate(changed_texts(question))
    ]
    if all(gone and len(gone) == _count_boxes(one) for one, gone in chosen):
        raise InvalidArgument("No part was chosen.", action="Refuse the change if you want none of it.")
    contents = {one.key: one.without_parts(gone).decode() for one, gone in chosen if gone and not _is_one_part(one)}
    return contents, tuple(one.key for one, gone in chosen if gone and _is_one_part(one))


def _part_name(file: int, part: int) -> str:
    return f"part-{file}-{part}"


def _render_files(question: PendingApproval) -> str:
    """Render a change that is shown whole, file by file, with a box for each part that may be left out."""
    texts, boxes, request = changed_texts(question), offers_parts(question), question.request
    if not texts or not any(one.diff for one in texts):
        return ""
    listed = "".join(f"<li>{escape(row.text)}</li>" for row in question.view.rows if row.kind == "file")
    warnings = "".join(f"<p>Warning: {escape(row.text)}</p>" for row in question.view.rows if row.kind == "warning")
    hint = '<p class="quiet">Parts that are not ticked are left out, and the agent is told.</p>' if boxes else ""

    def box_for(file: int) -> PartControl | None:
        if not boxes or not _count_boxes(texts[file]):
            return None
        what = "file" if _is_one_part(texts[file]) else "part"
        return lambda part: (
            f'<label class="tick"><input type="checkbox" name="{_part_name(file, part)}" checked '
            f'form="answer-{escape(question.id)}"> take this {what}</label>'
        )

    def render_one(file: int, one: ChangedText) -> str:
        box, sides = box_for(file), FileSides(name=one.key, before=one.before, after=one.after)
        if one.diff:
            return render_diff(one.diff, limit=len(one.diff), sides=sides, part=box)
        return f"<p>{escape(reveal_text(one.key))}, without content: {box(0)}</p>" if box else ""

    diffs = "".join(render_one(index, one) for index, one in enumerate(texts))
    return (f"<ul>{listed}</ul>" if len(request.files) > 1 else "") + warnings + hint + diffs


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
