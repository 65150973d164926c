-- Who wrote a path is asked for before each edit by anchors: one row for each writer, however many entries there are.
CREATE TABLE path_writers (
    path BLOB NOT NULL,
    writer TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL, -- the last entry before another writer's; the head of the path tells whether there is a later one
    PRIMARY KEY (path, writer)
) WITHOUT ROWID;
INSERT INTO path_writers (path, writer, first, last) SELECT path, writer, MIN(seq), MAX(seq) FROM (
    SELECT path, COALESCE(writer, writer_of(seq, change_id, path, to_path, session, agent, timestamp, body)) AS writer, seq
        FROM entries WHERE ok = 1 AND path != x''
    UNION ALL
    SELECT to_path, COALESCE(writer, writer_of(seq, change_id, path, to_path, session, agent, timestamp, body)), seq
        FROM entries WHERE ok = 1 AND to_path != x''
    UNION ALL
    SELECT path, writer, first FROM archive_writers
    UNION ALL
    SELECT path, writer, last FROM archive_writers
) GROUP BY path, writer;
DROP TABLE archive_writers;
