-- What each storage was seen to give, the newest state of it.
CREATE TABLE seen (
    storage         TEXT PRIMARY KEY,           -- what identifies it, as JSON
    updated_unix_ns NOT NULL,
    json            TEXT NOT NULL
) WITHOUT ROWID;
