"""Finds entries by what they say, and checks that they are those that were written.

1. Every path has a chain: an entry has the hash of the one before it at its path. A move joins the chains of its two paths.
2. A seal covers all entries that were committed since the seal before it, with the root of a Merkle tree of their hashes.
3. So no entry can be changed, removed, added or put elsewhere without its chain, a seal, or the end of one of them telling.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from surehold.errors import StateUnavailable
from surehold.stores import ledger_entries
from surehold.stores.base import Entry, LedgerQuery, WriterSpan
from surehold.stores.ledger_entries import Json, from_json, to_key
from surehold.stores.postgres.database import fetch_rows
from surehold.stores.postgres.rows import entry_of, writer_span_of
from surehold.stores.run_records import NewEntries
from surehold.stores.upkeep import LedgerCheck

if TYPE_CHECKING:
    from surehold.stores.postgres.database import Connection, PostgresDatabase, Values

_PAGE_ROWS = 1_000
_JOINED = 1  # the form of seals whose root is one hash over all hashes; later ones have a tree
_SELECT = "SELECT encode(previous, 'hex'), encode(hash, 'hex'), body FROM entries"
_SEALED_SINCE = (
    "SELECT number, encode(previous, 'hex'), encode(entries.hash, 'hex'), body FROM seals"
    " JOIN entries ON entries.ws = seals.ws AND seq = ANY(seqs)"
    " WHERE seals.ws = %(ws)s AND number > %(last)s ORDER BY number, seq"
)
_NEWEST = "ORDER BY seq DESC LIMIT %(limit)s"
_OF_PATH = "(path = %(path)s OR to_path = %(path)s AND to_path <> '')"
_PLAIN_CONDITIONS = {
    "operation": "operation = %(operation)s",
    "before_seq": "seq < %(before_seq)s",
    "after_seq": "seq > %(after_seq)s",
    "ok_only": "ok",
    "since": "timestamp >= %(since)s",
    "until": "timestamp < %(until)s",
}
_KNOWS = (
    "SELECT EXISTS (SELECT 1 FROM entries WHERE ws = %(ws)s AND ok AND operation <> 'gc' AND path = %(path)s"
    " AND (before = %(sha256)s OR to_path = '' AND after = %(sha256)s)"
    " UNION ALL SELECT 1 FROM entries WHERE ws = %(ws)s AND ok AND to_path = %(path)s AND to_path <> ''"
    " AND %(sha256)s IN (displaced, after))"
)
_COLUMNS = (
    "seq, change_id, path, to_path, session, agent, operation, undoes, ok, timestamp, previous, hash, writer, before, after,"
    " displaced, proposal, body"
)


class LedgerRows:
    """The entries of one workspace."""

    def __init__(self, database: "PostgresDatabase", ws: int) -> None:
        self._database, self._ws = database, ws

    def find(self, query: LedgerQuery) -> tuple[Entry, ...]:
        where, values = self._conditions(query)
        if query.path:
            # One index per half, each read backwards and only as far as needed; an OR would read all, then sort.
            halves = " UNION ".join(
                f"(SELECT seq FROM entries WHERE {half} AND {where} {_NEWEST})"  # noqa: S608 - constants
                for half in ("path = %(path)s", "to_path = %(path)s AND to_path <> ''")
            )
            where = f"ws = %(ws)s AND seq IN ({halves})"
        return tuple(entry_of(*row) for row in self._database.rows(f"{_SELECT} WHERE {where} {_NEWEST}", values))

    def find_new(self, cursor: str) -> NewEntries:
        """Return what was sealed since a seal: numbers are drawn before the commit, so one may become visible late."""
        self._seal(at_once=not cursor)
        if not cursor:
            (last,) = self._database.call("SELECT seals FROM workspaces WHERE ws = %s", (self._ws,))
            return NewEntries(entries=(), cursor=str(last))
        rows = self._database.rows(_SEALED_SINCE, {"ws": self._ws, "last": int(cursor)})
        newest = str(rows[-1][0]) if rows else cursor
        return NewEntries(entries=tuple(entry_of(*row) for _, *row in rows), cursor=newest)

    def writers(self, path: str, after_seq: int) -> tuple[WriterSpan, ...]:
        rows = self._database.rows(
            "SELECT writer, min(seq), max(seq) FROM entries"  # noqa: S608 - constants
            f" WHERE ws = %(ws)s AND ok AND seq > %(after)s AND {_OF_PATH} GROUP BY writer ORDER BY 2",
            {"ws": self._ws, "after": after_seq, "path": to_key(path)},
        )
        return tuple(writer_span_of(row) for row in rows)

    def knows_version(self, path: str, sha256: str) -> bool:
        """Tell whether these bytes were ever a version of a path."""
        return self._database.call(_KNOWS, self._version_values(path, sha256))[0]

    def knows_in(self, connection: "Connection", path: str, sha256: str) -> bool:
        """Tell the same inside a transaction."""
        return fetch_rows(connection, _KNOWS, self._version_values(path, sha256))[0][0]

    def _version_values(self, path: str, sha256: str) -> dict[str, object]:
        return {"ws": self._ws, "path": to_key(path), "sha256": bytes.fromhex(sha256)}

    def _conditions(self, query: LedgerQuery) -> tuple[str, dict[str, object]]:
        conditions = ["ws = %(ws)s"]
        values: dict[str, object] = {"ws": self._ws, "path": to_key(query.path), "limit": max(query.limit, 0)}
        if query.undoes:
            conditions.append(
                "(undoes = %(undoes)s AND undoes <> '' OR change_id IN"
                " (SELECT made_by FROM switches WHERE ws = %(ws)s AND change_id = %(undoes)s))"
            )
            values["undoes"] = to_key(query.undoes)
        for name in ("session", "change_id"):
            if value := getattr(query, name):
                conditions.append(f"{name} = %({name})s AND {name} <> ''")
                values[name] = to_key(value)
        for name, condition in _PLAIN_CONDITIONS.items():
            if value := getattr(query, name):
                conditions.append(condition)
                values[name] = value
        if query.agent:
            conditions.append("agent >= %(agent)s AND substring(agent FROM 1 FOR %(agent_bytes)s) = %(agent)s")
            values |= {"agent": to_key(query.agent), "agent_bytes": len(to_key(query.agent))}
        if query.under:
            conditions.append(
                "(path >= %(low_path)s AND path < %(high_path)s OR to_path >= %(low_path)s AND to_path < %(high_path)s)"
            )
            directory = to_key(query.under.rstrip("/"))
            values |= {"low_path": directory + b"/", "high_path": directory + b"0"}  # "0" is the byte after "/"
        return " AND ".join(conditions), values

    def verify(self) -> LedgerCheck:
        """Walk all chains and seals, as of one moment, and say where one first breaks."""
        self._seal(at_once=True)  # where that cannot be written, what is not covered is compared all the same
        return self._database.transact(lambda connection: _LedgerWalk(connection, self._ws).check())

    def _seal(self, *, at_once: bool) -> None:
        """Cover everything by a seal, where that can be written; by default no more than one in a second."""
        try:
            self._database.call("SELECT seal_entries(%s, %s)", (self._ws, at_once))
        except StateUnavailable as error:
            if error.reason not in {"state_read_only", "state_denied"}:
                raise


class _LedgerWalk:
    """Compares everything with everything; memory grows with the paths, not with the entries."""

    def __init__(self, connection: "Connection", ws: int) -> None:
        self._connection, self._ws = connection, ws
        fetch_rows(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")

    def check(self) -> LedgerCheck:
        tips, count = dict[bytes, bytes](), 0
        for row in self._pages("entries", _COLUMNS, "seq", first=0):
            if problem := _find_problem(tips, row):
                return LedgerCheck(entries=count, blobs=0, broken_seq=row[0], problem=problem)
            count += 1
        problem, broken = self._find_cut(tips) or self._find_broken_seal(count) or ("", 0)
        return LedgerCheck(entries=count, blobs=0, broken_seq=broken, problem=problem)

    def _find_cut(self, tips: dict[bytes, bytes]) -> tuple[str, int] | None:
        """Compare where the chains end with where they must; return what is wrong, and after which entry."""
        for path, tip in self._pages("paths", "path, tip", "path", first=b""):
            if tips.pop(path, b"") != tip:
                return f"The last entry of `{ledger_entries.text_of(path)}` is missing.", self._after_last(path)
        if tips:
            path = min(tips)
            return f"`{ledger_entries.text_of(path)}` has entries, but no end of its chain.", self._after_last(path)
        return None

    def _after_last(self, path: bytes) -> int:
        select = f"SELECT COALESCE(max(seq), 0) + 1 FROM entries WHERE ws = %(ws)s AND {_OF_PATH}"  # noqa: S608 - constants
        return self._rows(select, {"ws": self._ws, "path": path})[0][0]

    def _find_broken_seal(self, count: int) -> tuple[str, int] | None:
        last, number, covered = b"", 0, 0
        columns = "number, moment, seqs, root, hash, form"
        for at, moment, seqs, root, own, form in self._pages("seals", columns, "number", first=0):
            hashes = self._rows(
                "SELECT hash FROM entries WHERE ws = %s AND seq = ANY(%s) ORDER BY seq", (self._ws, seqs)
            )
            number, covered = number + 1, covered + len(seqs)
            if len(hashes) != len(seqs) or _root_of([one for (one,) in hashes], form) != root:
                return f"The entries {seqs[0]} to {seqs[-1]} are not those that were sealed at {moment}.", seqs[0]
            words = f"{number} {moment}" if form == _JOINED else f"{number} {moment} {form}"
            sealed = hashlib.sha256(last + root + words.encode("ascii")).digest()
            if at != number or own != sealed:
                return f"Seal {number} of the history was changed or is missing.", seqs[0]
            last = own
        select = (
            "SELECT seals, seal, (SELECT count(*) FROM unsealed WHERE unsealed.ws = workspaces.ws) FROM workspaces"
            " WHERE ws = %s"
        )
        seals, end, open_entries = self._rows(select, (self._ws,))[0]
        if (seals, end) != (number, last):
            return f"Seal {number + 1} of the history is missing.", 1
        if covered + open_entries != count:
            return "There are entries that no seal covers.", 1
        return None

    def _pages(self, table: str, columns: str, key: str, *, first: object) -> Iterator[tuple[Any, ...]]:
        """Return all rows in the order of a key, a page at a time."""
        select = f"SELECT {columns} FROM {table} WHERE ws = %s AND {key} {{}} %s ORDER BY {key} LIMIT {_PAGE_ROWS}"  # noqa: S608 - constants
        page = self._rows(select.format(">="), (self._ws, first))
        while page:
            yield from page
            page = self._rows(select.format(">"), (self._ws, page[-1][0]))

    def _rows(self, statement: str, values: "Values") -> list[tuple[Any, ...]]:
        return fetch_rows(self._connection, statement, values)


def _root_of(hashes: Sequence[bytes], form: int) -> bytes:
    """Return what a seal of this form says of its entries."""
    return hashlib.sha256(b"".join(hashes)).digest() if form == _JOINED else merkle_root(hashes)


def merkle_root(hashes: Sequence[bytes]) -> bytes:
    """Return the root of a Merkle tree as in RFC 6962: a leaf, a node and a lone leaf cannot be taken for each other."""
    nodes = [hashlib.sha256(b"\x00" + one).digest() for one in hashes]
    while len(nodes) > 1:
        pairs = [hashlib.sha256(b"\x01" + nodes[at] + nodes[at + 1]).digest() for at in range(0, len(nodes) - 1, 2)]
        nodes = [*pairs, nodes[-1]] if len(nodes) % 2 else pairs
    return nodes[0]


def _find_problem(tips: dict[bytes, bytes], row: tuple[Any, ...]) -> str:
    """Say what is wrong with the next row, and move the ends of its chains; empty when nothing is."""
    seq, path, to_path, previous, own, body = row[0], row[2], row[3], row[10], row[11], row[17]
    before = tips.get(path, b"")
    if to_path:
        before = hashlib.sha256(before + tips.get(to_path, b"")).digest()
    if previous != before:
        return f"Entry {seq} does not follow the one before it."
    if own.hex() != ledger_entries.chain_hash(before.hex(), body.encode("utf-8")):
        return f"Entry {seq} was changed: its hash does not match."
    data = from_json(body)
    columns = (*row[:8], int(row[8]), row[9])
    if columns != ledger_entries.columns_of_json(data) or row[12:17] != _other_columns(data):
        return f"Entry {seq} is filed under other words than it says."
    tips[path] = own
    if to_path:
        tips[to_path] = own
    return ""


def _other_columns(data: Json) -> tuple[object, ...]:
    change = data["change"]
    versions = (change[name]["sha256"] if name in change else None for name in ("before", "after", "displaced"))
    hashes = (*versions, change.get("proposal_sha256"))
    return (data["call"]["writer"], *(None if one is None else bytes.fromhex(one) for one in hashes))
