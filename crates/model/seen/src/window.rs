use crate::reached::{Rate, Rates};
use capability::ResourceName;
use std::collections::VecDeque;
use workload::CapKind;

/// I/Os of one direction in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Side {
    /// Completed I/Os.
    pub ios: f64,
    /// Bytes that they moved.
    pub bytes: f64,
    /// Their times at the device, summed, seconds.
    pub served_s: f64,
    /// How long the database waited for such I/Os, summed, seconds: a limit above the device holds them back there.
    pub waited_s: f64,
}

/// Writes of databases' logs that were made durable, as the databases or the kernel timed them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Commits {
    /// Their number; several transactions may share one.
    pub count: f64,
    /// Their bytes.
    pub bytes: f64,
    /// How long they took with their syncs, summed, seconds.
    pub took_s: f64,
}

/// A limit that is set on this host on I/Os of one kind, as a control group does, and what it counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limit {
    /// Operations or bytes a second.
    pub per_second: f64,
    /// I/Os submitted to it, flushes among them, before any were merged.
    pub counted: f64,
}

/// Resource that each kind of limit limits; [`Second::limits`] are in this order.
pub const LIMITED: [(CapKind, ResourceName); 4] = [
    (CapKind::ReadIops, ResourceName::ReadOperations),
    (CapKind::WriteIops, ResourceName::WriteOperations),
    (CapKind::ReadBytes, ResourceName::ReadBandwidth),
    (CapKind::WriteBytes, ResourceName::WriteBandwidth),
];

/// Counts of about one second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// When it ended, nanoseconds since 1970.
    pub ended_unix_ns: u64,
    /// How long it was.
    pub elapsed_s: f64,
    /// Reads.
    pub reads: Side,
    /// Writes.
    pub writes: Side,
    /// Commits; none where no database times them.
    pub commits: Commits,
    /// How long the device had any I/O in flight, seconds; `None` where it does not count that.
    pub busy_s: Option<f64>,
    /// The limits that are set on these I/Os, as in [`LIMITED`].
    pub limits: [Option<Limit>; 4],
}

/// Some seconds in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    pub ended_unix_ns: u64,
    pub elapsed_s: f64,
    pub reads: Side,
    pub writes: Side,
    pub commits: Commits,
    /// `None` before the first second, and where one of them does not have it.
    pub busy_s: Option<f64>,
    /// Limits that were the same in all of them.
    pub limits: [Option<Limit>; 4],
}

/// Length of a window: long enough for some hundred I/Os of a slow disk, short enough for a demand that wanders.
const WINDOW_S: f64 = 5.0;
/// The database waits for this many times the device's latency, where I/Os are held back above it.
const HELD_BACK: f64 = 1.5;
/// A limit is reached at this part of it: what passes varies from window to window.
const AT_LIMIT: f64 = 0.95;
/// From this part of it on, it may have been reached for some of the time.
const NEAR_LIMIT: f64 = 0.8;
/// Two seconds with more than this between them are not in a row.
const GAP_S: f64 = 0.5;

impl Limit {
    fn add(self, other: Limit) -> Option<Limit> {
        let is_same = self.per_second.to_bits() == other.per_second.to_bits();
        is_same.then_some(Limit { counted: self.counted + other.counted, ..self })
    }
}

impl Commits {
    fn add(&mut self, other: &Commits) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.took_s += other.took_s;
    }
}

impl Side {
    fn add(&mut self, other: &Side) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.served_s += other.served_s;
        self.waited_s += other.waited_s;
    }

    /// Mean I/Os outstanding, at the device or above it.
    pub(crate) fn outstanding(&self, elapsed_s: f64) -> f64 {
        self.served_s.max(self.waited_s) / elapsed_s
    }

    pub(crate) fn bytes_each(&self) -> f64 {
        if self.ios > 0.0 { self.bytes / self.ios } else { 0.0 }
    }

    fn rate(&self, elapsed_s: f64) -> Rate {
        Rate { ios: self.ios / elapsed_s, bytes: self.bytes / elapsed_s }
    }
}

impl Window {
    /// I/Os outstanding of both directions.
    pub fn outstanding(&self) -> f64 {
        self.reads.outstanding(self.elapsed_s) + self.writes.outstanding(self.elapsed_s)
    }

    /// Share of the time in which the device had any I/O in flight.
    pub fn busy(&self) -> Option<f64> {
        self.busy_s.map(|busy_s| busy_s / self.elapsed_s)
    }

    /// Whether most of the waiting is above the device: a limit holds I/Os back there.
    pub fn is_held_back(&self) -> bool {
        let served_s = self.reads.served_s + self.writes.served_s;
        self.reads.waited_s + self.writes.waited_s > HELD_BACK * served_s
    }

    /// The limit of this place in [`LIMITED`], where as much passed as it allows.
    pub fn at_limit(&self, kind: usize) -> Option<Limit> {
        self.limits[kind].filter(|limit| limit.counted >= AT_LIMIT * limit.per_second * self.elapsed_s)
    }

    /// Whether a limit was reached for some of the time, or nearly.
    pub fn is_near_limit(&self) -> bool {
        let is_near = |limit: &Limit| limit.counted >= NEAR_LIMIT * limit.per_second * self.elapsed_s;
        self.limits.iter().flatten().any(is_near)
    }

    pub fn rates(&self) -> Rates {
        Rates { reads: self.reads.rate(self.elapsed_s), writes: self.writes.rate(self.elapsed_s) }
    }
}

/// Makes windows of seconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Windows {
    open: Window,
    last_unix_ns: u64,
}

impl Windows {
    /// Adds a second. Returns the window that it completes, and whether a gap came before.
    pub fn add(&mut self, second: &Second) -> (Option<Window>, bool) {
        let began = second.ended_unix_ns.saturating_sub((second.elapsed_s * 1e9) as u64);
        let gap_s = (began as f64 - self.last_unix_ns as f64) / 1e9;
        let is_gap = self.last_unix_ns > 0 && gap_s > GAP_S;
        // Another source counted it already.
        let is_known = gap_s < -GAP_S * second.elapsed_s;
        let is_odd = !(second.elapsed_s > 0.0 && second.elapsed_s.is_finite());
        if is_odd || self.last_unix_ns > 0 && is_known {
            return (None, false);
        }
        if is_gap {
            self.open = Window::default();
        }
        self.last_unix_ns = second.ended_unix_ns;
        let open = &mut self.open;
        let is_first = open.elapsed_s <= 0.0;
        let busy_s = if is_first { Some(0.0) } else { open.busy_s };
        for (all, more) in open.limits.iter_mut().zip(second.limits) {
            *all = if is_first { more } else { all.zip(more).and_then(|(all, more)| all.add(more)) };
        }
        open.busy_s = busy_s.zip(second.busy_s).map(|(all, more)| all + more);
        open.ended_unix_ns = second.ended_unix_ns;
        open.elapsed_s += second.elapsed_s;
        open.reads.add(&second.reads);
        open.writes.add(&second.writes);
        open.commits.add(&second.commits);
        let is_complete = open.elapsed_s >= WINDOW_S - GAP_S;
        (is_complete.then(|| std::mem::take(open)), is_gap)
    }
}

/// Appends a window, and keeps the newest `most`.
pub(crate) fn push_bounded(windows: &mut VecDeque<Window>, window: Window, most: usize) {
    windows.push_back(window);
    while windows.len() > most {
        windows.pop_front();
    }
}
