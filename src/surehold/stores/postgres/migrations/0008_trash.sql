-- The trash is read a page at a time.
CREATE INDEX trash_by_number ON trash (ws, state, number);
