"""The routes of the review page.

1. Showing the token sets a cookie that pages of other sites cannot use; everything but signing in requires it.
2. Every change is a POST from our own pages: its Origin must equal the Host that it was sent to, which the HTTP
   checks have already verified. Origins that may call the server are not the page.
3. Nothing is loaded from other sites, nothing may frame the page, and text from files and agents is never markup.
"""

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from surehold.errors import SureholdError
from surehold.front.review import markup
from surehold.front.shared.approval_queue import ApprovalQueue, PendingApproval, approval_for
from surehold.front.shared.change_text import unseen_lines
from surehold.front.shared.person import person_name
from surehold.stores.base import LedgerQuery
from surehold.text.escape import unescape_editable
from surehold.workspace.history import ChangeView
from surehold.workspace.proposal import CallAuthor
from surehold.workspace.workspace import Workspace

LOOPBACK_ADDRESSES = frozenset({"127.0.0.1", "::1"})
_COOKIE_PREFIX = "surehold-review"
_REVIEWER_NAME = "review page"
_ENTRIES_PER_PAGE = 100
_MAX_NOTICES = 50
_MAX_NOTE_CHARS = 500
_SEQ_DIGITS_LIMIT = 19
"""Shorter numbers are such that the store can count to."""
_MAX_FORM_BYTES = 4 << 20
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "same-origin",  # with `no-referrer` browsers send `Origin: null`, also to ourselves
    "X-Content-Type-Options": "nosniff",
}
PageEndpoint = Callable[[Request], Awaitable[Response]]


class ReviewPage:
    """Shows a workspace's changes and open questions to the person who has the token."""

    def __init__(
        self, workspace: Workspace, questions: ApprovalQueue, *, token: str, token_is_printed: bool = True
    ) -> None:
        self._workspace = workspace
        self._questions = questions
        self._token = token.encode()
        self._token_is_printed = token_is_printed
        self._cookie = hmac.new(self._token, b"surehold review page", hashlib.sha256).hexdigest()
        self._notices = OrderedDict[str, str]()

    def make_routes(self) -> list[Route]:
        return [
            Route("/", self._require_sign_in(self._show_overview)),
            Route("/review/state", self._require_sign_in(self._show_state)),
            Route("/review/sign-in", self._sign_in, methods=["POST"]),
            Route("/review/change/{id}", self._require_sign_in(self._show_change)),
            Route("/review/change/{id}/{word}", self._require_sign_in(self._undo_or_redo), methods=["POST"]),
            Route("/review/question/{id}", self._require_sign_in(self._show_question), methods=["GET"]),
            Route("/review/question/{id}", self._require_sign_in(self._answer_question), methods=["POST"]),
            Route("/review/question/{id}/dismiss", self._require_sign_in(self._dismiss_question), methods=["POST"]),
            Route("/review/{name}", _static_file),
        ]

    def _require_sign_in(self, answer: PageEndpoint) -> PageEndpoint:
        async def answer_signed_in(request: Request) -> Response:
            if not hmac.compare_digest(request.cookies.get(_cookie_name(request), "").encode(), self._cookie.encode()):
                return _html_response(markup.render_sign_in(token_is_printed=self._token_is_printed), 401)
            if request.method == "POST" and not _is_same_origin(request):
                return _plain_response("Changes come from this page only.\n", 403)
            return await answer(request)

        return answer_signed_in

    async def _sign_in(self, request: Request) -> Response:
        sent = (await _read_form(request)).get("token", "")
        if not hmac.compare_digest(sent.strip().encode("utf-8", "replace"), self._token):
            page = markup.render_sign_in(wrong=True, token_is_printed=self._token_is_printed)
            return _html_response(page, 401)
        response = RedirectResponse("/", 303, _HEADERS)
        response.set_cookie(_cookie_name(request), self._cookie, httponly=True, samesite="strict", path="/")
        return response

    async def _show_overview(self, request: Request) -> Response:
        before = request.query_params.get("before", "")
        number = int(before) if before.isdecimal() and len(before) < _SEQ_DIGITS_LIMIT else 0
        mark = await self._state_mark()
        views, more = await run_in_threadpool(self._change_views, number)
        shown = (*self._questions.list_open(), *self._questions.list_ended())
        cards = [self._card_of(one) for one in shown]
        body = await run_in_threadpool(markup.render_overview, cards, views, more=more)
        return await self._show_page(request, "Surehold", body, mark)

    async def _show_question(self, request: Request) -> Response:
        question = self._questions.find_question(request.path_params["id"])
        if question is None:
            return _html_response(
                markup.render_document("Surehold", "", notice="This question is no longer open."), 404
            )
        mark = await self._state_mark()
        wanted = request.query_params.get("page", "1")
        count = await run_in_threadpool(lambda: question.text.page_count)
        number = min(max(int(wanted), 1), count) if wanted.isdecimal() and len(wanted) < _SEQ_DIGITS_LIMIT else 1
        if request.method == "GET":
            question.opened.add(number)
        body = await run_in_threadpool(markup.render_question_page, self._card_of(question), number)
        return await self._show_page(request, "Surehold: a question", body, mark)

    def _card_of(self, question: PendingApproval) -> markup.QuestionCard:
        age, left = self._questions.waiting_seconds(question)
        return markup.QuestionCard(question=question, age=age, left=left)

    async def _show_change(self, request: Request) -> Response:
        history, mark = self._workspace.history, await self._state_mark()
        try:
            view = await run_in_threadpool(history.show, request.path_params["id"])
        except SureholdError as error:
            return _html_response(markup.render_document("Surehold", "", notice=str(error)), 404)
        try:
            diff = await run_in_threadpool(history.diff, view.id)
            proposed = await run_in_threadpool(history.proposed_diff, view.id)
            body = markup.render_change(view, diff, proposed=proposed)
        except SureholdError:  # the versions were pruned; the ledger keeps the beginning of the diff
            body = markup.render_change(view, "".join(entry.change.diff for entry in view.entries), cut=True)
        return await self._show_page(request, f"Surehold: {view.id}", body, mark)

    async def _show_page(self, request: Request, title: str, body: str, mark: str) -> Response:
        """Answer with a page; its mark is older than its body, so that the page asks again for what the body misses."""
        notice = self._notices.get(request.query_params.get("notice", ""), "")
        waiting = len(self._questions.list_open())
        title = f"({waiting}) {title}" if waiting else title
        return _html_response(markup.render_document(title, body, notice=notice, state=mark))

    async def _undo_or_redo(self, request: Request) -> Response:
        change_id, word = request.path_params["id"], request.path_params["word"]
        history = self._workspace.history
        if word not in ("undo", "redo"):
            return _plain_response("There is no such page.\n", 404)
        act = history.undo if word == "undo" else history.redo
        try:
            receipt = await run_in_threadpool(act, change_id, author=CallAuthor(agent=_REVIEWER_NAME))
        except SureholdError as error:
            return self._redirect_to(f"/review/change/{change_id}", f"Nothing was written. {error}")
        made = receipt.change_id or change_id  # nothing had to be written when the file already is as it was
        return self._redirect_to(f"/review/change/{made}", "Undone." if word == "undo" else "Made again.")

    async def _answer_question(self, request: Request) -> Response:
        form = await _read_form(request)
        question_id, decision = request.path_params["id"], form.get("decision", "")
        question = next((one for one in self._questions.list_open() if one.id == question_id), None)
        if decision not in ("allow", "always", "refuse"):
            return self._redirect_to("/", "The form contained no decision; nothing was decided.")
        if question and decision != "refuse" and (unseen := _unseen_without_consent(question, decision, form)):
            return self._redirect_to("/", f"Nothing was decided: {unseen_lines(unseen)}.")
        contents = _edited_contents(question, form.get("content")) if question else {}
        note = form.get("note", "")[:_MAX_NOTE_CHARS]
        approval = approval_for(decision, where="page", who=_answerer_name(request), note=note, contents=contents)
        try:
            self._questions.answer_question(question_id, approval)
        except SureholdError as error:
            return self._redirect_to("/", str(error))
        return self._redirect_to("/", "Allowed." if approval.allowed else "Refused.")

    async def _dismiss_question(self, request: Request) -> Response:
        self._questions.dismiss_question(request.path_params["id"])
        return self._redirect_to("/", "Dismissed.")

    async def _show_state(self, _: Request) -> Response:
        return _plain_response(await self._state_mark())

    async def _state_mark(self) -> str:
        newest = await run_in_threadpool(self._workspace.history.log, LedgerQuery(limit=1))
        ended = [f"-{one.id}" for one in self._questions.list_ended()]
        return " ".join([str(newest[0].seq if newest else 0), *(one.id for one in self._questions.list_open()), *ended])

    def _change_views(self, before: int) -> tuple[list[ChangeView], str]:
        """Return some changes, newest first, and where the rest begins."""
        history = self._workspace.history
        entries = history.log(LedgerQuery(limit=_ENTRIES_PER_PAGE, before_seq=before))
        ids = list(dict.fromkeys(entry.change_id for entry in entries))
        views = [history.show(one) for one in ids]
        # From the first entry of the last change on: a change of many files is one row.
        more = str(views[-1].entries[0].seq) if len(entries) == _ENTRIES_PER_PAGE else ""
        return views, more

    def _redirect_to(self, path: str, notice: str) -> Response:
        name = secrets.token_urlsafe(9)
        self._notices[name] = notice
        while len(self._notices) > _MAX_NOTICES:
            self._notices.popitem(last=False)
        return RedirectResponse(f"{path}?notice={name}", 303, _HEADERS)


def _cookie_name(request: Request) -> str:
    """Return a name for this port only: browsers send cookies to every port of a host, and keep one of each name."""
    return f"{_COOKIE_PREFIX}-{request.url.port or request.url.scheme}"


def _is_same_origin(request: Request) -> bool:
    _, found, host = request.headers.get("origin", "").partition("://")
    return bool(found) and host.casefold() == request.headers.get("host", "").casefold()


def _edited_contents(question: PendingApproval, sent: str | None) -> dict[str, str]:
    """Return the person's own content, when the form offered one and it is another one now."""
    offered = markup.offered_content(question)
    wanted = unescape_editable(sent.replace("\r\n", "\n")) if sent is not None else None
    if offered is None or wanted is None or wanted == offered:
        return {}
    return {question.request.files[0].path: wanted}


def _unseen_without_consent(question: PendingApproval, decision: str, form: dict[str, str]) -> int:
    """Return how many lines a yes would allow that were neither shown nor named in its button."""
    named, unseen = form.get("unseen", ""), question.unseen
    may_consent = decision == "allow" and not question.request.is_protected
    consented = int(named) if may_consent and named.isdecimal() and len(named) < _SEQ_DIGITS_LIMIT else 0
    return unseen if unseen > consented else 0


def _answerer_name(request: Request) -> str:
    host = request.client.host if request.client else ""
    return person_name() if host in LOOPBACK_ADDRESSES else f"the holder of the token at {host}"


async def _read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form, each once; nothing of it is a file."""
    from urllib.parse import parse_qsl

    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_FORM_BYTES:
            return {}
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


async def _static_file(request: Request) -> Response:
    kinds = {"page.css": "text/css", "page.js": "text/javascript"}
    name = request.path_params["name"]
    if name not in kinds:
        return _plain_response("There is no such page.\n", 404)
    text = files(__package__ or "").joinpath(name).read_text(encoding="utf-8")
    return Response(text, media_type=kinds[name], headers=_HEADERS)


def _html_response(text: str, status: int = 200) -> Response:
    return HTMLResponse(text.encode("utf-8", "replace"), status, _HEADERS)


def _plain_response(text: str, status: int = 200) -> Response:
    return PlainTextResponse(text, status, _HEADERS)
