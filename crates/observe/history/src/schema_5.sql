-- What was imported, so that importing it again adds nothing: the fingerprint of the text that another
-- tool printed, whatever the file it stood in, and the runs that came of it.
CREATE TABLE imports (
    fingerprint      TEXT NOT NULL,
    run_id           INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    file             TEXT NOT NULL,     -- as it was named then
    imported_unix_ns NOT NULL,
    PRIMARY KEY (fingerprint, run_id)
) WITHOUT ROWID;
