//! Where one finding ends and the next begins, each limit with its source. "Headroom" marks our own choice.

/// One second.
pub const S: u64 = 1_000_000_000;
/// One minute.
pub const MIN: u64 = 60 * S;
/// One hour.
pub const HOUR: u64 = 60 * MIN;
/// One day.
pub const DAY: u64 = 24 * HOUR;

/// Fewer operations than this are ignored (Headroom); fewer than [`IOS_MIN`](statistics::IOS_MIN) give no warning.
pub const IOS_FEW: u64 = 10;
/// "A spike of one minute or more is more of a plateau" (Microsoft CSS): this much in total is a warning...
pub const PLATEAU_NS: u64 = MIN;
/// ... or this share of the time in which there was any I/O (Headroom).
pub const BREACHED_SHARE: f64 = 0.01;
/// Stretches less than this apart are one (Headroom); or two intervals, where those are longer.
pub const APART_NS: u64 = MIN;
/// Stretches that a finding lists.
pub const STRETCHES_MAX: usize = 20;

/// "I/O sizes of 64 KiB and more have a direct effect on response times" (PAL).
pub const LARGE_BYTES: f64 = 65_536.0;

/// Days of an hour of which something must be known before anything is usual (Headroom).
pub const DAYS_MIN: usize = 3;
/// Days before the stretch that are compared.
pub const DAYS_BEFORE: u64 = 14;
/// This many times the usual latency is a spike (Headroom).
pub const SLOWER: f64 = 3.0;
/// ... if it is also this much more: jitter of microseconds is none (Headroom).
pub const SLOWER_NS: f64 = 500_000.0;
/// This many times the usual rate is a spike of demand (Headroom).
pub const MORE: f64 = 5.0;
/// ... if it is at least this many operations a second (Headroom).
pub const MORE_PER_S: f64 = 50.0;
/// Longer intervals than this belong to no hour.
pub const HOUR_STEP_NS: u64 = HOUR + HOUR / 2;

/// One I/O at a time: mean outstanding I/Os from ... (Headroom).
pub const SERIAL_FROM: f64 = 0.8;
/// ... to.
pub const SERIAL_UNTIL: f64 = 1.1;
/// ... for this long (Headroom).
pub const SERIAL_NS: u64 = 10 * S;
/// ... and this share of the time in which there was any I/O (Headroom).
pub const SERIAL_SHARE: f64 = 0.5;
/// Faster I/Os than this come from memory (Headroom).
pub const SERIAL_LATENCY_NS: f64 = 100_000.0;
/// From here on the wait for each of them is a warning (Headroom).
pub const SERIAL_SLOW_NS: f64 = 1_000_000.0;

/// A file read this many times over is read again rather than read (Headroom).
pub const REREAD: f64 = 10.0;
/// ... and this many times an hour (Headroom).
pub const REREAD_PER_HOUR: f64 = 1.0;
/// Smaller files are read again and again by nature.
pub const REREAD_BYTES: u64 = 1 << 20;
/// Reads faster than this were answered from memory: the page cache's, not the database's (Headroom).
pub const CACHED_NS: f64 = 50_000.0;
/// From this mean of reads outstanding on they cost something (Headroom).
pub const REREAD_OUTSTANDING: f64 = 0.1;

/// A file with this share of all time waited is reported (Headroom).
pub const BUSY_SHARE: f64 = 0.5;
/// Below this mean of outstanding I/Os a file is not busy (Headroom).
pub const BUSY_OUTSTANDING: f64 = 0.05;
/// Busiest files that are listed.
pub const BUSIEST_MAX: usize = 10;

/// Findings of single files that are listed of a source, the worst (Headroom).
pub const FINDINGS_MAX: usize = 200;

/// Checkpoints: syncs of data files at a regular distance, at least this many of them (Headroom).
pub const CHECKPOINTS_MIN: usize = 4;
/// ... whose distances vary by no more than this, standard deviation / mean (Headroom).
pub const CHECKPOINTS_VARY: f64 = 0.25;
/// ... with at least this much written in total.
pub const CHECKPOINTS_BYTES: u64 = 1 << 20;

/// Smaller files do not indicate a job.
pub const JOB_FILE_BYTES: u64 = 1 << 20;
/// A file read whole: bytes read of its size, from...
pub const WHOLE_FROM: f64 = 0.9;
/// ... to.
pub const WHOLE_UNTIL: f64 = 2.0;
/// Bytes written beside the reads of a backup, at most, as a share of the bytes read.
pub const BACKUP_WRITES: f64 = 0.1;
/// Of the bytes of all data files, that must have been read whole for a backup (Headroom).
pub const BACKUP_SHARE: f64 = 0.8;
/// Whole reads less than this apart are of one backup.
pub const BACKUP_APART_NS: u64 = 10 * MIN;

/// A rebuild reads at least this share of the table...
pub const REBUILD_READ: f64 = 0.5;
/// ... this many times as fast as usual, ...
pub const REBUILD_FASTER: f64 = 5.0;
/// ... and writes at least this share of its size to the log.
pub const REBUILD_LOG: f64 = 0.05;
/// Candidates that are kept of a source: more do not indicate a job.
pub const CANDIDATES_MAX: usize = 10_000;

/// Waits are laid beside the stalls over stretches of this length at least.
pub const WAITS_NS: u64 = MIN;
/// The waits of a class are not the disk if they are so for this share of the time waited.
pub const WAITS_SHARE: f64 = 0.5;

/// An interval this many times the usual length is a gap in the recording (Headroom).
pub const GAP: u64 = 4;
/// Less than this share of known time is reported (Headroom).
pub const KNOWN_SHARE: f64 = 0.9;
