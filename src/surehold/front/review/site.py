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
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from surehold.errors import InvalidArgument, StateUnavailable, SureholdError
from surehold.front.review import history_markup, markup
from surehold.front.review.history_pages import REVIEWER_NAME, HistoryPages
from surehold.front.review.page_http import (
    HEADERS,
    SEQ_DIGITS_LIMIT,
    html_response,
    is_same_origin,
    plain_response,
    read_form,
    read_number,
    send_parts,
    static_file,
)
from surehold.front.review.sign_in import SignIn
from surehold.front.shared.approval_queue import ApprovalQueue
from surehold.front.shared.change_text import unseen_lines
from surehold.front.shared.pending_approval import PendingApproval, approval_for
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
PageEndpoint = Callable[[Request], Awaitable[Response]]


class ReviewPage:
    """Shows a workspace's changes and open questions to the person who has the token."""

    def __init__(self, workspace: Workspace, questions: ApprovalQueue | None, sign_in: SignIn) -> None:
        """`questions`: those of the server that it is the page of; None if no agent can ask here."""
        self._workspace = workspace
        self._questions = questions or ApprovalQueue(
            board=workspace.questions, note_unanswered=workspace.record_unanswered, outlives_us=True
        )
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
            Route("/review/{name}", static_file),
        ]

    def _require_sign_in(self, answer: PageEndpoint) -> PageEndpoint:
        async def answer_signed_in(request: Request) -> Response:
            if not self._sign_in.is_signed_in(request):
                return self._ask_to_sign_in()
            if request.method == "POST" and not is_same_origin(request):
                return plain_response("Changes come from this page only.\n", 403)
            try:
                return await answer(request)
            except StateUnavailable as error:
                return html_response(markup.render_document("Surehold", "", notice=str(error)), 503)

        return answer_signed_in

    def _ask_to_sign_in(self, *, wrong: bool = False) -> Response:
        page = markup.render_sign_in(self._project, wrong=wrong, is_chosen=self._sign_in.is_chosen)
        return html_response(page, 401)

    async def _take_sign_in(self, request: Request) -> Response:
        if not self._sign_in.accepts((await read_form(request)).get("token", "")):
            return self._ask_to_sign_in(wrong=True)
        response = RedirectResponse("/", 303, HEADERS)
        self._sign_in.remember(request, response)
        return response

    async def _make_code(self, request: Request) -> Response:
        """Give a program of the same person a code that signs a browser in."""
        if not self._sign_in.opens_door((await read_form(request)).get("door", "")):
            return plain_response("This is not the key of the page.\n", 403)
        return plain_response(self._sign_in.make_code())

    async def _count_questions(self, request: Request) -> Response:
        """Tell a program of the same person how many questions are open that are not in the history."""
        if not self._sign_in.opens_door((await read_form(request)).get("door", "")):
            return plain_response("This is not the key of the page.\n", 403)
        return plain_response(str(self._questions.count_unposted()))

    async def _show_overview(self, request: Request) -> Response:
        mark = await self._state_mark()
        views, more = await run_in_threadpool(self._history.list_changes, read_number(request, "before"))
        conversations = await run_in_threadpool(self._history.newest_conversations)
        cards = [self._card_of(one) for one in await run_in_threadpool(self._questions.list_shown)]
        changes = history_markup.render_changes(views)
        body = await run_in_threadpool(
            markup.render_overview, cards, conversations, changes, more=more, is_asked=self._is_asked
        )
        return await self._show_page(request, self._project, body, mark)

    async def _show_conversations(self, request: Request) -> Response:
        make = partial(self._history.all_conversations, read_number(request, "skip"))
        return await self._show_made(request, f"{self._project}: conversations", make)

    async def _show_conversation(self, request: Request) -> Response:
        words = request.query_params
        make = partial(
            self._history.conversation,
            request.path_params["id"],
            split=words.get("view") == "split",
            file=words.get("file", ""),
            first_row=read_number(request, "first"),
            first_file=read_number(request, "at"),
            newer=read_number(request, "skip"),
        )
        return await self._show_parts(request, f"{self._project}: a conversation", make)

    async def _show_changes(self, request: Request) -> Response:
        words = request.query_params
        wanted = history_markup.ChangeFilter(
            agent=words.get("agent", ""),
            path=words.get("path", ""),
            text=words.get("text", ""),
            since=words.get("since", ""),
            refused=bool(words.get("refused")),
            before=read_number(request, "before"),
        )
        form = history_markup.render_filter(wanted)
        make = partial(self._history.changes, wanted)
        return await self._show_made(request, f"{self._project}: changes", make, otherwise=form)

    async def _show_file(self, request: Request) -> Response:
        make = partial(self._history.file, request.query_params.get("path", ""), read_number(request, "line"))
        name = request.query_params.get("path", "") or "a file"
        return await self._show_made(request, f"{self._project}: {name}", make)

    async def _show_trash(self, request: Request) -> Response:
        make = partial(self._history.trash, request.query_params.get("after", ""))
        return await self._show_made(request, f"{self._project}: trash", make)

    async def _show_made(
        self, request: Request, title: str, make: Callable[[], str], *, otherwise: str = ""
    ) -> Response:
        """Show what is made in a thread; what it refuses is said on the page."""
        mark = await self._state_mark()
        try:
            body = await run_in_threadpool(make)
        except SureholdError as error:
            return html_response(
                markup.render_document(title, otherwise, notice=str(error), project=self._project), 404
            )
        return await self._show_page(request, title, body, mark)

    async def _undo_many(self, request: Request) -> Response:
        form = await read_form(request)
        back = history_markup.conversation_path(form["session"]) if form.get("session") else "/"
        if not form.get("session"):
            return self._redirect_to("/", "The form named nothing to undo.")
        try:
            made = await run_in_threadpool(self._history.undo, form)
        except SureholdError as error:
            if offer := self._history.refused_undo(form, error):
                return html_response(markup.render_document(self._project, offer, project=self._project), 409)
            return self._redirect_to(back, f"Nothing was written. {error}")
        return self._redirect_to(f"/review/change/{made}" if made else back, "Undone.")

    async def _undo_part(self, request: Request) -> Response:
        form = await read_form(request)
        back = f"/review/change/{quote(form['change'], safe='')}" if form.get("change") else "/"
        back = history_markup.conversation_path(form["session"]) if form.get("session") else back
        try:
            made = await run_in_threadpool(self._history.undo_part, form)
        except SureholdError as error:
            return self._redirect_to(back, f"Nothing was written. {error}")
        return self._redirect_to(f"/review/change/{made}" if made else back, "This part was undone.")

    async def _restore(self, request: Request) -> Response:
        item = (await read_form(request)).get("item", "")
        try:
            made = await run_in_threadpool(self._history.restore, item)
        except SureholdError as error:
            return self._redirect_to("/review/trash", f"Nothing was written. {error}")
        return self._redirect_to(f"/review/change/{made}", "Restored.")

    async def _send_events(self, request: Request) -> Response:
        return StreamingResponse(self._events(request), media_type="text/event-stream", headers=HEADERS)

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
        question = await run_in_threadpool(self._questions.find_question, request.path_params["id"])
        if question is None:
            return html_response(markup.render_document("Surehold", "", notice="This question is no longer open."), 404)
        mark = await self._state_mark()
        count = await run_in_threadpool(lambda: question.text.page_count)
        number = min(max(read_number(request, "page"), 1), count)
        if request.method == "GET":
            await run_in_threadpool(self._questions.note_page, question, number)
        body = await run_in_threadpool(markup.render_question_page, self._card_of(question), number)
        return await self._show_page(request, f"{self._project}: a question", body, mark)

    def _card_of(self, question: PendingApproval) -> markup.QuestionCard:
        age, left = self._questions.waiting_seconds(question)
        return markup.QuestionCard(question=question, age=age, left=left)

    async def _show_change(self, request: Request) -> Response:
        words = request.query_params
        make = partial(
            self._history.change,
            request.path_params["id"],
            split=words.get("view") == "split",
            file=words.get("file", ""),
            first_row=read_number(request, "first"),
            first_file=read_number(request, "at"),
        )
        return await self._show_parts(request, f"{self._project}: {request.path_params['id']}", make)

    async def _show_page(self, request: Request, title: str, body: str, mark: str) -> Response:
        """Answer with a page; its mark is older than its body, so that the page asks again for what the body misses."""
        return html_response(f"{self._begin_page(request, title, mark)}{body}{markup.DOCUMENT_END}")

    def _begin_page(self, request: Request, title: str, mark: str) -> str:
        notice = self._notices.get(request.query_params.get("notice", ""), "")
        waiting = sum(not one.startswith("-") for one in mark.split(" ")[1:])
        title = f"({waiting}) {title} · Surehold" if waiting else f"{title} · Surehold"
        return markup.render_document_begin(title, notice=notice, state=mark, project=self._project)

    async def _show_parts(self, request: Request, title: str, make: Callable[[], Iterator[str]]) -> Response:
        """Show a page part by part, as each is made in a thread; what the first one refuses is said on the page."""
        mark, parts = await self._state_mark(), make()
        try:
            first = await run_in_threadpool(next, parts, "")
        except SureholdError as error:
            return html_response(markup.render_document(title, "", notice=str(error), project=self._project), 404)
        begin = self._begin_page(request, title, mark)
        return StreamingResponse(send_parts(begin + first, parts), media_type="text/html", headers=HEADERS)

    async def _undo_or_redo(self, request: Request) -> Response:
        change_id, word = request.path_params["id"], request.path_params["word"]
        history = self._workspace.history
        if word not in ("undo", "redo"):
            return plain_response("There is no such page.\n", 404)
        act = history.undo if word == "undo" else history.redo
        try:
            receipt = await run_in_threadpool(act, change_id, author=CallAuthor(agent=REVIEWER_NAME))
        except SureholdError as error:
            return self._redirect_to(f"/review/change/{change_id}", f"Nothing was written. {error}")
        made = receipt.change_id or change_id  # nothing had to be written when the file already is as it was
        return self._redirect_to(f"/review/change/{made}", "Undone." if word == "undo" else "Made again.")

    async def _answer_question(self, request: Request) -> Response:
        form = await read_form(request)
        question_id, decision = request.path_params["id"], form.get("decision", "")
        question = await run_in_threadpool(self._questions.find_question, question_id)
        if decision not in ("allow", "always", "refuse"):
            return self._redirect_to("/", "The form contained no decision; nothing was decided.")
        if question and decision != "refuse" and (unseen := _unseen_without_consent(question, decision, form)):
            return self._redirect_to("/", f"Nothing was decided: {unseen_lines(unseen)}.")
        try:
            contents, left_out = _wanted_contents(question, form) if question and decision != "refuse" else ({}, ())
        except InvalidArgument as error:
            return self._redirect_to("/", f"Nothing was decided. {error}")
        note = form.get("note", "")[:_MAX_NOTE_CHARS]
        approval = approval_for(
            decision, where="page", who=_answerer_name(request), note=note, contents=contents, left_out=left_out
        )
        try:
            await run_in_threadpool(self._questions.answer_question, question_id, approval)
        except SureholdError as error:
            return self._redirect_to("/", str(error))
        return self._redirect_to("/", "Allowed." if approval.allowed else "Refused.")

    async def _dismiss_question(self, request: Request) -> Response:
        await run_in_threadpool(self._questions.dismiss_question, request.path_params["id"])
        return self._redirect_to("/", "Dismissed.")

    async def _show_state(self, _: Request) -> Response:
        return plain_response(await self._state_mark())

    async def _state_mark(self) -> str:
        return await run_in_threadpool(self._read_mark)

    def _read_mark(self) -> str:
        newest = self._workspace.history.log(LedgerQuery(limit=1))
        return f"{newest[0].seq if newest else 0} {self._questions.shown_mark()}".strip()

    def _redirect_to(self, path: str, notice: str) -> Response:
        name = secrets.token_urlsafe(9)
        self._notices[name] = notice
        while len(self._notices) > _MAX_NOTICES:
            self._notices.popitem(last=False)
        return RedirectResponse(f"{path}?notice={name}", 303, HEADERS)


def _edited_contents(question: PendingApproval, sent: str | None) -> dict[str, str]:
    """Return the person's own content, when the form offered one and it is another one now."""
    offered = markup.offered_content(question)
    wanted = unescape_editable(sent.replace("\r\n", "\n")) if sent is not None else None
    if offered is None or wanted is None or wanted == offered:
        return {}
    return {question.request.files[0].path: wanted}


def _wanted_contents(question: PendingApproval, form: dict[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return what the person wants instead: their own text, or the change without some parts; and the files they left out."""
    edited = _edited_contents(question, form.get("content"))
    chosen, left_out = markup.chosen_parts(question, form)
    if edited and (chosen or left_out):
        raise InvalidArgument("Parts were left out and the content was changed.", action="Do one of both.")
    return edited or chosen, left_out


def _unseen_without_consent(question: PendingApproval, decision: str, form: dict[str, str]) -> int:
    """Return how many lines a yes would allow that were neither shown nor named in its button."""
    named, unseen = form.get("unseen", ""), question.unseen
    may_consent = decision == "allow" and not question.request.is_protected
    consented = int(named) if may_consent and named.isdecimal() and len(named) < SEQ_DIGITS_LIMIT else 0
    return unseen if unseen > consented else 0


def _answerer_name(request: Request) -> str:
    host = request.client.host if request.client else ""
    return person_name() if host in LOOPBACK_ADDRESSES else f"the holder of the token at {host}"
