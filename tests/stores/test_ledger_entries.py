"""The ledger as text: each field of an entry has one spelling, which is read back as it was, and is part of its hash."""

import hashlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from surehold.errors import StateTooNew
from surehold.stores import ledger_entries
from surehold.stores.base import ApprovalRecord, Call, Change, Entry, Intent
from surehold.stores.ledger_entries import ChainTip, entry_from_json, entry_text, from_json, seal_entry
from surehold.stores.owner import Owner, new_id
from surehold.text.snapshot import Kind, Meta, Version

PLAIN = Version(sha256="a" * 64, size=3)
FACTS = Meta(mode=0o640, uid=1, gid=2, mtime_ns=3)
WITH_FACTS = replace(PLAIN, meta=FACTS)
KINDS: tuple[Kind, ...] = ("file", "link", "directory", "fifo")
VERSIONS = {
    "bare": PLAIN,
    "with facts": WITH_FACTS,
    "with attributes": replace(PLAIN, meta=replace(FACTS, xattrs=(("user.b", b"\x00\xff"), ("user.a", b"")))),
    "with other names": replace(WITH_FACTS, links=("b", "c")),
    "with holes": replace(WITH_FACTS, holes=((0, 4), (8, 12))),
    "bare, with holes": replace(PLAIN, holes=((0, 4),)),
    "bare, with other names": replace(PLAIN, links=("b",)),
    **{f"a {kind}": replace(WITH_FACTS, kind=kind) for kind in KINDS},
    **{f"a bare {kind}": replace(PLAIN, kind=kind) for kind in KINDS},
    "facts of nothing": replace(PLAIN, meta=Meta(mode=0, uid=0, gid=0, mtime_ns=0)),
}
CHANGE = Change(path='a "path" é', before=None, after=None)
CHANGES = {
    "nothing": CHANGE,
    "before": replace(CHANGE, before=WITH_FACTS),
    "after": replace(CHANGE, after=PLAIN),
    "both": replace(CHANGE, before=PLAIN, after=WITH_FACTS),
    "to_path": replace(CHANGE, before=PLAIN, after=PLAIN, to_path="b"),
    "displaced": replace(CHANGE, displaced=WITH_FACTS),
    "diff": replace(CHANGE, diff="-1\n+2\n"),
    "diff_truncated": replace(CHANGE, diff_truncated=True),
    "added": replace(CHANGE, added=2),
    "removed": replace(CHANGE, removed=2),
    "trash_id": replace(CHANGE, trash_id="t"),
    "proposal_sha256": replace(CHANGE, proposal_sha256="p"),
    "undoes": replace(CHANGE, undoes=("c#0", "c#1")),
    "in_place": replace(CHANGE, in_place=True),
    "whole": replace(CHANGE, whole=True),
    "makes": replace(CHANGE, makes=("d", "d/e")),
}
CALL = Call(tool="edit_file", operation="edit", writer="files")
WORDS = ("agent", "session", "turn", "call_id", "reason", "idempotency_key", "undoes", "restores")
CALLS = {
    "plain": CALL,
    **{word: replace(CALL, **{word: f"some {word}"}) for word in WORDS},
    "argv": replace(CALL, argv=("ls", "-l")),
    "exit_code": replace(CALL, exit_code=3),
    "approval": replace(CALL, approval=ApprovalRecord(asked=True, rule="mode default", who="me")),
    "approval of nothing": replace(CALL, approval=ApprovalRecord(rule="x")),
}
OWNER = Owner(host="h", boot="b", pid=7, started="s")


def without_defaults(value: Any) -> dict[str, Any]:
    """Return the fields of a value that do not hold their default, which is nothing for all of them, as plain data."""
    named: dict[str, Any] = {one.name: getattr(value, one.name) for one in fields(value)}
    return {name: [*part] if isinstance(part, tuple) else part for name, part in named.items() if part}


def plain_version(version: Version) -> dict[str, Any]:
    data: dict[str, Any] = {"sha256": version.sha256, "size": version.size}
    data |= {"kind": version.kind} if version.kind != "file" else {}
    data |= {"links": list(version.links)} if version.links else {}
    data |= {"holes": [list(pair) for pair in version.holes]} if version.holes else {}
    if version.meta:
        facts = {name: getattr(version.meta, name) for name in ("gid", "mode", "mtime_ns", "uid")}
        data["meta"] = facts | {"xattrs": [[name, value.hex()] for name, value in version.meta.xattrs]}
    return data


def plain_change(change: Change) -> dict[str, Any]:
    data = without_defaults(change)
    versions = {name: plain_version(data[name]) for name in ("before", "after", "displaced") if name in data}
    return data | versions


def plain_call(call: Call) -> dict[str, Any]:
    data = without_defaults(call)
    return data | ({"approval": without_defaults(call.approval)} if call.approval else {})


def canonical(data: object) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def entry(**more: Any) -> Entry:
    return replace(Entry(change_id="c", timestamp="2026", call=CALL, change=CHANGE), **more)


@pytest.mark.parametrize("name", list(VERSIONS))
def test_a_version_has_one_spelling_and_is_read_as_it_was(name: str) -> None:
    version = VERSIONS[name]
    text = ledger_entries.version_text(version)
    assert text == canonical(plain_version(version))
    read = ledger_entries.version_from_text(text)
    assert (read, read and (read.meta, read.kind, read.links, read.holes)) == (
        version,
        (version.meta, version.kind, version.links, version.holes),
    )


def test_an_absent_file_has_no_spelling() -> None:
    assert (ledger_entries.version_text(None), ledger_entries.version_from_text(None)) == (None, None)


@pytest.mark.parametrize("name", list(CHANGES))
def test_a_change_spells_what_is_not_its_default_and_nothing_else(name: str) -> None:
    change = CHANGES[name]
    text = entry_text(entry(change=change), 5)
    assert from_json(text)["change"] == plain_change(change)
    assert text == canonical(from_json(text))
    assert entry_from_json(from_json(text), previous="p", hash="h").change == change


@pytest.mark.parametrize("name", list(CALLS))
def test_a_call_spells_what_is_not_its_default_and_nothing_else(name: str) -> None:
    call = CALLS[name]
    text = entry_text(entry(call=call), 5)
    assert from_json(text)["call"] == plain_call(call)
    assert text == canonical(from_json(text))
    assert entry_from_json(from_json(text), previous="p", hash="h").call == call


@pytest.mark.parametrize(
    "more", [{}, {"ok": False}, {"error_kind": "stale", "ok": False}, {"message": "why\n"}, {"index": 3}]
)
def test_an_entry_is_sealed_with_its_place_and_what_was_before_it(more: dict[str, Any]) -> None:
    draft = entry(**more)
    sealed, body = seal_entry(ChainTip(seq=4, hash="before"), draft)
    data = {
        "call": plain_call(CALL),
        "change": plain_change(CHANGE),
        "change_id": "c",
        "index": 0,
        "ok": True,
        "seq": 5,
        "timestamp": "2026",
    }
    assert body == canonical(data | more)
    digest = hashlib.sha256(f"before\n{body}".encode()).hexdigest()
    assert sealed == replace(draft, seq=5, previous="before", hash=digest)
    assert entry_from_json(from_json(body), previous="before", hash=digest) == sealed


def test_an_intent_is_read_as_it_was() -> None:
    for call in CALLS.values():
        intent = Intent(id='i"d', call=call, changes=tuple(CHANGES.values()), owner=OWNER, began="2026")
        text = ledger_entries.intent_text(intent)
        assert ledger_entries.intent_from_text(text) == intent
        assert text == canonical(json.loads(text))
    assert ledger_entries.owner_from_text(ledger_entries.owner_text(OWNER)) == OWNER


@pytest.mark.parametrize("place", ["call", "change", "owner", "entry"])
def test_a_field_that_we_do_not_know_was_written_by_a_newer_surehold(place: str) -> None:
    data = from_json(entry_text(entry(), 1))
    intent = from_json(ledger_entries.intent_text(Intent(id="i", call=CALL, changes=(CHANGE,), owner=OWNER, began="")))
    if place != "entry":
        (intent["changes"][0] if place == "change" else intent[place])["new_field"] = 1
        with pytest.raises(StateTooNew):
            ledger_entries.intent_from_text(json.dumps(intent))
    if place != "owner":
        (data if place == "entry" else data[place])["new_field"] = 1
        with pytest.raises(StateTooNew):
            entry_from_json(data, previous="", hash="")


def test_text_after_the_end_is_not_overlooked() -> None:
    assert from_json(b'{"a":"\xed\xa0\x80"}') == {"a": "\ud800"}
    with pytest.raises(ValueError, match="Extra data"):
        from_json('{"a":1} and more')


@pytest.mark.parametrize("more", [{}, {"agent": "me", "session": "s", "undoes": "u"}])
@pytest.mark.parametrize("ok", [True, False])
def test_the_columns_of_an_entry_are_those_of_its_words(more: dict[str, str], *, ok: bool) -> None:
    change = replace(CHANGE, to_path="b") if more else CHANGE
    data = from_json(entry_text(entry(call=replace(CALL, **more), change=change, ok=ok), 9))
    words = [more.get(word, "").encode() for word in ("session", "agent", "undoes")]
    to_path = b"b" if more else b""
    expected = (9, b"c", CHANGE.path.encode(), to_path, *words[:2], "edit", words[2], int(ok), "2026")
    assert ledger_entries.columns_of_json(data) == expected


def test_a_name_is_bytes_that_need_not_be_text() -> None:
    assert ledger_entries.to_key("a\udcff") == b"a\xff"
    assert ledger_entries.text_of(b"a\xff") == "a\udcff"
    assert ledger_entries.to_key("half \ud800") == b"half \xed\xa0\x80"


def test_a_new_id_sorts_by_its_moment_and_is_like_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    letters = "0123456789abcdefghjkmnpqrstvwxyz"
    before = int(datetime.now(UTC).timestamp() * 1000)
    names = [new_id() for _ in range(50)]
    after = int(datetime.now(UTC).timestamp() * 1000)
    assert len(set(names)) == 50
    for name in names:
        assert (len(name), set(name) <= set(letters)) == (26, True)
        number = 0
        for letter in name:
            number = number * 32 + letters.index(letter)
        assert before <= number >> 80 <= after

    def all_ones(count: int) -> bytes:
        return b"\xff" * count

    monkeypatch.setattr(os, "urandom", all_ones)
    assert new_id()[10:] == "z" * 16


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the clock of this machine be nine hours ahead of UTC."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_east")
def test_a_moment_has_one_spelling_and_one_number() -> None:
    moment = datetime(2026, 1, 1, 12, 0, 0, 5, tzinfo=UTC)
    text = "2026-01-01T12:00:00.000005+00:00"
    elsewhere = moment.astimezone(timezone(timedelta(hours=2)))
    assert [ledger_entries.utc_timestamp(one) for one in (moment, elsewhere)] == [text, text]
    number = int(datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()) * 1_000_000 + 5
    assert [ledger_entries.microseconds(one) for one in (moment, elsewhere, text)] == [number] * 3
    spelled = ("2026-01-01T14:00:00.000005+02:00", "2026-01-01T12:00:00.000005", "2026-01-01T12:00:00.000005Z")
    assert [ledger_entries.normalize_timestamp(one) for one in spelled] == [text] * 3
    assert ledger_entries.utc_now().tzinfo is UTC
