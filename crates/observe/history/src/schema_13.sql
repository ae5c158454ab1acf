-- Limits that were set or lifted, and restarts of servers, drawn over time.
CREATE TABLE marks (
    subject    INTEGER NOT NULL REFERENCES subjects (id),
    at_unix_ns NOT NULL,
    kind       TEXT NOT NULL,
    text       TEXT NOT NULL,
    PRIMARY KEY (subject, at_unix_ns, kind, text)
) WITHOUT ROWID;
