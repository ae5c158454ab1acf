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
    files_changed INTEGER NOT NULL      -- of those, files with a row of this capture in file_changes
);
CREATE INDEX captures_by_time ON captures (taken_unix_ns);
CREATE INDEX captures_by_source ON captures (source, id);

-- One file for as long as every capture of its source has it, under one identity and in one epoch:
-- from first_capture_id on, before gone_capture_id. All counters of one row here may be subtracted.
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
    epoch            TEXT NOT NULL
);
CREATE INDEX files_by_end ON files (source, gone_capture_id);

-- The counters of a file, in the captures where they differ from the capture before. A figure that is
-- not known is NULL, with the reason beside it.
CREATE TABLE file_changes (
    file               INTEGER NOT NULL REFERENCES files (id),
    capture_id         INTEGER NOT NULL,
    reads              NOT NULL,
    read_bytes         NOT NULL,
    read_stall_ns,
    read_stall_unknown TEXT,
    writes             NOT NULL,
    write_bytes        NOT NULL,
    write_stall_ns,
    write_stall_unknown TEXT,
    syncs,
    syncs_unknown      TEXT,
    sync_bytes,
    sync_stall_ns,
    sync_stall_unknown TEXT,
    busy_ns,
    busy_unknown       TEXT,
    size_bytes,
    size_unknown       TEXT,
    latencies          TEXT,            -- JSON {read, write, sync: [[bucket, count], ...]}
    PRIMARY KEY (file, capture_id)
) WITHOUT ROWID;

-- Every file of every capture, unchanged ones included.
CREATE VIEW file_stats AS
SELECT c.id AS capture_id, c.source, c.taken_unix_ns, c.clock_ns, c.label,
       f.id AS file, f.instance, f.database_name, f.database_id, f.file_id, f.kind, f.path, f.drive,
       f.handle, f.epoch,
       s.reads, s.read_bytes, s.read_stall_ns, s.read_stall_unknown,
       s.writes, s.write_bytes, s.write_stall_ns, s.write_stall_unknown,
       s.syncs, s.syncs_unknown, s.sync_bytes, s.sync_stall_ns, s.sync_stall_unknown,
       s.busy_ns, s.busy_unknown,
       s.size_bytes, s.size_unknown, s.latencies
FROM captures c
JOIN files f ON f.source = c.source AND f.first_capture_id <= c.id
            AND (f.gone_capture_id IS NULL OR f.gone_capture_id > c.id)
JOIN file_changes s ON s.file = f.id
    AND s.capture_id = (SELECT max(capture_id) FROM file_changes WHERE file = f.id AND capture_id <= c.id);

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
    json            TEXT NOT NULL
);
CREATE INDEX runs_by_time ON runs (started_unix_ns);

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

-- Everything kept, one line each.
CREATE VIEW entries AS
SELECT 'capture' AS kind, id, taken_unix_ns AS at_unix_ns, source AS target,
       files || ' files, ' || files_changed || ' changed' || coalesce(' (' || label || ')', '') AS summary
FROM captures
UNION ALL SELECT 'run', id, started_unix_ns, target, summary FROM runs
UNION ALL SELECT 'capability', id, measured_unix_ns, target, summary FROM capabilities
UNION ALL SELECT 'verdict', id, judged_unix_ns, target, verdict || ': ' || summary FROM verdicts;

-- Files that Headroom made to run load on.
CREATE TABLE test_files (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    path            NOT NULL,           -- TEXT, or a BLOB where the name is no UTF-8
    bytes           NOT NULL,
    created_unix_ns NOT NULL,
    removed_unix_ns
);
CREATE UNIQUE INDEX test_files_present ON test_files (path) WHERE removed_unix_ns IS NULL;
