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
DROP VIEW file_stats;
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
