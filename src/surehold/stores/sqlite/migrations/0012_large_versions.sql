-- Large versions may be in a blob store: the name of the object there. Its depth says that nothing is packed against it.
ALTER TABLE blobs ADD COLUMN object TEXT;

-- What tells the objects of this history from those of others in the same bucket.
CREATE TABLE identity (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    name TEXT NOT NULL
);
INSERT INTO identity VALUES (1, lower(hex(randomblob(16))));
