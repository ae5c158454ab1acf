-- What the database did at its storage in each minute that was judged. NULL in rows of earlier versions.
ALTER TABLE judged_minutes ADD COLUMN iops_thousandths INTEGER;
ALTER TABLE judged_minutes ADD COLUMN read_bytes_per_second INTEGER;
ALTER TABLE judged_minutes ADD COLUMN written_bytes_per_second INTEGER;
