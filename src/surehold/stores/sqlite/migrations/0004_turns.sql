-- Which requests of a person a session had; entries name them by session and id.
CREATE TABLE turns (
    number INTEGER PRIMARY KEY,
    session BLOB NOT NULL,
    id BLOB NOT NULL,
    title BLOB NOT NULL,
    began TEXT NOT NULL,
    UNIQUE (session, id)
);
