//! The demand of a database on its storage: its counters, as far as their meaning allows to compare them with the
//! storage.
//!
//! ```text
//! reads     bypass the page cache, or a histogram separates its hits  -> the slow ones
//!           include hits of the page cache              -> at most those of the device, less the time of the hits
//!           timed by the wait or by the submission      -> counted; their latency is the device's
//! commits   a log whose syncs are counted and timed     -> its writes and syncs, one for each sync
//!           a log whose writes go through to the medium -> one for each write
//!           a log that is not timed                     -> its writes, each a write and a flush of the device
//! N         the time of both, and of all else that sessions wait for; never that of a submission
//! ```

use crate::Moment;
use filestats::{Cache, Delta, Durable, Figure, FileInterval, FileKind, Ops, Reason, Time};

/// A read faster than this share of the storage's own median at rest cannot have reached it.
const CACHE_HIT_SHARE: f64 = 0.5;

/// Time of the page cache for a block of a database, a system call and a copy of 8 or 16 KiB, at most: 1 to 3 us
/// measured (November 2026).
const CACHE_HIT_NS: u64 = 5_000;

/// Where the page cache's answers may have taken more of the time than this share, nothing is known of the rest.
const CACHE_HITS_SHARE_MAX: f64 = 0.5;

/// Reads that came from the storage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reads {
    /// Their number, size, and time to completion, where the database knows it.
    pub ops: Ops,
    /// How long sessions waited for them, as far as known.
    pub waited_ns: u64,
}

/// Log writes with the syncs that make them durable: what one commit waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Commits {
    pub ops: Ops,
    /// The database does not time its log: what the device takes for a write and a flush stands for it.
    pub by_device: bool,
    /// Their writes are durable by themselves: no sync is waited for.
    pub through: bool,
}

/// I/Os that the database could time, and does not because its timing is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Untimed {
    pub count: u64,
    pub total: u64,
}

/// Intervals of the database's own files: not of devices, nor of what went on below the page cache for them.
pub(crate) fn files(moments: &[Moment]) -> impl Iterator<Item = (&FileInterval, &Delta)> {
    let all = moments.iter().flat_map(|moment| moment.files.sums());
    all.filter(|file| is_of_database(file)).filter_map(|file| Some((file, file.interval.known()?)))
}

pub(crate) fn is_of_database(file: &FileInterval) -> bool {
    file.file.kind != FileKind::Device && file.meaning.cache != Cache::Below
}

/// Whether commits may wait for the file.
pub fn is_log(file: &FileInterval) -> bool {
    file.file.kind == FileKind::Log && is_of_database(file)
}

pub(crate) fn device(moments: &[Moment]) -> Option<Delta> {
    moments.iter().filter_map(|moment| moment.device().cloned()).reduce(|sum, next| sum.followed_by(&next))
}

/// `floor_ns` is the storage's own median of a read at rest, where it was measured.
pub(crate) fn reads(moments: &[Moment], floor_ns: Option<u64>) -> Reads {
    let (mut reached, mut mixed, mut waited_ns) = (Ops::ZERO, Ops::ZERO, 0_u64);
    for (file, delta) in files(moments) {
        let all = delta.counters.read;
        let read = match file.meaning.read_time {
            Time::ToCompletion => all,
            Time::Waiting | Time::ToSubmission if all.count == 0 => all,
            Time::Waiting => {
                waited_ns = waited_ns.saturating_add(all.stall_ns.known().unwrap_or(0));
                untimed(all)
            }
            Time::ToSubmission => untimed(all),
        };
        match (file.meaning.cache, &delta.latencies, floor_ns) {
            (Cache::Missed, ..) => reached = reached.plus(read),
            (_, Some(latencies), Some(floor_ns)) => {
                let slow = latencies.read.at_least((floor_ns as f64 * CACHE_HIT_SHARE) as u64);
                reached = reached.plus(slow_reads(read, slow));
            }
            _ => mixed = mixed.plus(read),
        }
    }
    let device = device(moments);
    let left = device.map(|device| {
        let read = device.counters.read;
        Ops { count: read.count.saturating_sub(reached.count), ..read }
    });
    let ops = reached.plus(left.map_or(mixed, |left| bounded_by_device(mixed, left)));
    let known_ns = ops.stall_ns.known().or_else(|| reached.stall_ns.known()).unwrap_or(0);
    Reads { ops, waited_ns: waited_ns.saturating_add(known_ns) }
}

/// Writes of pages by the database.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PageWrites {
    pub count: u64,
    /// Whether or not they have reached the device.
    pub bytes: u64,
    /// They bypass the page cache: each is a write of the device.
    pub is_direct: bool,
}

pub(crate) fn page_writes(moments: &[Moment]) -> PageWrites {
    let data: Vec<_> = files(moments).filter(|(file, _)| file.file.kind == FileKind::Data).collect();
    let written = data.iter().fold(Ops::ZERO, |sum, (_, delta)| sum.plus(delta.counters.write));
    // The files that were written decide, or else those that were read: beside InnoDB's, which bypass the page cache, MariaDB has
    // cached system tables that are seldom used.
    let is_direct_where = |is_used: fn(&Delta) -> bool| {
        let mut used = data.iter().filter(|(_, delta)| is_used(delta)).peekable();
        used.peek()?;
        Some(used.all(|(file, _)| file.meaning.cache == Cache::Missed))
    };
    let uses: [fn(&Delta) -> bool; 3] =
        [|delta| delta.counters.write.count > 0, |delta| delta.counters.read.count > 0, |_| true];
    let is_direct = uses.into_iter().find_map(is_direct_where).unwrap_or(true);
    PageWrites { count: written.count, bytes: written.bytes, is_direct }
}

fn untimed(ops: Ops) -> Ops {
    Ops { stall_ns: Figure::unknown(Reason::NotCounted), ..ops }
}

/// A histogram separates reads that are not far below the storage's own latency at rest.
fn slow_reads(all: Ops, (count, stall_ns): (u64, f64)) -> Ops {
    let count = count.min(all.count);
    let bytes = match all.count {
        0 => 0,
        of => (u128::from(all.bytes) * u128::from(count) / u128::from(of)) as u64,
    };
    // Bucket middles may add up to a little more than the exact sum.
    let stall_ns = all.stall_ns.map(|exact| exact.min(stall_ns as u64));
    Ops { count, bytes, stall_ns }
}

/// Of reads that the page cache may have answered, or that went several in a request, no more can have reached the
/// storage than the device did.
fn bounded_by_device(all: Ops, device: Ops) -> Ops {
    if all.count <= device.count {
        return all;
    }
    let hits = all.count - device.count;
    let by_cache_ns = hits.saturating_mul(CACHE_HIT_NS);
    let stall_ns = match all.stall_ns {
        Figure::Known(ns) if by_cache_ns as f64 <= CACHE_HITS_SHARE_MAX * ns as f64 => {
            Figure::Known(ns - by_cache_ns)
        }
        Figure::Known(_) => Figure::unknown(Reason::NotCounted),
        unknown => unknown,
    };
    let each = device.average_bytes().known().unwrap_or(0.0);
    let bytes = ((device.count as f64 * each) as u64).min(all.bytes);
    Ops { count: device.count, bytes, stall_ns }
}

/// One operation for each sync of the files that commits wait for, with the writes before it; for each write, where it is
/// durable by itself.
pub(crate) fn commits(moments: &[Moment]) -> Commits {
    let synced = |delta: &Delta| delta.counters.sync.known().is_some_and(|sync| sync.count > 0);
    let is_log = |file: &FileInterval| file.file.kind == FileKind::Log;
    let through = |file: &FileInterval| file.meaning.durable == Durable::ByItself;
    let waited_on =
        |file: &FileInterval, delta: &Delta| synced(delta) || through(file) && delta.counters.write.count > 0;
    // Syncs on a line of their own, and the logs that they are of.
    let apart = |delta: &Delta| synced(delta) && delta.counters.write.count == 0;
    let unsynced = |delta: &Delta| delta.counters.sync.known().is_none() && delta.counters.write.count > 0;
    if files(moments).any(|(file, delta)| is_log(file) && unsynced(delta)) {
        let writes = files(moments).filter(|(file, delta)| is_log(file) && unsynced(delta));
        let writes = writes.fold(Ops::ZERO, |sum, (_, delta)| sum.plus(delta.counters.write));
        let syncs = files(moments).filter(|(_, delta)| apart(delta));
        let syncs = syncs.filter_map(|(_, delta)| delta.counters.sync.known()).reduce(Ops::plus);
        return commits_of_an_untimed_log(writes, syncs, device(moments).as_ref());
    }
    // Where there is a log, commits wait for it alone, and the other files are synced by checkpoints.
    // It may lie on another volume: then no session waits for commits here.
    let has_log = files(moments).any(|(file, delta)| is_log(file) && waited_on(file, delta))
        || moments.iter().any(|moment| moment.log_elsewhere);
    let waited_for = |kind: FileKind| match has_log {
        true => kind == FileKind::Log,
        false => matches!(kind, FileKind::Journal | FileKind::Data),
    };
    let (mut sum, mut written_through) = (Ops::ZERO, false);
    let all = files(moments);
    for (file, delta) in all.filter(|(file, delta)| waited_for(file.file.kind) && waited_on(file, delta)) {
        let (sync, write) = (delta.counters.sync.known().unwrap_or(Ops::ZERO), delta.counters.write);
        let count = if through(file) { write.count } else { sync.count };
        written_through |= through(file);
        sum = sum.plus(Ops { count, bytes: write.bytes, ..sync });
        sum.stall_ns = sum.stall_ns.zip(time_of(write), u64::saturating_add);
    }
    Commits { ops: sum, by_device: false, through: written_through }
}

/// No operations took no time, timed or not.
fn time_of(ops: Ops) -> Figure<u64> {
    Ops::ZERO.plus(ops).stall_ns
}

/// Where commits do not sync, as many as are synced wait.
fn commits_of_an_untimed_log(writes: Ops, syncs: Option<Ops>, device: Option<&Delta>) -> Commits {
    let count = syncs.map_or(writes.count, |syncs| syncs.count.min(writes.count));
    let bytes = writes.average_bytes().known().map_or(0, |bytes| (bytes * count as f64) as u64);
    let reason = writes.stall_ns.reason().unwrap_or(Reason::NotCounted);
    let each_ns = device.and_then(|device| {
        // A device that keeps what it is given has nothing to flush.
        let flush_ns = device.sync_latency_ns().known().unwrap_or(0.0);
        Some(device.write_latency_ns().known()? + flush_ns)
    });
    // Where the database only has to be reached to time it, that is the remedy.
    let each_ns = each_ns.filter(|_| reason == Reason::NotCounted);
    let stall_ns =
        each_ns.map_or(Figure::unknown(reason), |each| Figure::Known((each * count as f64) as u64));
    Commits { ops: Ops { count, bytes, stall_ns }, by_device: each_ns.is_some(), through: false }
}

/// Mean I/Os that the database waits for at the storage, of `elapsed_ns` (Little 1961).
pub(crate) fn outstanding(moments: &[Moment], reads: &Reads, commits: &Commits, elapsed_ns: u64) -> f64 {
    let mut stall_ns = reads.waited_ns as f64;
    for (file, delta) in files(moments) {
        let write = delta.counters.write.stall_ns.known();
        let write = write.filter(|_| file.meaning.write_time != Time::ToSubmission);
        let sync = delta.counters.sync.known().and_then(|sync| sync.stall_ns.known());
        stall_ns += write.unwrap_or(0) as f64 + sync.unwrap_or(0) as f64;
    }
    if commits.by_device {
        stall_ns += commits.ops.stall_ns.known().unwrap_or(0) as f64;
    }
    if elapsed_ns == 0 { 0.0 } else { stall_ns / elapsed_ns as f64 }
}

/// I/Os whose time the database could know and does not, because its timing is off.
pub(crate) fn untimed_by_choice(moments: &[Moment]) -> Untimed {
    let mut sum = Untimed::default();
    for (_, delta) in files(moments) {
        let sync = delta.counters.sync.known().unwrap_or(Ops::ZERO);
        for ops in [delta.counters.read, delta.counters.write, sync] {
            sum.total = sum.total.saturating_add(ops.count);
            if ops.stall_ns.reason() == Some(Reason::TimingOff) {
                sum.count = sum.count.saturating_add(ops.count);
            }
        }
    }
    sum
}
