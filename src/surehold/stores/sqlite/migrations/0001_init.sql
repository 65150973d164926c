-- Paths and other people's strings are bytes (UTF-8 with surrogate escapes): a file name need not be text.

CREATE TABLE entries (
    seq INTEGER PRIMARY KEY,
    change_id BLOB NOT NULL,
    path BLOB NOT NULL,
    to_path BLOB NOT NULL,
    session BLOB NOT NULL,
    agent BLOB NOT NULL,
    operation TEXT NOT NULL,
    undoes BLOB NOT NULL,
    ok INTEGER NOT NULL,
    timestamp TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL,
    body TEXT NOT NULL -- the canonical JSON that the hash covers; the columns above repeat parts of it for searching
);
CREATE INDEX entries_by_change ON entries (change_id);
CREATE INDEX entries_by_path ON entries (path);
CREATE INDEX entries_by_to_path ON entries (to_path) WHERE to_path != x'';
CREATE INDEX entries_by_undoes ON entries (undoes) WHERE undoes != x'';
CREATE INDEX entries_by_session ON entries (session) WHERE session != x'';

CREATE TRIGGER entries_are_never_changed BEFORE UPDATE ON entries BEGIN
    SELECT RAISE(ABORT, 'the ledger only grows');
END;
CREATE TRIGGER entries_are_never_removed BEFORE DELETE ON entries BEGIN
    SELECT RAISE(ABORT, 'the ledger only grows');
END;

-- Where the chain ends; without it a cut tail would look like a shorter history.
CREATE TABLE tip (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL
);
INSERT INTO tip VALUES (1, 0, '');

CREATE TABLE heads (
    path BLOB PRIMARY KEY,
    version TEXT, -- NULL: nothing is there
    writer TEXT NOT NULL,
    seq INTEGER NOT NULL,
    timestamp TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE versions (
    path BLOB NOT NULL,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (path, sha256)
) WITHOUT ROWID;

-- A handful of rows at any time, each gone within milliseconds: an index would only be one more page to write.
CREATE TABLE intents (
    number INTEGER PRIMARY KEY, -- the order in which they were opened
    id BLOB NOT NULL,
    idempotency_key BLOB NOT NULL,
    expires REAL NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE locks (
    path BLOB PRIMARY KEY,
    intent BLOB NOT NULL
) WITHOUT ROWID;

-- Calls that were finished, by their idempotency key.
CREATE TABLE answers (
    idempotency_key BLOB PRIMARY KEY,
    change_id BLOB NOT NULL,
    timestamp TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE blobs (
    sha256 TEXT PRIMARY KEY,
    size INTEGER NOT NULL,
    base TEXT, -- NULL: unpacks alone
    depth INTEGER NOT NULL,
    packed INTEGER NOT NULL,
    stored TEXT NOT NULL,
    data BLOB -- NULL: in a file below blobs/
);

CREATE TABLE trash (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    path BLOB NOT NULL,
    version TEXT NOT NULL,
    change_id BLOB NOT NULL,
    trashed TEXT NOT NULL,
    agent BLOB NOT NULL,
    session BLOB NOT NULL,
    state TEXT NOT NULL
);
CREATE INDEX trash_by_change ON trash (change_id) WHERE state = 'kept';

CREATE TABLE sessions (
    id BLOB PRIMARY KEY,
    agent BLOB NOT NULL,
    opened TEXT NOT NULL,
    used TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE sightings (
    number INTEGER PRIMARY KEY,
    session BLOB NOT NULL,
    path BLOB NOT NULL,
    sha256 TEXT NOT NULL,
    spans TEXT NOT NULL,
    whole INTEGER NOT NULL,
    with_hashes INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    shown TEXT NOT NULL,
    UNIQUE (session, path, sha256)
);
