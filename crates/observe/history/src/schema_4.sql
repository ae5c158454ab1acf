-- The baseline that later results are compared with: one capability, or the runs of a group. Setting it
-- replaces the one before.
CREATE TABLE baseline (
    position    INTEGER PRIMARY KEY,    -- 1, 2, 3 ... among the runs of the group
    kind        TEXT NOT NULL,          -- run or capability
    entry_id    INTEGER NOT NULL,
    set_unix_ns NOT NULL
);
