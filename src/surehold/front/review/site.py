"""The routes of the review page.

1. Everything but signing in requires the cookie of `sign_in`, which pages of other sites cannot use.
2. Every change is a POST from our own pages: its Origin must equal the Host that it was sent to, which the HTTP
   checks have already verified. Origins that may call the server are not the page.
3. Nothing is loaded from other sites, nothing may frame the page, and text from files and agents is never markup.
"""

import asyncio
import os
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from importlib.resources import files
from typing import Final
from urllib.parse import parse_qsl, quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from surehold.errors import InvalidArgument, SureholdError
from surehold.front.review import history_markup, markup
from surehold.front.review.history_pages import REVIEWER_NAME, HistoryPages
from surehold.front.review.sign_in import SignIn
from surehold.front.shared.approval_queue import ApprovalQueue, PendingApproval, approval_for
from surehold.front.shared.change_text import unseen_lines
from surehold.front.shared.person import person_name
from surehold.stores.base import LedgerQuery
from surehold.text.escape import unescape_editable
from surehold.workspace.proposal import CallAuthor
from surehold.workspace.workspace import Workspace

LOOPBACK_ADDRESSES = frozenset({"127.0.0.1", "::1"})
_LOOK_SECONDS = 0.5
_ALIVE_SECONDS = 15.0
_MAX_NOTICES = 50
_MAX_NOTE_CHARS = 500
_SEQ_DIGITS_LIMIT = 19
"""Shorter numbers are such that the store can count to."""
_MAX_FORM_BYTES = 4 << 20
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "same-origin",  # with `no-referrer` browsers send `Origin: null`, also to ourselves
    "X-Content-Type-Options": "nosniff",
}
PageEndpoint = Callable[[Request], Awaitable[Response]]


class ReviewPage:
    """Shows a workspace's changes and open questions to the person who has the token."""

    def __init__(self, workspace: Workspace, questions: ApprovalQueue | None, sign_in: SignIn) -> None:
        """`questions`: those of the server that it is the page of; None if no agent can ask here."""
        self._workspace = workspace
        self._questions = questions or ApprovalQueue()
        self._is_asked = questions is not None
        self._sign_in = sign_in
        self._notices = OrderedDict[str, str]()
        self._history = HistoryPages(workspace)
        self._project = os.path.basename(workspace.roots[0]) or workspace.roots[0]  # noqa: PTH119 - names need not be UTF-8

    def make_routes(self) -> list[Route]:
        return [
            Route("/", self._require_sign_in(self._show_overview)),
            Route("/review/state", self._require_sign_in(self._show_state)),
            Route("/review/events", self._require_sign_in(self._send_events)),
            Route("/review/sessions", self._require_sign_in(self._show_conversations)),
            Route("/review/session/{id:path}", self._require_sign_in(self._show_conversation)),
            Route("/review/changes", self._require_sign_in(self._show_changes)),
            Route("/review/file", self._require_sign_in(self._show_file)),
            Route("/review/trash", self._require_sign_in(self._show_trash)),
            Route("/review/undo", self._require_sign_in(self._undo_many), methods=["POST"]),
            Route("/review/part", self._require_sign_in(self._undo_part), methods=["POST"]),
            Route("/review/restore", self._require_sign_in(self._restore), methods=["POST"]),
            Route("/review/sign-in", self._take_sign_in, methods=["POST"]),
            Route("/review/code", self._make_code, methods=["POST"]),
            Route("/review/count", self._count_questions, methods=["POST"]),
            Route("/review/change/{id}", self._require_sign_in(self._show_change)),
            Route("/review/change/{id}/{word}", self._require_sign_in(self._undo_or_redo), methods=["POST"]),
            Route("/review/question/{id}", self._require_sign_in(self._show_question), methods=["GET"]),
            Route("/review/question/{id}", self._require_sign_in(self._answer_question), methods=["POST"]),
            Route("/review/question/{id}/dismiss", self._require_sign_in(self._dismiss_question), methods=["POST"]),
            Route("/review/{name}", _static_file),
        ]

    def _require_sign_in(self, answer: PageEndpoint) -> PageEndpoint:
        async def answer_signed_in(request: Request) -> Response:
            if not self._sign_in.is_signed_in(request):
                return self._ask_to_sign_in()
            if request.method == "POST" and not _is_same_origin(request):
                return _plain_response("Changes come from this page only.\n", 403)
            return await answer(request)

        return answer_signed_in

    def _ask_to_sign_in(self, *, wrong: bool = False) -> Response:
        page = markup.render_sign_in(self._project, wrong=wrong, is_chosen=self._sign_in.is_chosen)
        return _html_response(page, 401)

    async def _take_sign_in(self, request: Request) -> Response:
        if not self._sign_in.accepts((await _read_form(request)).get("token", "")):
            return self._ask_to_sign_in(wrong=True)
        response = RedirectResponse("/", 303, _HEADERS)
        self._sign_in.remember(request, response)
        return response

    async def _make_code(self, request: Request) -> Response:
        """Give a program of the same person a code that signs a browser in."""
        if not self._sign_in.opens_door((await _read_form(request)).get("door", "")):
            return _plain_response("This is not the key of the page.\n", 403)
        return _plain_response(self._sign_in.make_code())

    async def _count_questions(self, request: Request) -> Response:
        """Tell a program of the same person how many questions are open."""
        if not self._sign_in.opens_door((await _read_form(request)).get("door", "")):
            return _plain_response("This is not the key of the page.\n", 403)
        return _plain_response(str(len(self._questions.list_open())))

    async def _show_overview(self, request: Request) -> Response:
        mark = await self._state_mark()
        views, more = await run_in_threadpool(self._history.list_changes, _number(request, "before"))
        conversations = await run_in_threadpool(self._history.newest_conversations)
        shown = (*self._questions.list_open(), *self._questions.list_ended())
        cards = [self._card_of(one) for one in shown]
        changes = history_markup.render_changes(views)
        body = await run_in_threadpool(
            markup.render_overview, cards, conversations, changes, more=more, is_asked=self._is_asked
        )
        return await self._show_page(request, self._project, body, mark)

    async def _show_conversations(self, request: Request) -> Response:
        return await self._show_made(request, f"{self._project}: conversations", self._history.all_conversations)

    async def _show_conversation(self, request: Request) -> Response:
        words = request.query_params
        make = partial(
            self._history.conversation,
            request.path_params["id"],
            split=words.get("view") == "split",
            file=words.get("file", ""),
            first_row=_number(request, "first"),
        )
        return await self._show_made(request, f"{self._project}: a conversation", make)

    async def _show_changes(self, request: Request) -> Response:
        words = request.query_params
        wanted = history_markup.ChangeFilter(
            agent=words.get("agent", ""),
            path=words.get("path", ""),
            text=words.get("text", ""),
            since=words.get("since", ""),
            refused=bool(words.get("refused")),
            before=_number(request, "before"),
        )
        form = history_markup.render_filter(wanted)
        make = partial(self._history.changes, wanted)
        return await self._show_made(request, f"{self._project}: changes", make, otherwise=form)

    async def _show_file(self, request: Request) -> Response:
        make = partial(self._history.file, request.query_params.get("path", ""))
        return await self._show_made(request, f"{self._project}: a file", make)

    async def _show_trash(self, request: Request) -> Response:
        return await self._show_made(request, f"{self._project}: trash", self._history.trash)

    async def _show_made(
        self, request: Request, title: str, make: Callable[[], str], *, otherwise: str = ""
    ) -> Response:
        """Show what is made in a thread; what it refuses is said on the page."""
        mark = await self._state_mark()
        try:
            body = await run_in_threadpool(make)
        except SureholdError as error:
            return _html_response(
                markup.render_document(title, otherwise, notice=str(error), project=self._project), 404
            )
        return await self._show_page(request, title, body, mark)

    async def _undo_many(self, request: Request) -> Response:
        form = await _read_form(request)
        back = history_markup.conversation_path(form["session"]) if form.get("session") else "/"
        if not form.get("session"):
            return self._redirect_to("/", "The form named nothing to undo.")
        try:
            made = await run_in_threadpool(self._history.undo, form)
        except SureholdError as error:
            if offer := self._history.refused_undo(form, error):
                return _html_response(markup.render_document(self._project, offer, project=self._project), 409)
            return self._redirect_to(back, f"Nothing was written. {error}")
        return self._redirect_to(f"/review/change/{made}" if made else back, "Undone.")

    async def _undo_part(self, request: Request) -> Response:
        form = await _read_form(request)
        back = f"/review/change/{quote(form['change'], safe='')}" if form.get("change") else "/"
        back = history_markup.conversation_path(form["session"]) if form.get("session") else back
        try:
            made = await run_in_threadpool(self._history.undo_part, form)
        except SureholdError as error:
            return self._redirect_to(back, f"Nothing was written. {error}")
        return self._redirect_to(f"/review/change/{made}" if made else back, "This part was undone.")

    async def _restore(self, request: Request) -> Response:
        item = (await _read_form(request)).get("item", "")
        try:
            made = await run_in_threadpool(self._history.restore, item)
        except SureholdError as error:
            return self._redirect_to("/review/trash", f"Nothing was written. {error}")
        return self._redirect_to(f"/review/change/{made}", "Restored.")

    async def _send_events(self, request: Request) -> Response:
        return StreamingResponse(self._events(request), media_type="text/event-stream", headers=_HEADERS)

    async def _events(self, request: Request) -> AsyncIterator[str]:
        """Yield the state whenever it is another one, until the page is closed or the server ends."""
        last, silent = "", 0.0
        while not await request.is_disconnected() and not self._questions.is_closed:
            state = await self._state_mark()
            if state != last or silent >= _ALIVE_SECONDS:  # said again, so that the page knows of a dead connection
                last, silent = state, 0.0
                yield f"data: {state}\n\n"
            await asyncio.sleep(_LOOK_SECONDS)
            silent += _LOOK_SECONDS

    async def _show_question(self, request: Request) -> Response:
        question = self._questions.find_question(request.path_params["id"])
        if question is None:
            return _html_response(
                markup.render_document("Surehold", "", notice="This question is no longer open."), 404
            )
        mark = await self._state_mark()
        count = await run_in_threadpool(lambda: question.text.page_count)
        number = min(max(_number(request, "page"), 1), count)
        if request.method == "GET":
            question.opened.add(number)
        body = await run_in_threadpool(markup.render_question_page, self._card_of(question), number)
        return await self._show_page(request, f"{self._project}: a question", body, mark)

    def _card_of(self, question: PendingApproval) -> markup.QuestionCard:
        age, left = self._questions.waiting_seconds(question)
        return markup.QuestionCard(question=question, age=age, left=left)

    async def _show_change(self, request: Request) -> Response:
        words, mark = request.query_params, await self._state_mark()
        make = partial(
            self._history.change,
            request.path_params["id"],
            split=words.get("view") == "split",
            file=words.get("file", ""),
            first_row=_number(request, "first"),
            first_file=_number(request, "at"),
        )
        try:
            change_id, body = await run_in_threadpool(make)
        except SureholdError as error:
            return _html_response(markup.render_document("Surehold", "", notice=str(error), project=self._project), 404)
        return await self._show_page(request, f"{self._project}: {change_id}", body, mark)

    async def _show_page(self, request: Request, title: str, body: str, mark: str) -> Response:
        """Answer with a page; its mark is older than its body, so that the page asks again for what the body misses."""
        notice = self._notices.get(request.query_params.get("notice", ""), "")
        waiting = len(self._questions.list_open())
        title = f"({waiting}) {title} · Surehold" if waiting else f"{title} · Surehold"
        return _html_response(markup.render_document(title, body, notice=notice, state=mark, project=self._project))

    async def _undo_or_redo(self, request: Request) -> Response:
        change_id, word = request.path_params["id"], request.path_params["word"]
        history = self._workspace.history
        if word not in ("undo", "redo"):
            return _plain_response("There is no such page.\n", 404)
        act = history.undo if word == "undo" else history.redo
        try:
            receipt = await run_in_threadpool(act, change_id, author=CallAuthor(agent=REVIEWER_NAME))
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
        try:
            contents = _wanted_contents(question, form) if question and decision != "refuse" else {}
        except InvalidArgument as error:
            return self._redirect_to("/", f"Nothing was decided. {error}")
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

    def _redirect_to(self, path: str, notice: str) -> Response:
        name = secrets.token_urlsafe(9)
        self._notices[name] = notice
        while len(self._notices) > _MAX_NOTICES:
            self._notices.popitem(last=False)
        return RedirectResponse(f"{path}?notice={name}", 303, _HEADERS)


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


def _wanted_contents(question: PendingApproval, form: dict[str, str]) -> dict[str, str]:
    """Return the contents that the person wants instead: what they wrote, or the change without the parts they left out."""
    edited = _edited_contents(question, form.get("content"))
    chosen = markup.chosen_contents(question, form)
    if edited and chosen:
        raise InvalidArgument("Parts were left out and the content was changed.", action="Do one of both.")
    return edited or chosen


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
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_FORM_BYTES:
            return {}
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def _number(request: Request, name: str) -> int:
    """Return a number of the address; 0 for what is none, or more than the store can count to."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < _SEQ_DIGITS_LIMIT else 0


async def _static_file(request: Request) -> Response:
    kinds = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
    name = request.path_params["name"]
    if name not in kinds:
        return _plain_response("There is no such page.\n", 404)
    text = files(__package__ or "").joinpath(name).read_text(encoding="utf-8")
    return Response(text, media_type=kinds[name], headers=_HEADERS)


def _html_response(text: str, status: int = 200) -> Response:
    return HTMLResponse(text.encode("utf-8", "replace"), status, _HEADERS)


def _plain_response(text: str, status: int = 200) -> Response:
    return PlainTextResponse(text, status, _HEADERS)
