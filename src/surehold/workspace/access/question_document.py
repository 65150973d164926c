"""A question as bytes, so that any process can show what another one asks: who asks, why, and both versions of every file.

The first line is JSON. The packed versions of the files follow it, one after the other.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from surehold.stores.ledger_entries import (
    call_from_json,
    call_to_json,
    change_from_json,
    change_to_json,
    version_from_json,
    version_to_json,
)
from surehold.stores.packing import pack_full, pack_smallest, unpack_blob
from surehold.text.encoding import Encoding
from surehold.text.plan import EditPlan, Span
from surehold.text.snapshot import ABSENT, Snapshot
from surehold.workspace.access.permission import PermissionRequest
from surehold.workspace.proposal import FileReceipt

Json = dict[str, Any]


def pack_request(request: PermissionRequest) -> bytes:
    """Return a request about files as bytes."""
    parts = list[bytes]()
    head: Json = {
        "call": call_to_json(request.call),
        "why": request.why,
        "is_protected": request.is_protected,
        "files": [_pack_file(one, parts) for one in request.files],
    }
    return json.dumps(head).encode("ascii") + b"\n" + b"".join(parts)


def unpack_request(document: bytes) -> PermissionRequest:
    """Return the request again, as far as it is shown and compared."""
    line, _, packed = document.partition(b"\n")
    head: Json = json.loads(line)
    parts = _Parts(packed)
    return PermissionRequest(
        call=call_from_json(head["call"]),
        files=tuple(_unpack_file(one, parts) for one in head["files"]),
        why=head["why"],
        is_protected=head["is_protected"],
    )


class _Parts:
    def __init__(self, packed: bytes) -> None:
        self._packed, self._at = packed, 0

    def take(self, size: int) -> bytes:
        self._at += size
        return self._packed[self._at - size : self._at]


def _pack_file(one: FileReceipt, parts: list[bytes]) -> Json:
    plan = one.plan
    return {
        "path": one.path,
        "change": change_to_json(one.change),
        "warnings": one.warnings,
        "mode": one.mode,
        "before": _pack_side(plan.before, ABSENT, parts),
        "after": _pack_side(plan.after, plan.before, parts),
        "displaced": _pack_side(one.displaced, ABSENT, parts),
        "spans": [(span.start, span.end, len(span.new)) for span in plan.spans],
    }


def _pack_side(side: Snapshot, base: Snapshot, parts: list[bytes]) -> Json | None:
    version = side.version
    if version is None:
        return None
    small = pack_smallest(side.data, base=base.data, base_sha256=base.sha256) if base.exists else pack_full(side.data)
    parts.append(small)
    encoding = {**asdict(side.encoding), "bom": side.encoding.bom.hex()} if side.is_text else None
    return {"version": version_to_json(version), "packed": len(small), "encoding": encoding}


def _unpack_file(said: Json, parts: _Parts) -> FileReceipt:
    before = _unpack_side(said["before"], b"", parts)
    after = _unpack_side(said["after"], before.data, parts)
    displaced = _unpack_side(said.get("displaced"), b"", parts)
    plan = EditPlan(before=before, after=after, spans=tuple(_spans_of(said["spans"], after.data)))
    return FileReceipt(
        path=said["path"],
        plan=plan,
        change=change_from_json(said["change"]),
        warnings=tuple(said["warnings"]),
        mode=said["mode"],
        displaced=displaced,
    )


def _unpack_side(said: Json | None, base: bytes, parts: _Parts) -> Snapshot:
    if said is None:
        return ABSENT
    version, spelled = version_from_json(said["version"]), said["encoding"]
    data = unpack_blob(parts.take(said["packed"]), size=version.size, base=base)
    encoding = None
    if spelled:
        facts: Json = {**spelled, "bom": bytes.fromhex(spelled["bom"])}
        encoding = Encoding(**facts)
    return Snapshot(data, meta=version.meta, encoding=encoding)


def _spans_of(rows: list[tuple[int, int, int]], after: bytes) -> Iterator[Span]:
    shift = 0
    for start, end, size in rows:
        begin = start + shift
        yield Span(start=start, end=end, new=after[begin : begin + size])
        shift += size - (end - start)
