"""The routes of the page.

1. Whoever shows the token gets a cookie that pages of other sites cannot use; everything but signing in needs it.
2. Every change is a POST from our own pages: its Origin must be the very Host that it came to, which the door in front
   has checked. Pages that may call the server are not the page.
3. Nothing is loaded from elsewhere, nothing may frame the page, and text of files and agents is never markup.
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
from surehold.front.review.questions import Question, Questions
from surehold.stores.base import Query
from surehold.workspace.past import ChangeView
from surehold.workspace.permission import Approval
from surehold.workspace.workspace import Workspace

_COOKIE = "surehold-review"
_PERSON = "review page"
_PAGE = 100
_NOTICES = 50
_DIGITS = 19
"""Shorter numbers are such that the store can count to."""
_LARGEST_FORM = 4 << 20
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "same-origin",  # with `no-referrer` browsers send `Origin: null`, also to ourselves
    "X-Content-Type-Options": "nosniff",
}
Answer = Callable[[Request], Awaitable[Response]]


class ReviewPage:
    """Shows a workspace's changes and open questions to the person who has the token."""

    def __init__(self, workspace: Workspace, questions: Questions, *, token: str) -> None:
        self._workspace = workspace
        self._questions = questions
        self._token = token.encode()
        self._cookie = hmac.new(self._token, b"surehold review page", hashlib.sha256).hexdigest()
        self._notices = OrderedDict[str, str]()

    def routes(self) -> list[Route]:
        """Return the routes of the page."""
        return [
            Route("/", self._guarded(self._overview)),
            Route("/review/state", self._guarded(self._state)),
            Route("/review/sign-in", self._sign_in, methods=["POST"]),
            Route("/review/change/{id}", self._guarded(self._change)),
            Route("/review/change/{id}/{word}", self._guarded(self._take_back), methods=["POST"]),
            Route("/review/question/{id}", self._guarded(self._answer), methods=["POST"]),
            Route("/review/{name}", _static),
        ]

    def _guarded(self, answer: Answer) -> Answer:
        async def guarded(request: Request) -> Response:
            if not hmac.compare_digest(request.cookies.get(_cookie_name(request), "").encode(), self._cookie.encode()):
                return _html(markup.sign_in(), 401)
            if request.method == "POST" and not _is_from_here(request):
                return _plain("Changes come from this page only.\n", 403)
            return await answer(request)

        return guarded

    async def _sign_in(self, request: Request) -> Response:
        sent = (await _form(request)).get("token", "")
        if not hmac.compare_digest(sent.strip().encode("utf-8", "replace"), self._token):
            return _html(markup.sign_in(wrong=True), 401)
        response = RedirectResponse("/", 303, _HEADERS)
        response.set_cookie(_cookie_name(request), self._cookie, httponly=True, samesite="strict", path="/")
        return response

    async def _overview(self, request: Request) -> Response:
        before = request.query_params.get("before", "")
        number = int(before) if before.isdecimal() and len(before) < _DIGITS else 0
        views, more = await run_in_threadpool(self._views, number)
        questions = self._questions.open()
        title = f"({len(questions)}) Surehold" if questions else "Surehold"
        body = markup.overview(questions, views, more=more)
        return _html(markup.document(title, body, notice=self._notice(request), state=await self._mark()))

    async def _change(self, request: Request) -> Response:
        history = self._workspace.history
        try:
            view = await run_in_threadpool(history.show, request.path_params["id"])
        except SureholdError as error:
            return _html(markup.document("Surehold", "", notice=str(error)), 404)
        try:
            body = markup.change(view, await run_in_threadpool(history.diff, view.id))
        except SureholdError:  # the versions were given up; what the ledger keeps of the difference is left
            body = markup.change(view, "".join(entry.change.diff for entry in view.entries), cut=True)
        return _html(
            markup.document(f"Surehold: {view.id}", body, notice=self._notice(request), state=await self._mark())
        )

    async def _take_back(self, request: Request) -> Response:
        change_id, word = request.path_params["id"], request.path_params["word"]
        history = self._workspace.history
        if word not in ("undo", "redo"):
            return _plain("There is no such page.\n", 404)
        act = history.undo if word == "undo" else history.redo
        try:
            receipt = await run_in_threadpool(act, change_id, agent=_PERSON)
        except SureholdError as error:
            return self._back_to(f"/review/change/{change_id}", f"Nothing was written. {error}")
        made = receipt.change_id or change_id  # nothing had to be written when the file already is as it was
        return self._back_to(f"/review/change/{made}", "Undone." if word == "undo" else "Made again.")

    async def _answer(self, request: Request) -> Response:
        form = await _form(request)
        question_id, decision = request.path_params["id"], form.get("decision", "")
        question = next((one for one in self._questions.open() if one.id == question_id), None)
        if decision not in ("allow", "always", "refuse"):
            return self._back_to("/", "That is no answer; nothing was decided.")
        approval = Approval(
            allowed=decision != "refuse",
            always=decision == "always",
            contents=_contents(question, form.get("content")) if question else {},
            note=form.get("note", "")[:500],
        )
        try:
            self._questions.answer(question_id, approval)
        except SureholdError as error:
            return self._back_to("/", str(error))
        return self._back_to("/", "Allowed." if approval.allowed else "Refused.")

    async def _state(self, _: Request) -> Response:
        return _plain(await self._mark())

    async def _mark(self) -> str:
        """Return a text that differs whenever the page does."""
        newest = await run_in_threadpool(self._workspace.history.log, Query(limit=1))
        return f"{newest[0].seq if newest else 0} {' '.join(one.id for one in self._questions.open())}".strip()

    def _views(self, before: int) -> tuple[list[ChangeView], str]:
        """Return some changes, newest first, and where the rest begins."""
        history = self._workspace.history
        entries = history.log(Query(limit=_PAGE, before_seq=before))
        ids = list(dict.fromkeys(entry.change_id for entry in entries))
        views = [history.show(one) for one in ids]
        more = str(views[-1].entries[0].seq) if len(entries) == _PAGE else ""  # a change of many files stands here once
        return views, more

    def _back_to(self, path: str, notice: str) -> Response:
        name = secrets.token_urlsafe(9)
        self._notices[name] = notice
        while len(self._notices) > _NOTICES:
            self._notices.popitem(last=False)
        return RedirectResponse(f"{path}?notice={name}", 303, _HEADERS)

    def _notice(self, request: Request) -> str:
        return self._notices.get(request.query_params.get("notice", ""), "")


def _cookie_name(request: Request) -> str:
    """Return a name for this port only: browsers send cookies to every port of a host, and keep one of each name."""
    return f"{_COOKIE}-{request.url.port or request.url.scheme}"


def _is_from_here(request: Request) -> bool:
    _, found, host = request.headers.get("origin", "").partition("://")
    return bool(found) and host.casefold() == request.headers.get("host", "").casefold()


def _contents(question: Question, sent: str | None) -> dict[str, str]:
    """Return the person's own content, when the form offered one and it is another one now."""
    offered = markup.offered_content(question)
    wanted = sent.replace("\r\n", "\n") if sent is not None else None
    if offered is None or wanted is None or wanted == offered:
        return {}
    return {question.request.files[0].path: wanted}


async def _form(request: Request) -> dict[str, str]:
    """Return the fields of a form, each once; nothing of it is a file."""
    from urllib.parse import parse_qsl

    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_FORM:
            return {}
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


async def _static(request: Request) -> Response:
    kinds = {"page.css": "text/css", "page.js": "text/javascript"}
    name = request.path_params["name"]
    if name not in kinds:
        return _plain("There is no such page.\n", 404)
    text = files(__package__ or "").joinpath(name).read_text(encoding="utf-8")
    return Response(text, media_type=kinds[name], headers=_HEADERS)


def _html(text: str, status: int = 200) -> Response:
    return HTMLResponse(text.encode("utf-8", "replace"), status, _HEADERS)


def _plain(text: str, status: int = 200) -> Response:
    return PlainTextResponse(text, status, _HEADERS)
