-- One command that ran load: its runs belong together.
CREATE TABLE sessions (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    started_unix_ns NOT NULL
);

ALTER TABLE runs ADD COLUMN session INTEGER;   -- NULL before version 2
ALTER TABLE runs ADD COLUMN phase TEXT;        -- "checkpoint burst"; NULL where it has no name
ALTER TABLE runs ADD COLUMN name TEXT;         -- of the workload, "oltp"; NULL where it has none
ALTER TABLE runs ADD COLUMN tool TEXT;         -- "fio-3.33" where another tool ran it; NULL: headroom
CREATE INDEX runs_by_session ON runs (session);

-- Everything kept, one line each; session groups runs.
DROP VIEW entries;
CREATE VIEW entries AS
SELECT 'capture' AS kind, id, taken_unix_ns AS at_unix_ns, source AS target,
       files || ' files, ' || files_changed || ' changed' || coalesce(' (' || label || ')', '') AS summary,
       NULL AS session
FROM captures
UNION ALL SELECT 'run', id, started_unix_ns, target, summary, session FROM runs
UNION ALL SELECT 'capability', id, measured_unix_ns, target, summary, NULL FROM capabilities
UNION ALL SELECT 'verdict', id, judged_unix_ns, target, verdict || ': ' || summary, NULL FROM verdicts;

-- The mark of a lasting file whose file system takes no extended attributes.
ALTER TABLE test_files ADD COLUMN mark TEXT;
