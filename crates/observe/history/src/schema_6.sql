-- Demand of servers: epochs that a reset of the statistics ends, what counters stand for, waits, notes.
ALTER TABLE captures ADD COLUMN notes TEXT NOT NULL DEFAULT '[]';   -- JSON [what a reader must know, ...]
ALTER TABLE captures ADD COLUMN complete TEXT;  -- JSON {run, reset}: what first shows later in that epoch began at zero
ALTER TABLE files ADD COLUMN epoch_reset TEXT NOT NULL DEFAULT '';  -- the last reset of the statistics
ALTER TABLE files ADD COLUMN meaning TEXT NOT NULL                  -- JSON {counts, read_time, write_time, cache}
    DEFAULT '{"counts":"requests","read_time":"to-completion","write_time":"to-completion","cache":"included"}';
UPDATE files SET meaning = '{"counts":"requests","read_time":"to-completion","write_time":"to-completion","cache":"below"}' WHERE kind = 'device';

DROP VIEW file_stats;

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
CREATE TABLE changes_packed (
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
    latencies,                          -- packed as src/packed.rs says; JSON text in rows of before
    PRIMARY KEY (file, capture_id)
) WITHOUT ROWID;
INSERT INTO changes_packed
SELECT file, capture_id, reads, read_bytes, read_stall_ns, (SELECT id FROM reasons WHERE word = read_stall_unknown),
       writes, write_bytes, write_stall_ns, (SELECT id FROM reasons WHERE word = write_stall_unknown),
       syncs, (SELECT id FROM reasons WHERE word = syncs_unknown),
       sync_bytes, sync_stall_ns, (SELECT id FROM reasons WHERE word = sync_stall_unknown),
       busy_ns, (SELECT id FROM reasons WHERE word = busy_unknown),
       size_bytes, (SELECT id FROM reasons WHERE word = size_unknown), latencies
FROM file_changes;
DROP TABLE file_changes;
ALTER TABLE changes_packed RENAME TO file_changes;

CREATE VIEW file_stats AS
SELECT c.id AS capture_id, c.source, c.taken_unix_ns, c.clock_ns, c.label,
       f.id AS file, f.instance, f.database_name, f.database_id, f.file_id, f.kind, f.path, f.drive,
       f.handle, f.epoch, f.epoch_reset, f.meaning,
       s.reads, s.read_bytes, s.read_stall_ns, (SELECT word FROM reasons WHERE id = s.read_stall_unknown) AS read_stall_unknown,
       s.writes, s.write_bytes, s.write_stall_ns, (SELECT word FROM reasons WHERE id = s.write_stall_unknown) AS write_stall_unknown,
       s.syncs, (SELECT word FROM reasons WHERE id = s.syncs_unknown) AS syncs_unknown, s.sync_bytes, s.sync_stall_ns, (SELECT word FROM reasons WHERE id = s.sync_stall_unknown) AS sync_stall_unknown,
       s.busy_ns, (SELECT word FROM reasons WHERE id = s.busy_unknown) AS busy_unknown,
       s.size_bytes, (SELECT word FROM reasons WHERE id = s.size_unknown) AS size_unknown, s.latencies
FROM captures c
JOIN files f ON f.source = c.source AND f.first_capture_id <= c.id
            AND (f.gone_capture_id IS NULL OR f.gone_capture_id > c.id)
JOIN file_changes s ON s.file = f.id
    AND s.capture_id = (SELECT max(capture_id) FROM file_changes WHERE file = f.id AND capture_id <= c.id);

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
    epoch_reset      TEXT NOT NULL
);
CREATE INDEX wait_events_by_end ON wait_events (source, gone_capture_id);

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
