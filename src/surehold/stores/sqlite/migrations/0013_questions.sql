-- Questions that wait for a person: asked by one process, shown and answered by any. Moments are seconds.
CREATE TABLE questions (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL, -- waiting, parked or ended
    owner TEXT NOT NULL, -- the process that asks, as JSON
    asked REAL NOT NULL,
    expires REAL NOT NULL,
    renewed REAL NOT NULL,
    facts TEXT NOT NULL,
    opened TEXT NOT NULL DEFAULT '[]',
    answer TEXT NOT NULL DEFAULT '', -- empty: there is none yet
    body BLOB NOT NULL
);

-- The mode in which a person allowed all further changes of a session; empty: they did not.
ALTER TABLE sessions ADD COLUMN agreed TEXT NOT NULL DEFAULT '';
