-- Who wrote a path is asked for before each edit by anchors: it is known without unpacking. NULL: written before this column.
ALTER TABLE entries ADD COLUMN writer TEXT;
