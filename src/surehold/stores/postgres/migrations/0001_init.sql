-- The state of many workspaces in one schema. The number of the workspace comes first in every key.
-- Paths and other people's strings are bytes (UTF-8 with surrogate escapes): a file name need not be text, nor free of NUL.

CREATE TABLE workspaces (
    ws integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    root text NOT NULL, -- where it was opened first, and on which host
    host text NOT NULL,
    created timestamptz NOT NULL DEFAULT clock_timestamp(),
    seals bigint NOT NULL DEFAULT 0,
    seal bytea NOT NULL DEFAULT '', -- the hash of the last seal
    sealed timestamptz NOT NULL DEFAULT '-infinity'
);

-- One row per path: the end of its chain, what the ledger last knew of it, and which open intent holds it.
CREATE TABLE paths (
    ws integer NOT NULL,
    path bytea NOT NULL,
    tip bytea NOT NULL DEFAULT '',
    intent bytea,
    seq bigint, -- NULL: the ledger knows nothing of the file
    version text, -- NULL: nothing is there
    sha256 text NOT NULL DEFAULT '',
    writer text,
    timestamp text COLLATE "C",
    PRIMARY KEY (ws, path)
) WITH (fillfactor = 70);

CREATE SEQUENCE entry_numbers;

-- Entries of one path have rising numbers: a number is drawn while the row of the path is locked.
CREATE TABLE entries (
    ws integer NOT NULL,
    seq bigint NOT NULL,
    change_id bytea NOT NULL,
    path bytea NOT NULL,
    to_path bytea NOT NULL,
    session bytea NOT NULL,
    agent bytea NOT NULL,
    operation text NOT NULL,
    undoes bytea NOT NULL,
    ok boolean NOT NULL,
    timestamp text COLLATE "C" NOT NULL,
    previous bytea NOT NULL,
    hash bytea NOT NULL,
    writer text NOT NULL,
    before bytea,
    after bytea,
    displaced bytea,
    proposal bytea,
    body text NOT NULL, -- the canonical JSON that the hash covers; the columns above repeat parts of it for searching
    PRIMARY KEY (ws, seq)
);
CREATE INDEX entries_by_change ON entries (ws, change_id);
CREATE INDEX entries_by_path ON entries (ws, path, seq);
CREATE INDEX entries_by_to_path ON entries (ws, to_path, seq) WHERE to_path <> '';
CREATE INDEX entries_by_undoes ON entries (ws, undoes) WHERE undoes <> '';
CREATE INDEX entries_by_session ON entries (ws, session, seq) WHERE session <> '';
CREATE INDEX entries_by_agent ON entries (ws, agent) WHERE agent <> '';
CREATE INDEX entries_by_operation ON entries (ws, operation, seq);

-- Entries that no seal covers yet, and the seals: each has a root over the hashes of its entries, and the seal before it.
CREATE TABLE unsealed (
    ws integer NOT NULL,
    seq bigint NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (ws, seq)
);
CREATE TABLE seals (
    ws integer NOT NULL,
    number bigint NOT NULL,
    moment text COLLATE "C" NOT NULL,
    seqs bigint[] NOT NULL,
    root bytea NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (ws, number)
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the ledger only grows' USING ERRCODE = 'SH001';
END $$;
CREATE TRIGGER entries_only_grow BEFORE UPDATE OR DELETE ON entries FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER entries_are_not_emptied BEFORE TRUNCATE ON entries FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER seals_only_grow BEFORE UPDATE OR DELETE ON seals FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER seals_are_not_emptied BEFORE TRUNCATE ON seals FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE intents (
    ws integer NOT NULL,
    id bytea NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY, -- the order in which they were opened
    key bytea NOT NULL,
    expires timestamptz NOT NULL,
    owner text NOT NULL,
    paths bytea[] NOT NULL,
    versions bytea[] NOT NULL, -- the bytes it speaks of
    body text NOT NULL,
    PRIMARY KEY (ws, id)
);
CREATE UNIQUE INDEX intents_by_key ON intents (ws, key) WHERE key <> '';

-- Calls that were finished, by their idempotency key.
CREATE TABLE answers (
    ws integer NOT NULL,
    key bytea NOT NULL,
    change_id bytea NOT NULL,
    timestamp text COLLATE "C" NOT NULL,
    PRIMARY KEY (ws, key)
);

CREATE TABLE blobs (
    ws integer NOT NULL,
    sha256 bytea NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    size bigint NOT NULL,
    base bytea, -- NULL: unpacks alone
    depth integer NOT NULL,
    packed bigint NOT NULL,
    stored timestamptz NOT NULL,
    data bytea, -- NULL: in the blob store
    object text, -- what it is called there
    PRIMARY KEY (ws, sha256)
);
ALTER TABLE blobs ALTER COLUMN data SET STORAGE EXTERNAL; -- packed already
CREATE INDEX blobs_by_base ON blobs (ws, base) WHERE base IS NOT NULL;
CREATE INDEX blobs_by_number ON blobs (ws, number);

CREATE TABLE trash (
    ws integer NOT NULL,
    id bytea NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    path bytea NOT NULL,
    version text NOT NULL,
    change_id bytea NOT NULL,
    trashed text COLLATE "C" NOT NULL,
    agent bytea NOT NULL,
    session bytea NOT NULL,
    state text NOT NULL,
    PRIMARY KEY (ws, id)
);
CREATE INDEX trash_by_change ON trash (ws, change_id) WHERE state = 'kept';

-- Which changes one change took back or made again, when they were several.
CREATE TABLE switches (
    ws integer NOT NULL,
    change_id bytea NOT NULL,
    made_by bytea NOT NULL,
    PRIMARY KEY (ws, change_id, made_by)
);

CREATE TABLE sessions (
    ws integer NOT NULL,
    id bytea NOT NULL,
    agent bytea NOT NULL,
    opened text COLLATE "C" NOT NULL,
    used text COLLATE "C" NOT NULL,
    PRIMARY KEY (ws, id)
);
CREATE TABLE turns (
    ws integer NOT NULL,
    session bytea NOT NULL,
    id bytea NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    title bytea NOT NULL,
    began text COLLATE "C" NOT NULL,
    PRIMARY KEY (ws, session, id)
);

-- What is lost of it in a crash of the database is read again by its agents.
CREATE UNLOGGED TABLE sightings (
    ws integer NOT NULL,
    session bytea NOT NULL,
    path bytea NOT NULL,
    sha256 text NOT NULL,
    number bigint NOT NULL,
    spans text NOT NULL,
    whole boolean NOT NULL,
    anchored text NOT NULL,
    seq bigint NOT NULL,
    shown text COLLATE "C" NOT NULL,
    PRIMARY KEY (ws, session, path, sha256)
);
CREATE SEQUENCE sighting_numbers;

CREATE TABLE server_runs (
    ws integer NOT NULL,
    id bytea NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    parent text NOT NULL,
    roots bytea NOT NULL,
    server text NOT NULL,
    client bytea NOT NULL,
    session bytea NOT NULL,
    began text COLLATE "C" NOT NULL,
    ended text COLLATE "C" NOT NULL,
    PRIMARY KEY (ws, id)
);
