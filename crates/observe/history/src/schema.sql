-- Columns without a type hold unsigned 64-bit numbers: an INTEGER up to 9223372036854775807, above that
-- the number as 20 digits of TEXT. Without a declared type SQLite converts nothing, so both come back
-- exactly; both sort right (text after numbers), and arithmetic takes the text for a (rounded) number.

-- One capture: the counters of all files of a source at one instant.
CREATE TABLE captures (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    source        TEXT NOT NULL,
    taken_unix_ns NOT NULL,             -- wall clock
    clock_ns      NOT NULL,             -- the source's monotonic clock
    label         TEXT,
    files         INTEGER NOT NULL,     -- files in it
    files_changed INTEGER NOT NULL,     -- of those, files with a row of this capture in file_changes
    notes         TEXT NOT NULL,        -- JSON [what a reader must know, ...]
    complete      TEXT                  -- JSON {run, reset}: what first shows later in that epoch began at zero
);
CREATE INDEX captures_by_time ON captures (taken_unix_ns);
CREATE INDEX captures_by_source ON captures (source, id);

-- One file for as long as every capture of its source has it, under one identity and in one epoch:
-- from first_capture_id on, before gone_capture_id. All counters of one row here may be subtracted. Thinning removes captures: the
-- numbers here and in file_changes may be those of captures that are no longer there.
CREATE TABLE files (
    id               INTEGER PRIMARY KEY,
    source           TEXT NOT NULL,
    first_capture_id INTEGER NOT NULL,
    gone_capture_id  INTEGER,           -- the first capture without it; NULL while it is there
    instance         TEXT NOT NULL,
    database_name    TEXT,
    database_id,
    file_id          TEXT NOT NULL,
    kind             TEXT NOT NULL,
    path             TEXT NOT NULL,
    drive            TEXT,
    handle           TEXT,
    epoch            TEXT NOT NULL,
    epoch_reset      TEXT NOT NULL,     -- the last reset of the statistics
    meaning          TEXT NOT NULL,     -- JSON {counts, read_time, write_time, cache}
    object           TEXT,              -- the engine's name of its content; a later name replaces it
    from_zero        INTEGER NOT NULL   -- 1: its counters began at zero after the capture before (captures.complete)
);
-- Of what is there over a stretch: not gone, or gone after its beginning, and of that what began before its end. An index by the
-- beginning alone would be taken for it, and leads through all that ever began.
CREATE INDEX files_by_end ON files (source, gone_capture_id, first_capture_id);

-- Why a figure is not known. The tables of changes have the number, the views the word.
CREATE TABLE reasons (
    id   INTEGER PRIMARY KEY,
    word TEXT NOT NULL UNIQUE
);
INSERT INTO reasons (id, word) VALUES (0, 'not-counted'), (1, 'timing-off'), (2, 'first-sight'), (3, 'restart'),
    (4, 'stats-reset'), (5, 'reopened'), (6, 'lost'), (7, 'counter-fell'), (8, 'identity-changed'), (9, 'gap-too-long'),
    (10, 'no-operations'), (11, 'gone'), (12, 'no-time-passed');

-- The counters of a file, in the captures where they differ from the capture before. A figure that is
-- not known is NULL, with the reason beside it.
CREATE TABLE file_changes (
    file               INTEGER NOT NULL REFERENCES files (id),
    capture_id         INTEGER NOT NULL,
    reads              NOT NULL,
    read_bytes         NOT NULL,
    read_stall_ns,
    read_stall_unknown INTEGER,
    writes             NOT NULL,
    write_bytes        NOT NULL,
    write_stall_ns,
    write_stall_unknown INTEGER,
    syncs,
    syncs_unknown      INTEGER,
    sync_bytes,
    sync_stall_ns,
    sync_stall_unknown INTEGER,
    busy_ns,
    busy_unknown       INTEGER,
    size_bytes,
    size_unknown       INTEGER,
    latencies,                          -- packed as src/packed.rs says
    PRIMARY KEY (file, capture_id)
) WITHOUT ROWID;

-- Changes of files many to a row, where they are not the newest: a third of the space or less. What each column is, and how
-- `packed` is laid out, is drawn in src/blocks.rs; which changes are where, in src/changes.rs.
CREATE TABLE file_blocks (
    id                  INTEGER PRIMARY KEY,
    file                INTEGER NOT NULL REFERENCES files (id),
    first_capture_id    INTEGER NOT NULL,
    last_capture_id     INTEGER NOT NULL,
    changes             INTEGER NOT NULL,
    reads               NOT NULL,
    read_bytes          NOT NULL,
    read_stall_ns,
    read_stall_unknown  INTEGER,
    writes              NOT NULL,
    write_bytes         NOT NULL,
    write_stall_ns,
    write_stall_unknown INTEGER,
    syncs,
    syncs_unknown       INTEGER,
    sync_bytes,
    sync_stall_ns,
    sync_stall_unknown  INTEGER,
    busy_ns,
    busy_unknown        INTEGER,
    size_bytes,
    size_unknown        INTEGER,
    read_unit           INTEGER NOT NULL,
    write_unit          INTEGER NOT NULL,
    widths              TEXT NOT NULL,
    packed              BLOB NOT NULL,
    latencies           BLOB
);
CREATE UNIQUE INDEX file_blocks_by_file ON file_blocks (file, first_capture_id);

-- 0 to 63: the changes of a block, the hexadecimal digits of 8 bytes.
CREATE TABLE block_places (n INTEGER PRIMARY KEY);
WITH RECURSIVE places (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM places WHERE n < 63) INSERT INTO block_places SELECT n FROM places;

-- The changes of every block, one each: where its figures begin in `packed`, then 8 bytes from there on, then the bits.
CREATE VIEW file_block_changes AS
WITH widths AS (
    SELECT n, b.*,
           unicode(substr(b.widths, 1, 1)) - 48 AS w0, unicode(substr(b.widths, 2, 1)) - 48 AS w1, unicode(substr(b.widths, 3, 1)) - 48 AS w2,
           unicode(substr(b.widths, 4, 1)) - 48 AS w3, unicode(substr(b.widths, 5, 1)) - 48 AS w4, unicode(substr(b.widths, 6, 1)) - 48 AS w5,
           unicode(substr(b.widths, 7, 1)) - 48 AS w6, unicode(substr(b.widths, 8, 1)) - 48 AS w7, unicode(substr(b.widths, 9, 1)) - 48 AS w8,
           unicode(substr(b.widths, 10, 1)) - 48 AS w9, unicode(substr(b.widths, 11, 1)) - 48 AS w10, unicode(substr(b.widths, 12, 1)) - 48 AS w11
    FROM file_blocks b JOIN block_places ON n < b.changes
), begins AS (
    SELECT widths.*, n * (w0 + w1 + w2 + w3 + w4 + w5 + w6 + w7 + w8 + w9 + w10 + w11) AS o0
    FROM widths
), figures AS (
    SELECT begins.*,
           (SELECT sum((instr('0123456789ABCDEF', substr(hex(substr(packed, (o0) / 8 + 1, 8)) || '00000000000000', digit.n + 1, 1)) - 1)
                << (60 - 4 * digit.n)) FROM block_places digit WHERE digit.n < 16)
               << ((o0) % 8) >> (64 - w0) & ((1 << w0) - 1) AS f0,
           (SELECT sum((instr('0123456789ABCDEF', substr(hex(substr(packed, (o0 + w0) / 8 + 1, 8)) || '00000000000000', digit.n + 1, 1)) - 1)
                << (60 - 4 * digit.n)) FROM block_places digit WHERE digit.n < 16)
               << ((o0 + w0) % 8) >> (64 - w1) & ((1 << w1) - 1) AS f1,
           (SELECT sum((instr('0123456789ABCDEF', substr(hex(substr(packed, (o0 + w0 + w1) / 8 + 1, 8)) || '00000000000000', digit.n + 1, 1)) - 1)
                << (60 - 4 * digit.n)) FROM block_places digit WHERE digit.n < 16)
               << ((o0 + w0 + w1) % 8) >> (64 - w2) & ((1 << w2) - 1) AS f2,
           (SELECT sum((instr('0123456789ABCDEF', substr(hex(substr(packed, (o0 + w0 + w1 + w2) / 8 + 1, 8)) || '00000000000000', digit.n + 1, 1)) - 1)
                << (60 - 4 * digit.n)) FROM block_places digit WHERE digit.n < 16)
               << ((o0 + w0 + w1 + w2) % 8) >> (64 - w3) & ((1 << w3) - 1) AS f3,
           (SELECT sum((instr('0123456789ABCDEF', substr(hex(substr(packed, (o0 + w0 + w1 + w2 + w3) / 8 + 1, 8)) || '00000000000000', digit.n + 1, 1)) - 1)
                << (60 - 4 * digit.n)) FROM block_places digit WHERE digit.n < 16)
               << ((o0 + w0 + w1 + w2 + w3) % 8) >> (64 - w4) & ((1 << w4) - 1) AS f4,
           (SELECT sum((instr('0123456789ABCDEF', substr(hex(substr(packed, (o0 + w0 + w1 + w2 + w3 + w4) / 8 + 1, 8)) || '00000000000000', digit.n + 1, 1)) - 1)
                << (60 - 4 * digit.n)) FROM block_places digit WHERE digit.n < 16)
               << ((o0 + w0 + w1 + w2 + w3 + w4) % 8) >> (64 - w5) & ((1 << w5) - 1) AS f5,
           (SELECT sum((instr('0123456789ABCDEF', substr(hex(substr(packed, (o0 + w0 + w1 + w2 + w3 + w4 + w5) / 8 + 1, 8)) || '00000000000000', digit.n + 1, 1)) - 1)
                << (60 - 4 * digit.n)) FROM block_places digit WHERE digit.n < 16)
               << ((o0 + w0 + w1 + w2 + w3 + w4 + w5) % 8) >> (64 - w6) & ((1 << w6) - 1) AS f6,
           (SELECT sum((instr('0123456789ABCDEF', substr(hex(substr(packed, (o0 + w0 + w1 + w2 + w3 + w4 + w5 + w6) / 8 + 1, 8)) || '00000000000000', digit.n + 1, 1)) - 1)
                << (60 - 4 * digit.n)) FROM block_places digit WHERE digit.n < 16)
               << ((o0 + w0 + w1 + w2 + w3 + w4 + w5 + w6) % 8) >> (64 - w7) & ((1 << w7) - 1) AS f7,
           (SELECT sum((instr('0123456789ABCDEF', substr(hex(substr(packed, (o0 + w0 + w1 + w2 + w3 + w4 + w5 + w6 + w7) / 8 + 1, 8)) || '00000000000000', digit.n + 1, 1)) - 1)
                << (60 - 4 * digit.n)) FROM block_places digit WHERE digit.n < 16)
               << ((o0 + w0 + w1 + w2 + w3 + w4 + w5 + w6 + w7) % 8) >> (64 - w8) & ((1 << w8) - 1) AS f8,
           (SELECT sum((instr('0123456789ABCDEF', substr(hex(substr(packed, (o0 + w0 + w1 + w2 + w3 + w4 + w5 + w6 + w7 + w8) / 8 + 1, 8)) || '00000000000000', digit.n + 1, 1)) - 1)
                << (60 - 4 * digit.n)) FROM block_places digit WHERE digit.n < 16)
               << ((o0 + w0 + w1 + w2 + w3 + w4 + w5 + w6 + w7 + w8) % 8) >> (64 - w9) & ((1 << w9) - 1) AS f9,
           (SELECT sum((instr('0123456789ABCDEF', substr(hex(substr(packed, (o0 + w0 + w1 + w2 + w3 + w4 + w5 + w6 + w7 + w8 + w9) / 8 + 1, 8)) || '00000000000000', digit.n + 1, 1)) - 1)
                << (60 - 4 * digit.n)) FROM block_places digit WHERE digit.n < 16)
               << ((o0 + w0 + w1 + w2 + w3 + w4 + w5 + w6 + w7 + w8 + w9) % 8) >> (64 - w10) & ((1 << w10) - 1) AS f10,
           (SELECT sum((instr('0123456789ABCDEF', substr(hex(substr(packed, (o0 + w0 + w1 + w2 + w3 + w4 + w5 + w6 + w7 + w8 + w9 + w10) / 8 + 1, 8)) || '00000000000000', digit.n + 1, 1)) - 1)
                << (60 - 4 * digit.n)) FROM block_places digit WHERE digit.n < 16)
               << ((o0 + w0 + w1 + w2 + w3 + w4 + w5 + w6 + w7 + w8 + w9 + w10) % 8) >> (64 - w11) & ((1 << w11) - 1) AS f11
    FROM begins
)
SELECT id AS block, n, file, first_capture_id + f0 AS capture_id,
       reads + f1 AS reads, read_bytes + f2 + read_unit * f1 AS read_bytes,
       read_stall_ns + f3 AS read_stall_ns, read_stall_unknown,
       writes + f4 AS writes, write_bytes + f5 + write_unit * f4 AS write_bytes,
       write_stall_ns + f6 AS write_stall_ns, write_stall_unknown,
       syncs + f7 AS syncs, syncs_unknown, sync_bytes + f8 AS sync_bytes,
       sync_stall_ns + f9 AS sync_stall_ns, sync_stall_unknown,
       busy_ns + f10 AS busy_ns, busy_unknown, size_bytes + f11 AS size_bytes, size_unknown
FROM figures;

-- Every file of every capture, unchanged ones included. `latencies` is NULL where the change lies in a block.
CREATE VIEW file_stats AS
SELECT c.id AS capture_id, c.source, c.taken_unix_ns, c.clock_ns, c.label,
       f.id AS file, f.instance, f.database_name, f.database_id, f.file_id, f.kind, f.path, f.drive,
       f.handle, f.object, f.epoch, f.epoch_reset, f.meaning,
       s.reads, s.read_bytes, s.read_stall_ns, (SELECT word FROM reasons WHERE id = s.read_stall_unknown) AS read_stall_unknown,
       s.writes, s.write_bytes, s.write_stall_ns, (SELECT word FROM reasons WHERE id = s.write_stall_unknown) AS write_stall_unknown,
       s.syncs, (SELECT word FROM reasons WHERE id = s.syncs_unknown) AS syncs_unknown, s.sync_bytes,
       s.sync_stall_ns, (SELECT word FROM reasons WHERE id = s.sync_stall_unknown) AS sync_stall_unknown,
       s.busy_ns, (SELECT word FROM reasons WHERE id = s.busy_unknown) AS busy_unknown,
       s.size_bytes, (SELECT word FROM reasons WHERE id = s.size_unknown) AS size_unknown, s.latencies
FROM captures c
JOIN files f ON f.source = c.source AND f.first_capture_id <= c.id
            AND (f.gone_capture_id IS NULL OR f.gone_capture_id > c.id)
JOIN file_changes s ON s.file = f.id
    AND s.capture_id = (SELECT max(capture_id) FROM file_changes WHERE file = f.id AND capture_id <= c.id)
UNION ALL
SELECT c.id AS capture_id, c.source, c.taken_unix_ns, c.clock_ns, c.label,
       f.id AS file, f.instance, f.database_name, f.database_id, f.file_id, f.kind, f.path, f.drive,
       f.handle, f.object, f.epoch, f.epoch_reset, f.meaning,
       s.reads, s.read_bytes, s.read_stall_ns, (SELECT word FROM reasons WHERE id = s.read_stall_unknown) AS read_stall_unknown,
       s.writes, s.write_bytes, s.write_stall_ns, (SELECT word FROM reasons WHERE id = s.write_stall_unknown) AS write_stall_unknown,
       s.syncs, (SELECT word FROM reasons WHERE id = s.syncs_unknown) AS syncs_unknown, s.sync_bytes,
       s.sync_stall_ns, (SELECT word FROM reasons WHERE id = s.sync_stall_unknown) AS sync_stall_unknown,
       s.busy_ns, (SELECT word FROM reasons WHERE id = s.busy_unknown) AS busy_unknown,
       s.size_bytes, (SELECT word FROM reasons WHERE id = s.size_unknown) AS size_unknown, NULL
FROM captures c
JOIN files f ON f.source = c.source AND f.first_capture_id <= c.id
            AND (f.gone_capture_id IS NULL OR f.gone_capture_id > c.id)
JOIN file_block_changes s ON s.block = (SELECT id FROM file_blocks WHERE file = f.id AND first_capture_id <= c.id
                                        ORDER BY first_capture_id DESC LIMIT 1)
    AND s.n = (SELECT max(n) FROM file_block_changes WHERE block = s.block AND capture_id <= c.id)
WHERE NOT EXISTS (SELECT 1 FROM file_changes WHERE file = f.id AND capture_id <= c.id);

-- One wait event for as long as every capture of its source has it in one epoch, as `files` for files.
CREATE TABLE wait_events (
    id               INTEGER PRIMARY KEY,
    source           TEXT NOT NULL,
    first_capture_id INTEGER NOT NULL,
    gone_capture_id  INTEGER,           -- the first capture without it; NULL while it is there
    instance         TEXT NOT NULL,
    event            TEXT NOT NULL,     -- in the engine's word
    class            TEXT NOT NULL,     -- in ours
    epoch            TEXT NOT NULL,
    epoch_reset      TEXT NOT NULL,
    from_zero        INTEGER NOT NULL
);
CREATE INDEX wait_events_by_end ON wait_events (source, gone_capture_id, first_capture_id);

-- Its counters, in the captures where they differ from the capture before.
CREATE TABLE wait_changes (
    wait_event    INTEGER NOT NULL REFERENCES wait_events (id),
    capture_id    INTEGER NOT NULL,
    waits,
    waits_unknown INTEGER,
    wait_ns,
    wait_unknown  INTEGER,
    PRIMARY KEY (wait_event, capture_id)
) WITHOUT ROWID;

-- Every wait event of every capture, unchanged ones included.
CREATE VIEW wait_stats AS
SELECT c.id AS capture_id, c.source, c.taken_unix_ns, w.id AS wait_event, w.instance, w.event, w.class, w.epoch,
       w.epoch_reset, s.waits, (SELECT word FROM reasons WHERE id = s.waits_unknown) AS waits_unknown,
       s.wait_ns, (SELECT word FROM reasons WHERE id = s.wait_unknown) AS wait_unknown
FROM captures c
JOIN wait_events w ON w.source = c.source AND w.first_capture_id <= c.id
                  AND (w.gone_capture_id IS NULL OR w.gone_capture_id > c.id)
JOIN wait_changes s ON s.wait_event = w.id
    AND s.capture_id = (SELECT max(capture_id) FROM wait_changes WHERE wait_event = w.id AND capture_id <= c.id);

-- When a recorded source gave nothing, and why.
CREATE TABLE gaps (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    source        TEXT NOT NULL,
    from_unix_ns  NOT NULL,
    until_unix_ns,                      -- NULL while it lasts, or where the recorder ended before
    reason        TEXT NOT NULL
);

-- How far the captures of a source are thinned to one an `every_ns`: up to that capture, which stays.
CREATE TABLE thinned (
    source     TEXT NOT NULL,
    every_ns   INTEGER NOT NULL,
    capture_id INTEGER NOT NULL,
    PRIMARY KEY (source, every_ns)
) WITHOUT ROWID;

-- What the captures of a recorded source are called: the recorder has another name for it before it was ever reached.
CREATE TABLE recorded (
    name   TEXT PRIMARY KEY,
    source TEXT NOT NULL
) WITHOUT ROWID;

-- One command that ran load: its runs belong together.
CREATE TABLE sessions (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    started_unix_ns NOT NULL
);

-- Each workload of a load run.
CREATE TABLE runs (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    started_unix_ns NOT NULL,
    target          TEXT NOT NULL,
    workload        TEXT NOT NULL,      -- "random read 8 KiB"
    outstanding     INTEGER NOT NULL,   -- over all threads
    threads         INTEGER NOT NULL,
    elapsed_ns      NOT NULL,
    ios             NOT NULL,
    failed          NOT NULL,
    iops            REAL NOT NULL,
    mib_per_s       REAL NOT NULL,
    latency_ns      REAL,               -- mean; NULL without I/Os
    interrupted     INTEGER NOT NULL,
    summary         TEXT NOT NULL,
    json            TEXT NOT NULL,
    session         INTEGER,            -- the command that ran it with others; NULL for a single run
    phase           TEXT,               -- "checkpoint burst"; NULL where it has no name
    name            TEXT,               -- of the workload, "oltp"; NULL where it has none
    tool            TEXT                -- "fio-3.33" where another tool ran it; NULL: headroom
);
CREATE INDEX runs_by_time ON runs (started_unix_ns);
CREATE INDEX runs_by_session ON runs (session);

CREATE TABLE capabilities (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    measured_unix_ns NOT NULL,
    target           TEXT NOT NULL,
    mount            TEXT,
    device_number    TEXT,              -- of the device the file system is on, as are the next three
    device_name      TEXT,
    device_bytes,
    backing_file     TEXT,
    iops_max         REAL,              -- the highest of all curves
    summary          TEXT NOT NULL,
    json             TEXT NOT NULL
);
CREATE INDEX capabilities_by_time ON capabilities (measured_unix_ns);
CREATE INDEX capabilities_by_device ON capabilities (device_number, measured_unix_ns);

CREATE TABLE verdicts (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    judged_unix_ns NOT NULL,
    target         TEXT NOT NULL,
    source         TEXT NOT NULL,
    verdict        TEXT NOT NULL,
    confidence     TEXT NOT NULL,
    utilisation    REAL,
    headroom       REAL,
    summary        TEXT NOT NULL,
    json           TEXT NOT NULL,       -- the verdict
    report         TEXT NOT NULL        -- everything that was shown with it
);
CREATE INDEX verdicts_by_time ON verdicts (judged_unix_ns);

-- Everything kept, one line each; session groups runs.
CREATE VIEW entries AS
SELECT 'capture' AS kind, id, taken_unix_ns AS at_unix_ns, source AS target,
       files || ' files, ' || files_changed || ' changed' || coalesce(' (' || label || ')', '') AS summary,
       NULL AS session
FROM captures
UNION ALL SELECT 'run', id, started_unix_ns, target, summary, session FROM runs
UNION ALL SELECT 'capability', id, measured_unix_ns, target, summary, NULL FROM capabilities
UNION ALL SELECT 'verdict', id, judged_unix_ns, target, verdict || ': ' || summary, NULL FROM verdicts;

-- Files that Headroom made to run load on.
CREATE TABLE test_files (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    path            NOT NULL,           -- TEXT, or a BLOB where the name is no UTF-8
    bytes           NOT NULL,
    created_unix_ns NOT NULL,
    removed_unix_ns,
    mark            TEXT                -- of a lasting file whose file system takes no extended attributes
);
CREATE UNIQUE INDEX test_files_present ON test_files (path) WHERE removed_unix_ns IS NULL;

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

-- The baseline that later results are compared with: one capability, or the runs of a group. Setting it
-- replaces the one before.
CREATE TABLE baseline (
    position    INTEGER PRIMARY KEY,    -- 1, 2, 3 ... among the runs of the group
    kind        TEXT NOT NULL,          -- run or capability
    entry_id    INTEGER NOT NULL,
    set_unix_ns NOT NULL
);

-- What was imported, so that importing it again adds nothing: the fingerprint of the text that another
-- tool printed, whatever the file it stood in, and the runs that came of it.
CREATE TABLE imports (
    fingerprint      TEXT NOT NULL,
    run_id           INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    file             TEXT NOT NULL,     -- as it was named then
    imported_unix_ns NOT NULL,
    PRIMARY KEY (fingerprint, run_id)
) WITHOUT ROWID;

-- What the agent judged: a database on a volume.
CREATE TABLE subjects (
    id            INTEGER PRIMARY KEY,
    mount         TEXT NOT NULL,
    database_name TEXT NOT NULL,        -- its source, without credentials
    UNIQUE (mount, database_name)
);

-- Each verdict from when it was another one. NULL: nothing was known from then on.
CREATE TABLE verdict_changes (
    subject    INTEGER NOT NULL REFERENCES subjects (id),
    at_unix_ns NOT NULL,
    verdict    TEXT,
    PRIMARY KEY (subject, at_unix_ns)
) WITHOUT ROWID;

-- The figures of each minute, small integers, since there are many rows. NULL: unknown. A minute without a row was not watched.
CREATE TABLE judged_minutes (
    subject                INTEGER NOT NULL REFERENCES subjects (id),
    minute                 INTEGER NOT NULL,    -- minutes since 1970, at its end
    utilisation_millionths INTEGER,
    outstanding_millionths INTEGER,
    latency_ns             INTEGER,             -- of reads or commits, whichever sessions wait for longer than expected
    expected_ns            INTEGER,
    iops_thousandths       INTEGER,
    read_bytes_per_second  INTEGER,
    written_bytes_per_second INTEGER,
    PRIMARY KEY (subject, minute)
) WITHOUT ROWID;

CREATE TABLE incidents (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    subject         INTEGER NOT NULL REFERENCES subjects (id),
    verdict         TEXT NOT NULL,
    started_unix_ns NOT NULL,
    ended_unix_ns,                              -- NULL while it is open
    json            TEXT NOT NULL,
    UNIQUE (subject, started_unix_ns)
);
CREATE INDEX incidents_by_time ON incidents (started_unix_ns);
CREATE INDEX incidents_open ON incidents (id) WHERE ended_unix_ns IS NULL;

-- What each receiver of notifications was given last of an incident, so that nothing is sent twice.
CREATE TABLE notified (
    receiver TEXT NOT NULL,                     -- its name, without credentials
    incident INTEGER NOT NULL,
    stage    TEXT NOT NULL,
    PRIMARY KEY (receiver, incident)
) WITHOUT ROWID;

-- What each storage was seen to give, the newest state of it.
CREATE TABLE seen (
    storage         TEXT PRIMARY KEY,           -- what identifies it, as JSON
    updated_unix_ns NOT NULL,
    json            TEXT NOT NULL
) WITHOUT ROWID;

-- What a gentle measurement of each storage knows so far, until it is complete.
CREATE TABLE gentle (
    storage         TEXT PRIMARY KEY,           -- what identifies it, as JSON
    updated_unix_ns NOT NULL,
    json            TEXT NOT NULL
) WITHOUT ROWID;

-- Limits that were set or lifted, and restarts of servers, drawn over time.
CREATE TABLE marks (
    subject    INTEGER NOT NULL REFERENCES subjects (id),
    at_unix_ns NOT NULL,
    kind       TEXT NOT NULL,
    text       TEXT NOT NULL,
    PRIMARY KEY (subject, at_unix_ns, kind, text)
) WITHOUT ROWID;
