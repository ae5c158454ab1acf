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
