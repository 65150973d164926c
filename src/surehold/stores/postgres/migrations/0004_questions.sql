-- Questions that wait for a person: asked by one process, shown and answered by any.
CREATE TABLE questions (
    ws integer NOT NULL,
    id text NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    kind text NOT NULL, -- waiting, parked or ended
    owner text NOT NULL, -- the process that asks, as JSON
    asked timestamptz NOT NULL,
    expires timestamptz NOT NULL,
    renewed timestamptz NOT NULL,
    facts text NOT NULL,
    opened integer[] NOT NULL DEFAULT '{}',
    answer text NOT NULL DEFAULT '', -- empty: there is none yet
    body bytea NOT NULL,
    PRIMARY KEY (ws, id)
);

-- The mode in which a person allowed all further changes of a session; empty: they did not.
ALTER TABLE sessions ADD COLUMN agreed text NOT NULL DEFAULT '';
