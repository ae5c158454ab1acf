-- Test matrices. What is run follows from the definition alone; the rows say what of it is done.
CREATE TABLE matrices (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    name            TEXT NOT NULL,
    created_unix_ns NOT NULL,
    definition      TEXT NOT NULL,      -- JSON
    spent_ns        NOT NULL,           -- time that went into it: test files, and runs kept or not
    file_bytes,                         -- size of its test files, once they were made
    owner           TEXT                -- the process that works at it, "boot pid start"; NULL: none
);

-- One run of one point of a matrix. A row becomes 'done' in the transaction that adds its run: whatever is
-- killed when, a run is there once or not at all.
CREATE TABLE matrix_points (
    matrix        INTEGER NOT NULL REFERENCES matrices (id),
    point         INTEGER NOT NULL,     -- number of the point, as listed by the definition
    repeat        INTEGER NOT NULL,     -- from 0 on
    seed          NOT NULL,
    state         TEXT NOT NULL CHECK (state IN ('planned', 'running', 'done', 'skipped')),
    reason        TEXT,                 -- why it was skipped
    run           INTEGER UNIQUE REFERENCES runs (id),
    took_ns,                            -- warm-up, measured part and everything around them
    PRIMARY KEY (matrix, point, repeat),
    CHECK ((state = 'done') = (run IS NOT NULL)),
    CHECK ((state = 'skipped') = (reason IS NOT NULL))
) WITHOUT ROWID;
