"""Entries as JSON and the hash that ties them together."""

from dataclasses import fields, replace

from hypothesis import given
from hypothesis import strategies as st

from spec.marks import requirement
from stores.scenes import ELSEWHERE
from surehold.stores import ledger_entries
from surehold.stores.base import ApprovalRecord, Call, Change, Entry, Intent
from surehold.text.snapshot import Meta, Version

META = Meta(mode=0o644, uid=1, gid=2, mtime_ns=3, xattrs=(("user.a\udc80", b"\xff\x00"),))
FULL = Version(sha256="ab" * 32, size=5, meta=META)
BARE = Version(sha256="cd" * 32, size=0)
ODD = Version(sha256="cd" * 32, size=0, kind="link", links=("o\udcff",), holes=((0, 4096),))
CALL = Call(
    tool="t",
    operation="edit",
    writer="w",
    agent="a",
    session="s",
    turn="2",
    call_id="toolu",
    reason="r",
    idempotency_key="k",
    undoes="u",
    restores="t",
    approval=ApprovalRecord(
        asked=True, rule="mode default", where="page", who="ada", at="2026", note="n", left_out="l"
    ),
    argv=("rm", "-rf", "x\udc80"),
    exit_code=7,
)
CHANGE = Change(
    path="p\udcff",
    before=FULL,
    after=ODD,
    to_path="q",
    displaced=FULL,
    diff="d",
    diff_truncated=True,
    added=1,
    removed=2,
    trash_id="x",
    proposal_sha256="ef" * 32,
    undoes=("b#0", "b#2"),
    in_place=True,
    whole=True,
    makes=("e", "e/f"),
)
ENTRY = Entry(
    seq=1,
    change_id="c",
    index=2,
    timestamp="2026",
    call=CALL,
    change=CHANGE,
    ok=False,
    error_kind="e",
    message="m",
    previous="p",
    hash="h",
)


def test_the_examples_set_every_field() -> None:
    for example in (META, CALL, CALL.approval, CHANGE, ENTRY):
        assert example
        left_out = [each.name for each in fields(example) if getattr(example, each.name) == each.default]
        assert left_out == [], f"{type(example).__name__} has a field that this test does not know"


@requirement("engine:ledger:entry")
def test_an_entry_and_an_intent_survive_as_json() -> None:
    text = ledger_entries.entry_text(ENTRY, ENTRY.seq)
    intent = Intent(
        id="i", call=CALL, changes=(CHANGE, Change(path="", before=None, after=None)), owner=ELSEWHERE, began="b"
    )

    assert ledger_entries.entry_from_json(ledger_entries.from_json(text), previous="p", hash="h") == ENTRY
    assert ledger_entries.intent_from_text(ledger_entries.intent_text(intent)) == intent
    for canonical in (text, ledger_entries.intent_text(intent)):
        assert ledger_entries.to_canonical_json(ledger_entries.from_json(canonical)) == canonical


@requirement("engine:ledger:chained")
def test_a_change_is_spelled_the_same_whichever_of_its_fields_are_set() -> None:
    plain = Change(path=CHANGE.path, before=None, after=None)
    dull = Version(sha256="", size=0, meta=replace(META, xattrs=()), kind="directory")
    changes = [plain, CHANGE, *(replace(plain, **{one.name: getattr(CHANGE, one.name)}) for one in fields(CHANGE))]
    changes += [replace(plain, before=before, after=after) for before in (FULL, dull) for after in (BARE, ODD, dull)]

    for change in changes:
        entry = replace(ENTRY, change=change)
        text = ledger_entries.entry_text(entry, 7)
        assert ledger_entries.to_canonical_json(ledger_entries.from_json(text)) == text
        assert ledger_entries.from_json(text)["change"] == ledger_entries.from_json(
            ledger_entries.to_canonical_json(ledger_entries.change_to_json(change))
        )
        assert ledger_entries.entry_from_json(ledger_entries.from_json(text), previous="p", hash="h") == replace(
            entry, seq=7
        )
    for version in (FULL, BARE, ODD, dull):
        spelled = ledger_entries.to_canonical_json(ledger_entries.version_to_json(version))
        assert ledger_entries.version_text(version) == spelled


@requirement("engine:ledger:chained", "session:turn:unhashed")
def test_the_hash_of_an_entry_never_changes() -> None:
    older = replace(
        ENTRY,
        call=replace(CALL, approval=None, turn="", call_id="", argv=(), exit_code=0),
        change=replace(CHANGE, after=BARE, proposal_sha256="", undoes=(), added=0, removed=0, whole=False, makes=()),
    )
    sealed, body = ledger_entries.seal_entry(ledger_entries.ChainTip(seq=6, hash="00" * 32), older)

    assert body == (
        '{"call":{"agent":"a","idempotency_key":"k","operation":"edit","reason":"r","restores":"t","session":"s","tool":"t",'
        '"undoes":"u","writer":"w"},"change":{"after":{"sha256":"'
        + "cd"
        * 32
        + '","size":0},"before":{"meta":{"gid":2,'
        '"mode":420,"mtime_ns":3,"uid":1,"xattrs":[["user.a\\udc80","ff00"]]},"sha256":"' + "ab" * 32 + '","size":5},'
        '"diff":"d","diff_truncated":true,"displaced":{"meta":{"gid":2,"mode":420,"mtime_ns":3,"uid":1,"xattrs":'
        '[["user.a\\udc80","ff00"]]},"sha256":"'
        + "ab"
        * 32
        + '","size":5},"in_place":true,"path":"p\\udcff","to_path":"q",'
        '"trash_id":"x"},"change_id":"c","error_kind":"e","index":2,"message":"m","ok":false,"seq":7,"timestamp":"2026"}'
    )
    assert (sealed.seq, sealed.previous, sealed.hash) == (
        7,
        "00" * 32,
        "0c7f078e37b57752e367740d3dbc126cdb2e2c7501675025643c20f7e9be02a0",
    )


@given(text=st.text(st.characters(exclude_categories=[])).filter(lambda text: text == _joined(text)))
def test_any_string_survives(text: str) -> None:
    data = {"text": text}

    assert ledger_entries.from_json(ledger_entries.to_canonical_json(data)) == data
    assert ledger_entries.to_canonical_json(data).isascii()


def _joined(text: str) -> str:
    # A high and a low surrogate side by side are one character to JSON; Python alone tells them apart.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
