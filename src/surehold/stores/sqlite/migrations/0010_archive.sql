-- Old entries, sealed 256 at a time: a block of the archive replaces their rows, and is compressed as one.
CREATE TABLE archive (
    block INTEGER PRIMARY KEY, -- seq / 256, as in entry_words; blocks are sealed in order, from 0 on
    hash BLOB NOT NULL, -- of the last entry, where the chain goes on
    oldest TEXT NOT NULL, -- the first and the last moment of its entries
    newest TEXT NOT NULL,
    size INTEGER NOT NULL, -- of the bodies of its entries, one line each
    sha256 BLOB NOT NULL, -- of the packed bytes
    data BLOB NOT NULL
);
CREATE TRIGGER archive_is_never_changed BEFORE UPDATE ON archive BEGIN
    SELECT RAISE(ABORT, 'the ledger only grows');
END;
CREATE TRIGGER archive_is_never_removed BEFORE DELETE ON archive BEGIN
    SELECT RAISE(ABORT, 'the ledger only grows');
END;
CREATE TRIGGER archive_has_no_gap BEFORE INSERT ON archive
WHEN NEW.block != COALESCE((SELECT MAX(block) FROM archive), -1) + 1 BEGIN
    SELECT RAISE(ABORT, 'the archive has no gap');
END;

-- Only what is in the archive may go.
DROP TRIGGER entries_are_never_removed;
CREATE TRIGGER entries_are_never_removed BEFORE DELETE ON entries
WHEN OLD.seq >> 8 > COALESCE((SELECT MAX(block) FROM archive), -1) BEGIN
    SELECT RAISE(ABORT, 'the ledger only grows');
END;

-- Which blocks may speak of a change, a path or a directory: the first four bytes of the sha256 of its name.
CREATE TABLE archive_words (
    word INTEGER NOT NULL,
    block INTEGER NOT NULL,
    PRIMARY KEY (word, block)
) WITHOUT ROWID;

-- The first and the last archived entry in which a writer changed a path.
CREATE TABLE archive_writers (
    path BLOB NOT NULL,
    writer TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (path, writer)
) WITHOUT ROWID;
