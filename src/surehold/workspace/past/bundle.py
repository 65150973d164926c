"""A part of the history in one file that proves itself: entries with their hashes, the bytes they name, and one digest.

Lines of JSON: a header, turns, entries (newest last), versions, and the sha256 of everything above. Whoever has the file
can check it without the workspace: a bundle with any other byte is refused.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from surehold.errors import InvalidArgument, NotFound
from surehold.stores.base import Entry, Store
from surehold.stores.ledger_entries import chain_hash, entry_text, from_json, to_canonical_json
from surehold.stores.ledger_rules import version_hashes
from surehold.workspace.workspace import Workspace

_FORMAT = "surehold-bundle"
_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleCheck:
    """What a check of a bundle found."""

    entries: int
    versions: int
    problem: str = ""
    """The first thing that is wrong; empty when all is right."""

    @property
    def ok(self) -> bool:
        return not self.problem


def write_bundle(workspace: Workspace, entries: Sequence[Entry], *, made: str) -> Iterator[bytes]:
    """Yield a bundle of these entries, line by line; bytes that the history no longer has are left out."""
    digest = hashlib.sha256()
    for line in _bundle_lines(workspace.store, sorted(entries, key=lambda one: one.seq), made=made):
        digest.update(line)
        yield line
    yield _digest_line(digest.hexdigest())


def _bundle_lines(store: Store, entries: Sequence[Entry], *, made: str) -> Iterator[bytes]:
    yield _line({"format": _FORMAT, "version": _VERSION, "made": made, "entries": len(entries)})
    for session in dict.fromkeys(entry.call.session for entry in entries if entry.call.session):
        for turn in store.list_turns(session):
            yield _line({"turn": turn.id, "session": session, "title": turn.title, "began": turn.began})
    for entry in entries:
        yield _line({"entry": from_json(entry_text(entry, entry.seq)), "previous": entry.previous, "hash": entry.hash})
    for sha256 in dict.fromkeys(name for entry in entries for name in version_hashes(entry.change)):
        try:
            data = store.read_blob(sha256)
        except NotFound:
            continue
        yield _line({"sha256": sha256, "size": len(data), "data": base64.b64encode(zlib.compress(data)).decode()})


def _line(data: dict[str, Any]) -> bytes:
    return to_canonical_json(data).encode("ascii") + b"\n"


def _digest_line(sha256: str) -> bytes:
    return _line({"bundle_sha256": sha256})


def check_bundle(lines: Iterable[bytes]) -> BundleCheck:
    """Check a bundle, line by line, as it was read from a file."""
    digest, waiting = hashlib.sha256(), b""
    counts, announced, problem, earlier = {"entry": 0, "sha256": 0}, 0, "", ("", 0)
    for number, line in enumerate(lines):
        if waiting:
            digest.update(waiting)
            try:
                data = _read_object(waiting, is_first=number == 1)
                if number == 1:
                    announced = _read_header(data)
                problem = problem or _find_problem(data, earlier)
                earlier = (data["hash"], data["entry"]["seq"]) if "entry" in data else earlier
                counts.update({kind: counts[kind] + 1 for kind in counts if kind in data})
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError, zlib.error):
                problem = problem or f"Line {number} cannot be read."
        waiting = line
    if waiting != _digest_line(digest.hexdigest()):
        problem = problem or "The digest of the bundle does not match: it was cut, or changed."
    if not problem and announced != counts["entry"]:
        problem = f"The bundle has {counts['entry']} entries, and says that it has {announced}."
    return BundleCheck(entries=counts["entry"], versions=counts["sha256"], problem=problem)


def _read_object(line: bytes, *, is_first: bool) -> dict[str, Any]:
    data = json.loads(line)
    if isinstance(data, dict):
        return cast("dict[str, Any]", data)
    if is_first:
        raise _not_a_bundle_error()
    raise TypeError


def _not_a_bundle_error() -> InvalidArgument:
    message = "This is not a bundle of Surehold."
    return InvalidArgument(message, reason="not_a_bundle", action="Make one with: surehold export --format bundle")


def _read_header(data: dict[str, Any]) -> int:
    if data.get("format") != _FORMAT:
        raise _not_a_bundle_error()
    if data.get("version") != _VERSION:
        message = "A newer Surehold made this bundle."
        raise InvalidArgument(message, reason="bundle_too_new", action="Check it with that version.")
    return int(data["entries"])


def _find_problem(data: dict[str, Any], earlier: tuple[str, int]) -> str:
    if "entry" in data:
        body = to_canonical_json(data["entry"]).encode("ascii")
        seq = data["entry"]["seq"]
        if chain_hash(data["previous"], body) != data["hash"]:
            return f"Entry {seq} was changed: its hash does not match."
        if seq == earlier[1] + 1 and earlier[1] and data["previous"] != earlier[0]:
            return f"Entry {seq} does not follow the one before it."
    elif "sha256" in data:
        content = zlib.decompress(base64.b64decode(data["data"], validate=True))
        if hashlib.sha256(content).hexdigest() != data["sha256"] or len(content) != data["size"]:
            return f"The version {data['sha256']} was changed."
    return ""
