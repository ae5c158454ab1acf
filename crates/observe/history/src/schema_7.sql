-- What the engine calls what is in a file. Told late, or another name later, it is written over.
ALTER TABLE files ADD COLUMN object TEXT;

DROP VIEW file_stats;
CREATE VIEW file_stats AS
SELECT c.id AS capture_id, c.source, c.taken_unix_ns, c.clock_ns, c.label,
       f.id AS file, f.instance, f.database_name, f.database_id, f.file_id, f.kind, f.path, f.drive,
       f.handle, f.object, f.epoch, f.epoch_reset, f.meaning,
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

-- Thinning removes captures and keeps the rows that it takes to say exactly what lay between those that stay: a row's
-- capture_id, and a file's first_capture_id and gone_capture_id, may be numbers of captures that are no longer there.

-- 1: what it had when it was first seen was all done since the capture before, which promised as much (captures.complete).
ALTER TABLE files ADD COLUMN from_zero INTEGER NOT NULL DEFAULT 0;
ALTER TABLE wait_events ADD COLUMN from_zero INTEGER NOT NULL DEFAULT 0;

CREATE TEMP TABLE promised AS
SELECT id FROM (SELECT id, complete, lag(complete) OVER (PARTITION BY source ORDER BY id) AS before FROM captures)
WHERE complete = before;
UPDATE files SET from_zero = 1 WHERE first_capture_id IN (SELECT id FROM promised);
UPDATE wait_events SET from_zero = 1 WHERE first_capture_id IN (SELECT id FROM promised);
DROP TABLE promised;

-- What was there over a stretch: what is not gone or was gone after its beginning, and of that what began before its
-- end. An index by the beginning alone would be taken for it, and leads through all that ever began.
DROP INDEX files_by_end;
CREATE INDEX files_by_end ON files (source, gone_capture_id, first_capture_id);
DROP INDEX wait_events_by_end;
CREATE INDEX wait_events_by_end ON wait_events (source, gone_capture_id, first_capture_id);

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
