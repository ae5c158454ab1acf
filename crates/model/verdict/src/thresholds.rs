//! Where one verdict ends and the next begins.

/// This many I/Os answered from memory count as a busy database, even if fewer than [`IOS_MIN`](statistics::IOS_MIN)
/// reached the storage. A session that opens its catalog reads a hundred blocks.
pub const IOS_FROM_MEMORY_MIN: u64 = 1_000;
/// At least this share of the moments must be known.
pub const COVERAGE_MIN: f64 = 0.5;
/// At the operating limit: more demand adds latency and hardly any throughput.
pub const UTILISATION_FULL: f64 = 0.9;
/// Well below the operating limit.
pub const UTILISATION_LOW: f64 = 0.5;
/// Over this, what remains is worth a warning.
pub const UTILISATION_NEAR: f64 = 0.7;
/// Latency this many times what the curve expects is another storage than the one measured.
pub const RATIO_DEGRADED: f64 = 3.0;
/// Latency this close to the expected one agrees with it.
pub const RATIO_AGREES: f64 = 2.0;
/// One session that always waits for one I/O has N = 1; with computation in between less.
pub const SERIAL_OUTSTANDING: std::ops::Range<f64> = 0.6..1.2;
/// The smallest N of a session that waits for its commits: half of its time, so that batching gives up to 2 x.
pub const SERIAL_COMMITS_MIN: f64 = 0.5;
/// N of one moment of a session whose mean is in [`SERIAL_OUTSTANDING`]. With many sessions some moments lie outside.
pub const SERIAL_MOMENT: std::ops::Range<f64> = 0.35..1.5;
/// Share of the time in which the log is written or synced, sequentially, from which it is what commits wait for, however many
/// sessions share each write. More than one at a time is not one log.
pub const LOG_BUSY: std::ops::Range<f64> = 0.8..1.2;
/// Share of moments with N in [`SERIAL_MOMENT`] from which the load is serialized.
pub const SERIAL_SHARE_MIN: f64 = 0.8;
/// Mean outstanding I/Os of a device while it is busy, from which I/Os overlap there. Measured: 0.94 to 1.09 for one at a time, 1.4
/// and more for random arrivals with a mean of 0.6 to 1.3.
pub const OVERLAPPING_OUTSTANDING: f64 = 1.2;
/// A device that counts up to this many times the database's reads has few of anybody else.
pub const READS_OF_DATABASE_MAX: f64 = 1.25;
/// Moments of a source that reports late are judged in stretches of this many times its lag: at their ends a session's I/O
/// may be missing or too much, a quarter then, as [`SERIAL_MOMENT`] allows.
pub const LATE_SPANS: u64 = 4;
/// I/Os without a time, though the database could time them, that leave latency unknown: a larger share than this.
pub const UNTIMED_SHARE_MAX: f64 = 0.1;
/// Tasks that are stalled on I/O for this share of the time wait too long to be left without an explanation. Busy processors make
/// the kernel's figure smaller, never larger.
pub const STALLED_MIN: f64 = 0.5;
/// A layer that is busy for this part of the time in which tasks are stalled accounts for it.
pub const EXPLAINED_MIN: f64 = 0.5;
/// A device that completes nothing for longer than this hangs. A disk that wakes up or tries again internally takes a few seconds.
pub const HUNG_MIN_NS: u64 = 5_000_000_000;
/// No session waits for storage: less than a tenth of one session's time goes into I/O.
pub const OUTSTANDING_IDLE: f64 = 0.1;
/// Seconds at the operating limit that make a burst rather than the everyday state.
pub const BURST_SHARE_MAX: f64 = 0.5;
/// A session that slept until its I/O was done also waits for a processor: up to this much more latency than expected, in
/// nanoseconds, says nothing of the storage. Measured: 45 us with the processors 37 % busy.
pub const WAKING_NS: f64 = 100_000.0;
/// Commits vary more than reads: the file system's journal commits for others as well, and a log that grows
/// costs more than one that is used again.
pub const COMMIT_RATIO_DEGRADED: f64 = 5.0;
/// A neighbour with this part of the I/O is taken for the cause.
pub const NEIGHBOUR_SHARE: f64 = 0.3;
/// A program that takes a smaller part of the highest measured rate, of the workload that is carried least, does not slow
/// the storage.
pub const NEIGHBOUR_TAKES_MIN: f64 = 0.1;
/// A cap is reached at this share of it.
pub const CAP_REACHED: f64 = 0.85;
/// Data this many times as large as the measured region meets other caches and longer seeks.
pub const LARGER_DATA: u64 = 8;
/// I/Os a second of other processes during a measurement that make it doubtful.
pub const FOREIGN_IOPS_MAX: f64 = 100.0;
/// A capability older than this may no longer hold.
pub const CAPABILITY_DAYS_MAX: f64 = 30.0;
/// A volume of which nothing can be said is a doubt from this part of the time waited on.
pub const VOLUME_SHARE_MIN: f64 = 0.05;
/// A volume of which nothing can be said is the answer from more than this part of the time waited on.
pub const MOST_OF_THE_WAITING: f64 = 0.5;
