"""The ledger as text: ids, moments, and the canonical JSON of entries, which seals them into the hash chain."""

import hashlib
import json
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, cast

from surehold.errors import StateTooNew
from surehold.stores.base import ApprovalRecord, Call, Change, Entry, Intent
from surehold.stores.owner import Owner
from surehold.text.snapshot import Meta, Version

Json = dict[str, Any]

_PLAIN_CALL_FIELDS = tuple(field.name for field in fields(Call) if field.name != "approval")
_VERSION_FIELDS = ("before", "after", "displaced")
_OTHER_CHANGE_FIELDS = tuple(field.name for field in fields(Change) if field.name not in {"path", *_VERSION_FIELDS})
_META_FIELDS, _NUMBERS = len(fields(Meta)), ("mode", "uid", "gid", "mtime_ns")
_PLAIN_VERSION_FIELDS = 3
"""How many fields of a version are spelled for a file without links and holes: its sha256, its size and its facts."""
_Fields = tuple[tuple[str, Any], ...]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
to_canonical_json = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_read_json = json.JSONDecoder().raw_decode
_quote = json.encoder.encode_basestring_ascii


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainTip:
    """The end of the chain: how many entries there are, and the hash of the last."""

    seq: int = 0
    hash: str = ""


def seal_entry(tip: ChainTip, entry: Entry) -> tuple[Entry, str]:
    seq = tip.seq + 1
    body = entry_text(entry, seq)
    sealed = Entry(
        seq=seq,
        change_id=entry.change_id,
        index=entry.index,
        timestamp=entry.timestamp,
        call=entry.call,
        change=entry.change,
        ok=entry.ok,
        error_kind=entry.error_kind,
        message=entry.message,
        previous=tip.hash,
        hash=chain_hash(tip.hash, body.encode("ascii")),
    )
    return sealed, body


def chain_hash(previous: str, body: bytes) -> str:
    return hashlib.sha256(b"%b\n%b" % (previous.encode("ascii", "replace"), body)).hexdigest()


def from_json(text: str | bytes) -> Json:
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogatepass")
    value, end = _read_json(text)
    return cast("Json", value if end == len(text) else json.loads(text))  # which says what is wrong with it


def entry_text(entry: Entry, seq: int) -> str:
    """Return the canonical JSON of an entry at its place, without its two hashes; call and change come first in it."""
    kind = f'"error_kind":{_quote(entry.error_kind)},' if entry.error_kind else ""
    message = f'"message":{_quote(entry.message)},' if entry.message else ""
    ok, when = "true" if entry.ok else "false", _quote(entry.timestamp)
    return (
        f'{{"call":{_call_text(entry.call)},"change":{_change_text(entry.change)},"change_id":{_quote(entry.change_id)},'
        f'{kind}"index":{entry.index},{message}"ok":{ok},"seq":{seq},"timestamp":{when}}}'
    )


def entry_from_json(data: Json, *, previous: str, hash: str) -> Entry:  # noqa: A002 - the field's own name
    """Return the entry that this data spells; the data is used up."""
    try:
        data["call"], data["change"] = call_from_json(data["call"]), change_from_json(data["change"])
        return Entry(**data, previous=previous, hash=hash)
    except TypeError as error:
        raise _unknown_field_error(error) from None


def _unknown_field_error(error: TypeError) -> StateTooNew:
    """Leave what has fields that we do not know to the Surehold that wrote it."""
    return StateTooNew("A newer Surehold wrote parts of this history.", cause=str(error))


def intent_text(intent: Intent) -> str:
    """Return the canonical JSON of an intent."""
    began, name = to_canonical_json(intent.began), to_canonical_json(intent.id)
    call, owner = _call_text(intent.call), owner_text(intent.owner)
    changes = ",".join(_change_text(change) for change in intent.changes)
    return f'{{"began":{began},"call":{call},"changes":[{changes}],"id":{name},"owner":{owner}}}'


def intent_from_text(text: str) -> Intent:
    data = from_json(text)
    try:
        call, owner = call_from_json(data["call"]), Owner(**data["owner"])
        changes = tuple(change_from_json(change) for change in data["changes"])
    except TypeError as error:
        raise _unknown_field_error(error) from None
    return Intent(id=data["id"], call=call, changes=changes, owner=owner, began=data["began"])


@lru_cache(maxsize=8)
def owner_text(owner: Owner) -> str:
    return to_canonical_json({field.name: getattr(owner, field.name) for field in fields(owner)})


@lru_cache(maxsize=256)
def owner_from_text(text: str) -> Owner:
    return Owner(**from_json(text))


@lru_cache(maxsize=8)  # an intent and its entries say the same
def _call_text(call: Call) -> str:
    return to_canonical_json(call_to_json(call))


def _change_text(change: Change) -> str:
    """Return the canonical JSON of a change; that of a plain one in one go, since a command may make very many."""
    is_plain = not (change.displaced or change.added or change.removed or change.trash_id or change.proposal_sha256)
    if not is_plain or change.undoes or change.in_place or change.whole or change.makes:
        return _rich_change_text(change)
    after = f'"after":{_spell_version(change.after)},' if change.after else ""
    before = f'"before":{_spell_version(change.before)},' if change.before else ""
    diff = f'"diff":{_quote(change.diff)},' if change.diff else ""
    cut = '"diff_truncated":true,' if change.diff_truncated else ""
    to_path = f',"to_path":{_quote(change.to_path)}' if change.to_path else ""
    return f'{{{after}{before}{diff}{cut}"path":{_quote(change.path)}{to_path}}}'


@lru_cache(maxsize=8)
def _rich_change_text(change: Change) -> str:
    return to_canonical_json(change_to_json(change))


def call_to_json(call: Call) -> Json:
    data: Json = {name: value for name in _PLAIN_CALL_FIELDS if (value := getattr(call, name))}
    return {**data, "approval": call.approval.to_json()} if call.approval else data


def call_from_json(data: Json) -> Call:
    approval, argv = data.pop("approval", None), data.pop("argv", ())
    return _make_call(tuple(data.items()), tuple(approval.items()) if approval else (), tuple(argv))


@lru_cache(maxsize=64)  # a session says the same again and again
def _make_call(words: _Fields, approval: _Fields, argv: tuple[str, ...]) -> Call:
    return Call(**dict(words), approval=ApprovalRecord(**dict(approval)) if approval else None, argv=argv)


def change_to_json(change: Change) -> Json:
    versions: Json = {name: version_to_json(each) for name in _VERSION_FIELDS if (each := getattr(change, name))}
    others: Json = {name: value for name in _OTHER_CHANGE_FIELDS if (value := getattr(change, name))}
    return {"path": change.path} | versions | others


def change_from_json(data: Json) -> Change:
    before, after = data.pop("before", None), data.pop("after", None)
    if "displaced" in data:
        data["displaced"] = version_from_json(data["displaced"])
    for name in ("undoes", "makes"):
        if name in data:
            data[name] = tuple(data[name])
    return Change(
        **data, before=version_from_json(before) if before else None, after=version_from_json(after) if after else None
    )


def version_to_json(version: Version) -> Json:
    """Return a version as data; extended attributes, which are bytes, as hexadecimal digits."""
    data: Json = {"sha256": version.sha256, "size": version.size}
    if version.kind != "file":
        data["kind"] = version.kind
    if version.links:
        data["links"] = version.links
    if version.holes:
        data["holes"] = version.holes
    if (meta := version.meta) is not None:
        xattrs = [[name, value.hex()] for name, value in meta.xattrs] if meta.xattrs else []
        data["meta"] = {
            "gid": meta.gid,
            "mode": meta.mode,
            "mtime_ns": meta.mtime_ns,
            "uid": meta.uid,
            "xattrs": xattrs,
        }
    return data


def version_from_json(data: Json) -> Version:
    facts = data.get("meta")
    if facts and len(data) == _PLAIN_VERSION_FIELDS and len(facts) == _META_FIELDS and not facts["xattrs"]:
        return _plain_version(data["sha256"], data["size"], tuple(facts[name] for name in _NUMBERS))
    xattrs = tuple((name, bytes.fromhex(value)) for name, value in facts["xattrs"]) if facts else ()
    meta = Meta(**(facts | {"xattrs": xattrs})) if facts else None
    return Version(
        sha256=data["sha256"],
        size=data["size"],
        meta=meta,
        kind=data.get("kind", "file"),
        links=tuple(data.get("links", ())),
        holes=tuple((begin, end) for begin, end in data.get("holes", ())),
    )


@lru_cache(maxsize=1024)  # what one change leaves, the next one finds
def _plain_version(sha256: str, size: int, numbers: tuple[int, ...]) -> Version:
    return Version(sha256=sha256, size=size, meta=Meta(**dict(zip(_NUMBERS, numbers, strict=True)), xattrs=()))


@lru_cache(maxsize=1024)  # a change writes the same few names into several tables
def to_key(text: str) -> bytes:
    """Return a path or another's string as bytes; a file name need not be text, so a column of text cannot hold it."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # never a file's name, but a refused call may have said anything
        return text.encode("utf-8", "surrogatepass")


def text_of(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogateescape")


def version_text(version: Version | None) -> str | None:
    """Return a version for a column; None means an absent file."""
    return None if version is None else _spell_version(version)


def _spell_version(version: Version) -> str:
    meta, kind = version.meta, "" if version.kind == "file" else f'"kind":"{version.kind}",'
    if meta is None or meta.xattrs or version.links or version.holes:
        return to_canonical_json(version_to_json(version))
    numbers = f'"gid":{meta.gid},"mode":{meta.mode},"mtime_ns":{meta.mtime_ns},"uid":{meta.uid}'
    return f'{{{kind}"meta":{{{numbers},"xattrs":[]}},"sha256":{_quote(version.sha256)},"size":{version.size}}}'


@lru_cache(maxsize=64)
def version_from_text(stored: str | None) -> Version | None:
    return None if stored is None else version_from_json(from_json(stored))


def columns_of_json(data: Json) -> tuple[object, ...]:
    """Return the columns of the entry that this data spells, without making it."""
    call, change = data["call"], data["change"]
    words = call.get("session"), call.get("agent"), call.get("undoes")
    names = data["change_id"], change["path"], change.get("to_path"), *words
    *keys, undoes = [to_key(name) if name else b"" for name in names]
    return (data["seq"], *keys, call["operation"], undoes, int(data["ok"]), data["timestamp"])


def utc_now() -> datetime:
    return datetime.now(UTC)


def utc_timestamp(moment: datetime) -> str:
    """Return the one spelling of a moment; as text it sorts as in time."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def microseconds(moment: datetime | str) -> int:
    """Return a moment as microseconds since 1970."""
    if isinstance(moment, str):
        moment = datetime.fromisoformat(moment)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def normalize_timestamp(text: str) -> str:
    """Return a caller's ISO 8601 spelling in ours; without an offset it is UTC."""
    moment = datetime.fromisoformat(text)
    return utc_timestamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
