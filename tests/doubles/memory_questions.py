"""Questions in memory: the reference that those of the other stores are compared with."""

import threading
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime
from typing import Any

from surehold.stores.questions import FORGOTTEN_SECONDS, MAX_ENDED_QUESTIONS, NewQuestion, StoredQuestion


class MemoryQuestions:
    """The questions of one workspace, for as long as the process lives."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock, self._lock = clock, threading.RLock()
        self._kept = dict[str, tuple[StoredQuestion, bytes, float]]()
        self._renewed = dict[str, float]()
        self._allowed = dict[str, str]()

    def add(self, question: NewQuestion, *, seconds: float) -> None:
        with self._lock:
            now = self._clock().timestamp()
            old = [one for one, (kept, _, asked) in self._kept.items() if asked + kept.left < now - FORGOTTEN_SECONDS]
            for one in old:
                del self._kept[one]
            facts = {name: getattr(question, name) for name in ("id", "kind", "owner", "facts")}
            kept = StoredQuestion(**facts, age=0, left=seconds, silent=0)
            self._kept[question.id], self._renewed[question.id] = (kept, question.body, now), now

    def list_all(self) -> tuple[StoredQuestion, ...]:
        with self._lock:
            return tuple(found for one in self._kept if (found := self.find(one)))

    def find(self, question_id: str) -> StoredQuestion | None:
        with self._lock:
            if question_id not in self._kept:
                return None
            (kept, _, asked), now = self._kept[question_id], self._clock().timestamp()
            silent = now - self._renewed[question_id]
            return replace(kept, age=now - asked, left=asked + kept.left - now, silent=silent)

    def read_body(self, question_id: str) -> bytes | None:
        return self._kept[question_id][1] if question_id in self._kept else None

    def read_answers(self, question_ids: Collection[str]) -> dict[str, str]:
        return {one: self._kept[one][0].answer for one in question_ids if one in self._kept}

    def renew(self, question_ids: Collection[str]) -> None:
        self._renewed |= dict.fromkeys(question_ids, self._clock().timestamp())

    def note_page(self, question_id: str, page: int) -> None:
        with self._lock:
            if (kept := self.find(question_id)) and page not in kept.opened:
                self._change(question_id, opened=(*kept.opened, page))

    def answer(self, question_id: str, answer: str) -> bool:
        return self._change_open(question_id, answer=answer)

    def end(self, question_id: str, facts: str) -> bool:
        with self._lock:
            found = self._change_open(question_id, kind="ended", facts=facts)
            ended = [one for one, (kept, *_) in self._kept.items() if kept.kind == "ended"]
            for one in ended[:-MAX_ENDED_QUESTIONS]:
                del self._kept[one]
            return found

    def take(self, question_id: str) -> StoredQuestion | None:
        with self._lock:
            found = self.find(question_id)
            self._kept.pop(question_id, None)
            return found

    def allow_session(self, session_id: str, mode: str) -> None:
        self._allowed[session_id] = mode

    def is_session_allowed(self, session_id: str, mode: str) -> bool:
        return self._allowed.get(session_id) == mode

    def _change_open(self, question_id: str, **facts: Any) -> bool:
        with self._lock:
            kept = self.find(question_id)
            if kept is None or kept.kind != "waiting" or kept.answer:
                return False
            self._change(question_id, **facts)
            return True

    def _change(self, question_id: str, **facts: Any) -> None:
        kept, *others = self._kept[question_id]
        self._kept[question_id] = (replace(kept, **facts), *others)  # type: ignore[assignment]
