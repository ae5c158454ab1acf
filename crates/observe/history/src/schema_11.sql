-- What a gentle measurement of each storage knows so far, until it is complete.
CREATE TABLE gentle (
    storage         TEXT PRIMARY KEY,           -- what identifies it, as JSON
    updated_unix_ns NOT NULL,
    json            TEXT NOT NULL
) WITHOUT ROWID;
