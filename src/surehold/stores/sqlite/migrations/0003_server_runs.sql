-- Which server processes served a session, for whom, and how they ended: a server of the same parent may go on with it.
CREATE TABLE server_runs (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    parent TEXT NOT NULL, -- the process that started it, as JSON
    roots BLOB NOT NULL,
    server TEXT NOT NULL, -- the process itself, as JSON
    client BLOB NOT NULL,
    session BLOB NOT NULL, -- empty: it was never called
    began TEXT NOT NULL,
    ended TEXT NOT NULL -- empty: it runs, or it died
);
