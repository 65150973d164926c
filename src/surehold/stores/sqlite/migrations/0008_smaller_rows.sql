-- An edit writes fewer and smaller rows: entries are packed from here on (earlier ones stay as they are), hashes are bytes.

-- Which blocks of 256 entries speak of a session, an agent or an operation: one row per block instead of one per entry.
CREATE TABLE entry_words (
    kind TEXT NOT NULL, -- the column of entries
    word BLOB NOT NULL,
    block INTEGER NOT NULL, -- seq / 256
    PRIMARY KEY (kind, word, block)
) WITHOUT ROWID;
INSERT INTO entry_words SELECT DISTINCT 'session', session, seq >> 8 FROM entries WHERE session != x'';
INSERT INTO entry_words SELECT DISTINCT 'agent', agent, seq >> 8 FROM entries WHERE agent != x'';
INSERT INTO entry_words SELECT DISTINCT 'operation', CAST(operation AS BLOB), seq >> 8 FROM entries;
DROP INDEX entries_by_session;
DROP INDEX entries_by_agent;
DROP INDEX entries_by_operation;

-- The entries of a path say which versions it had; that is asked for rarely.
DROP TABLE versions;

CREATE TABLE intents_by_id (
    id BLOB PRIMARY KEY,
    opened INTEGER NOT NULL, -- the moment, as microseconds since 1970: the order in which they were opened
    idempotency_key BLOB NOT NULL,
    expires REAL NOT NULL,
    owner TEXT NOT NULL, -- the process, as JSON; empty: only its lease tells whether it is dead
    body TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO intents_by_id SELECT id, number, idempotency_key, expires, owner, body FROM intents;
DROP TABLE intents;
ALTER TABLE intents_by_id RENAME TO intents;
CREATE INDEX intents_by_key ON intents (idempotency_key) WHERE idempotency_key != x'';

CREATE TABLE small_blobs (
    sha256 BLOB NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    base BLOB, -- NULL: unpacks alone
    depth INTEGER NOT NULL,
    packed INTEGER NOT NULL, -- how many bytes it takes, with the name of its base
    stored INTEGER NOT NULL, -- microseconds since 1970
    data BLOB -- without the name of its base; NULL: in a file below blobs/
);
INSERT INTO small_blobs (rowid, sha256, size, base, depth, packed, stored, data)
    SELECT rowid, from_hex(sha256), size, from_hex(base), depth, packed, microseconds(stored), without_base(data, base)
    FROM blobs ORDER BY rowid;
DROP TABLE blobs;
ALTER TABLE small_blobs RENAME TO blobs;
