"""Questions that wait for a person, in every store."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from databases.schemas import PostgresSchema
from spec.marks import requirement
from stores.scenes import Clock
from surehold.stores.base import Store
from surehold.stores.conversations import SessionRow
from surehold.stores.owner import Owner, current_owner
from surehold.stores.postgres.store import open_postgres_store
from surehold.stores.questions import FORGOTTEN_SECONDS, MAX_ENDED_QUESTIONS, SILENT_SECONDS, NewQuestion, QuestionKind

ELSEWHERE = Owner(host="another", boot="b", pid=1, started="1")


def ask(store: Store, name: str = "q", kind: QuestionKind = "waiting", owner: Owner | None = None) -> None:
    question = NewQuestion(id=name, kind=kind, owner=owner or current_owner(), facts="{}", body=b"what \0 is asked")
    store.questions.add(question, seconds=60)


def names_of(store: Store) -> list[str]:
    return [one.id for one in store.questions.list_all()]


@requirement("fleet:questions:store")
def test_a_question_is_found_by_everybody_with_its_age_and_what_is_asked(store: Store, clock: Clock) -> None:
    ask(store)
    ask(store, "r")
    clock.now += timedelta(seconds=20)

    first, second = store.questions.list_all()
    assert (first.id, second.id, first.kind, first.owner, first.facts) == ("q", "r", "waiting", current_owner(), "{}")
    assert (round(first.age), round(first.left), round(first.silent), first.answer) == (20, 40, 20, "")
    assert store.questions.read_body("q") == b"what \0 is asked"
    assert (store.questions.read_body("x"), store.questions.find("x")) == (None, None)


@requirement("fleet:questions:once")
def test_the_first_answer_is_kept_and_no_other(store: Store) -> None:
    ask(store)

    assert [store.questions.answer("q", "first"), store.questions.answer("q", "second")] == [True, False]
    assert store.questions.read_answers(["q", "x"]) == {"q": "first"}
    assert not store.questions.find("q").is_open  # type: ignore[union-attr]
    assert not store.questions.end("q", "{}"), "what was answered has not ended"
    taken = store.questions.take("q")
    assert taken is not None
    assert taken.answer == "first"
    assert (store.questions.take("q"), store.questions.answer("q", "third")) == (None, False)


@requirement("fleet:questions:once")
def test_of_many_who_answer_or_take_at_once_one_does(store: Store) -> None:
    for number in range(5):
        ask(store, f"q{number}")
        ask(store, f"p{number}", "parked")
    answered, taken, gate = list[str](), list[str](), threading.Barrier(4)

    def race(who: int) -> None:
        gate.wait(20)
        for number in range(5):
            if store.questions.answer(f"q{number}", f"by {who}"):
                answered.append(f"q{number}")
            if store.questions.take(f"p{number}"):
                taken.append(f"p{number}")

    threads = [threading.Thread(target=race, args=(who,)) for who in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(20)

    assert sorted(answered) == [f"q{number}" for number in range(5)]
    assert sorted(taken) == [f"p{number}" for number in range(5)]


@requirement("fleet:questions:gone")
def test_a_question_is_open_as_long_as_its_process_lives(store: Store, clock: Clock) -> None:
    ask(store, "here")
    ask(store, "dead", owner=replace(current_owner(), started="1"))
    ask(store, "elsewhere", owner=ELSEWHERE)
    ask(store, "silent", owner=ELSEWHERE)
    ask(store, "parked", "parked", owner=replace(current_owner(), started="1"))
    clock.now += timedelta(seconds=SILENT_SECONDS)
    store.questions.renew(["here", "elsewhere"])

    found = {one.id: (one.is_open, one.is_orphan) for one in store.questions.list_all()}
    assert found == {
        "here": (True, False),
        "dead": (False, True),
        "elsewhere": (True, False),
        "silent": (False, False),
        "parked": (False, False),
    }
    clock.now += timedelta(seconds=4 * SILENT_SECONDS)
    assert [one.id for one in store.questions.list_all() if one.is_orphan] == ["dead", "elsewhere", "silent"]
    assert [one.id for one in store.questions.list_all() if one.is_overdue] == ["parked"]


def test_only_waiting_questions_are_answered_or_ended(store: Store) -> None:
    ask(store, "p", "parked")
    ask(store)

    assert not store.questions.answer("p", "yes")
    assert [store.questions.end("p", "why"), store.questions.end("q", "why"), store.questions.end("x", "why")] == [
        False,
        True,
        False,
    ]
    ended = store.questions.find("q")
    assert ended is not None
    assert (ended.kind, ended.facts) == ("ended", "why")
    assert not store.questions.answer("q", "yes")


def test_pages_that_were_opened_are_remembered_once_each(store: Store) -> None:
    ask(store)
    for page in (2, 1, 2):
        store.questions.note_page("q", page)
    store.questions.note_page("x", 1)

    assert store.questions.find("q").opened == (2, 1)  # type: ignore[union-attr]


def test_what_was_never_taken_away_is_forgotten(store: Store, clock: Clock) -> None:
    for number in range(MAX_ENDED_QUESTIONS + 3):
        ask(store, f"e{number}")
        store.questions.end(f"e{number}", "{}")
    assert len(names_of(store)) == MAX_ENDED_QUESTIONS
    assert names_of(store)[-1] == f"e{MAX_ENDED_QUESTIONS + 2}"

    clock.now += timedelta(seconds=FORGOTTEN_SECONDS + 61)
    ask(store, "new")
    assert names_of(store) == ["new"]


@requirement("fleet:questions:always")
def test_what_a_person_allowed_a_session_is_remembered_with_the_mode(store: Store) -> None:
    store.open_session(SessionRow(id="s", agent="a", opened="2026"))

    assert not store.questions.is_session_allowed("s", "default")
    store.questions.allow_session("s", "default")
    found = [store.questions.is_session_allowed(*one) for one in (("s", "default"), ("s", "plan"), ("t", "default"))]
    assert found == [True, False, False]
    store.questions.allow_session("s", "")
    assert not store.questions.is_session_allowed("s", "default")


def test_the_questions_of_another_workspace_are_not_seen(postgres_pair: tuple[Store, Store]) -> None:
    one, other = postgres_pair
    ask(one)

    assert (names_of(one), names_of(other)) == (["q"], [])
    assert [other.questions.answer("q", "no"), other.questions.take("q")] == [False, None]


@pytest.fixture
def postgres_pair(postgres: Store, postgres_schema: PostgresSchema) -> Iterator[tuple[Store, Store]]:
    other = open_postgres_store(postgres_schema.address, workspace="v", root="/v", host="here")
    yield postgres, other
    other.close()
