//! Where one finding ends and the next begins, each limit with its source. "Headroom" marks our own choice.
//! Limits that other judges share stand in `statistics` and `capability`.

/// A core this busy has nothing left (Headroom).
pub const CORE_BUSY: f64 = 0.95;
/// Others' share of all cores that may disturb (Headroom).
pub const OTHERS_SHARE: f64 = 0.25;
/// Share of a core's time that is in no account, as a hypervisor's steal is not (Headroom).
pub const STOLEN_SHARE: f64 = 0.02;
/// Threads "should be similar" (diskspd study, 2016): within this share of their mean...
pub const THREADS_SPREAD: f64 = 0.10;
/// ... or within this many standard deviations of a count left to chance.
pub const CHANCE_DEVIATIONS: f64 = 4.0;

/// From here on memory or a cache answers a share of the I/Os that shows in the mean (Headroom).
pub const CACHED_SHARE: f64 = 0.10;
/// A smaller target may fit into an unreported cache: DRAM of a drive, memory of a controller
/// (Headroom).
pub const PLAUSIBLE_CACHE_BYTES: u64 = 1 << 30;
/// "Larger than the cache and not its exact multiple" (diskspd study, 2016): multiples up to this...
pub const MULTIPLES_MAX: u64 = 8;
/// ... within this share of the cache.
pub const MULTIPLE_NEAR: f64 = 0.02;

/// SNIA SSS PTS: five rounds of at most 25; a shorter stretch at the end of a run is luck.
pub const STEADY_SHARE: f64 = 0.20;
/// A fall by this share is a cliff (Headroom).
pub const CLIFF_FALL: f64 = 0.25;
/// ... if this share of the rows before and after lie on their side of it.
pub const CLIFF_LASTING: f64 = 0.90;
/// Rows on each side of a cliff, at least; and at least a twentieth of the run.
pub const CLIFF_ROWS: usize = 3;
/// A row that should hold this many I/Os and holds none is a stall, not chance.
pub const STALL_IOS: f64 = 10.0;

/// Little's law: reached share of the requested outstanding I/Os (Headroom).
pub const OUTSTANDING_REACHED: f64 = 0.90;
/// ... and above this, I/Os begun before the run weigh too much in it.
pub const OUTSTANDING_OVER: f64 = 1.10;
/// Bytes moved may differ this much from I/Os x size, beyond chance.
pub const BYTES_DIFFER: f64 = 0.01;
/// Below this share of the measured rate at full load, the storage no longer gives what it gave.
pub const KNEE_REACHED: f64 = 0.80;
/// This many times the knee's outstanding I/Os, and more of them only wait.
pub const KNEE_BEYOND: f64 = 2.0;

/// A flat plateau is capped if it varies this much less than independent I/Os would by chance (Headroom).
pub const FLAT_OF_CHANCE: f64 = 0.5;
/// Rows of a plateau, at least.
pub const FLAT_ROWS: usize = 10;

/// An open loop may miss its rate by this, beyond chance.
pub const RATE_SHORT: f64 = 0.02;
/// Users wait this many times what the storage takes: a queue before it (Headroom).
pub const RESPONSE_RATIO: f64 = 2.0;
/// Waits of users beyond the storage's latency, as a share of that, from which on they must be explained.
pub const RESPONSE_EXTRA: f64 = 0.10;
/// A generator whose worst delay is this share of what must be explained may be the explanation.
pub const LATE_EXPLAINS: f64 = 0.5;
/// At and below this percentile a late generator makes the result invalid (Headroom).
pub const LATE_PERCENT: f64 = 99.0;

/// Neighbouring percentiles this far apart are a jump (the study's: 4.8 ms, 38.7 ms, 207 ms).
pub const JUMP: f64 = 3.0;
/// Writes may differ from the requested share by this, beyond chance.
pub const WRITE_SHARE_DIFFERS: f64 = 0.01;
/// Threads that spend this share of their time in syncs wait for commits rather than for I/O (Headroom).
pub const SYNC_SHARE: f64 = 0.50;
