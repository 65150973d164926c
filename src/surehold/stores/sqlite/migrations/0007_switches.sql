-- Which changes one change took back or made again, when they were several; the column `undoes` of entries names a single one.
CREATE TABLE switches (
    change_id BLOB NOT NULL,
    made_by BLOB NOT NULL,
    PRIMARY KEY (change_id, made_by)
) WITHOUT ROWID;
