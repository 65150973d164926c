-- An intent is found by its id or its key, and its owner is known, without reading its body: there may be a thousand of them.
CREATE TABLE intents_with_owners (
    number INTEGER PRIMARY KEY, -- the order in which they were opened
    id BLOB NOT NULL UNIQUE,
    idempotency_key BLOB NOT NULL,
    expires REAL NOT NULL,
    owner TEXT NOT NULL DEFAULT '', -- the process, as JSON; empty: only its lease tells whether it is dead
    body TEXT NOT NULL
);
INSERT INTO intents_with_owners (number, id, idempotency_key, expires, owner, body)
    SELECT number, id, idempotency_key, expires, json_extract(body, '$.owner'), body FROM intents;
DROP TABLE intents;
ALTER TABLE intents_with_owners RENAME TO intents;
CREATE INDEX intents_by_key ON intents (idempotency_key) WHERE idempotency_key != x'';
