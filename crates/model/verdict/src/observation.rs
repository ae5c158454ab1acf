use crate::demand::is_of_database;
use crate::thresholds::{LATE_SPANS, NEIGHBOUR_SHARE};
use crate::{CapUse, Pressure, SharedFiles};
use capability::{Binding, Capability};
use filestats::{Counters, Delta, Figure, FileInterval, FileKind, Interval, Ops, Reason};
use seen::Seen;
use serde::{Deserialize, Serialize};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use workload::{Cap, DeviceTrouble};

/// One short interval, all files of the database and the device below them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// When it ends, nanoseconds since 1970.
    pub ended_unix_ns: u64,
    /// The database's files on the device, as the sources count them.
    pub files: SharedFiles,
    /// The database's log lies on another device: no session waits for commits on this one.
    #[serde(default)]
    pub log_elsewhere: bool,
    /// The kernel's counters of the device: the I/O of all processes.
    pub device: Option<FileInterval>,
    /// How busy this host's processors were, where the database runs here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<ProcessorUse>,
    /// Transactions that the database committed, as it counts them: those that only read may be among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commits: Option<u64>,
    /// How long transactions had the only turn to write, nanoseconds; `None` where several can write at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writer_ns: Option<u64>,
    /// Bytes of the log's records, without what fills up blocks; `None` where the bytes of its writes tell as much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_record_bytes: Option<u64>,
    /// How long tasks were stalled on I/O.
    #[serde(default)]
    pub pressure: Pressure,
    /// Counts of the limits in force on the database's processes.
    #[serde(default)]
    pub caps: Vec<CapUse>,
}

/// Shares of the processor time of a host, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessorUse {
    /// Used by the processes of the database.
    pub own: f64,
    /// Used by programs of this host that are connected to it: theirs grows with its work.
    #[serde(default)]
    pub clients: f64,
    /// Used in the kernel beside both of them for the I/O of the storage: it grows with that.
    #[serde(default)]
    pub kernel: f64,
    /// Used by all other processes, except those with nice above 0 in a scheduling group of the database: they give way to it, and
    /// their time counts as idle.
    pub others: f64,
    /// Processors of the host; 0 where not known.
    #[serde(default)]
    pub count: u32,
    /// How often a second the database's threads gave up their processor to wait for something.
    #[serde(default)]
    pub own_waits_per_s: f64,
    /// Waits of the clients' threads a second.
    #[serde(default)]
    pub clients_waits_per_s: f64,
}

/// Observation of a database and its storage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// In order of time.
    pub moments: Vec<Moment>,
    /// Throttles in force on the device while it was observed.
    pub caps: Vec<Cap>,
    /// How late the source may report operations, nanoseconds: a moment that is not much longer may contain those of
    /// another.
    #[serde(rename = "told_late_ns")]
    pub reporting_delay_ns: u64,
    /// Remarks needed to read the source's figures, and to get better ones.
    pub notes: Vec<String>,
    /// Bytes of the database's data files at the end, where known.
    pub data_bytes: Option<u64>,
    /// The source does not count the files of several volumes apart: their I/O is divided as the devices' I/O is.
    #[serde(default)]
    pub divided: bool,
    /// Mean I/Os that the database waited for on its other volumes.
    #[serde(default)]
    pub outstanding_elsewhere: f64,
    /// One session at a time can commit, as in SQLite.
    #[serde(default)]
    pub commits_one_by_one: bool,
    /// Other programs of this host that used the same storage: those that do much first, and of these those on the database's
    /// own device; then the largest.
    #[serde(default)]
    pub neighbours: Vec<Neighbour>,
    /// The program that timed the writes and syncs of the database's log.
    #[serde(default)]
    pub log_timing: LogTiming,
    /// Troubles that the devices reported meanwhile, the last of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<DeviceTrouble>,
    /// I/Os of the database that storage failed meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailedIos>,
    /// Performance that the storage was seen to reach before; `None` where it was never watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// Limits that the owner or the provider of the storage states, where it was measured too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<Capability>,
}

/// I/Os that ended with an error of storage, such as EIO.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedIos {
    /// The process that requested them: "pid 812 (postgres)".
    pub process: String,
    /// Of this file.
    pub path: String,
    /// Number of failed I/Os.
    pub count: u64,
}

/// Program that timed the writes and syncs of a database's log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum LogTiming {
    /// The database, where anybody did.
    #[default]
    Database,
    /// The kernel: the database does not, and its processes were watched beside it.
    Kernel,
    /// No program.
    Untimed {
        /// Why its processes were not watched, with what would allow it.
        why: String,
    },
}

/// A program that used the storage beside the database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Neighbour {
    /// Its pid.
    pub pid: u32,
    /// The name of its program.
    pub command: String,
    /// Where its part is that of a disk on which the database's device lies: the disk, "sda".
    #[serde(default)]
    pub device: Option<String>,
    /// Bytes that it read and wrote, its own children of the same program included.
    pub bytes: u64,
    /// Its part of the device's bytes, 0 to 1; of the bytes of all processes with files there where its I/Os were not
    /// counted.
    pub share: f64,
    /// I/Os of it on the device while they were counted; `None` where that is not permitted.
    #[serde(default)]
    pub operations: Option<u64>,
    /// Its part of the device's I/Os, 0 to 1.
    #[serde(default)]
    pub operations_share: Option<f64>,
}

/// Parts that differ by less are one figure.
const SHARES_AGREE: f64 = 0.1;

impl Neighbour {
    /// Its part of what runs out first; the larger part where that is not known.
    pub fn part_of(&self, binding: Option<Binding>) -> f64 {
        let operations = self.operations_share.unwrap_or(self.share);
        match binding {
            Some(Binding::Operations | Binding::ReadOperations | Binding::WriteOperations) => operations,
            Some(Binding::Bandwidth | Binding::ReadBandwidth | Binding::WriteBandwidth) => self.share,
            None => self.share.max(operations),
        }
    }

    /// Whether it may be the cause of what the database waits for.
    pub fn does_much(&self) -> bool {
        self.part_of(None) >= NEIGHBOUR_SHARE
    }

    /// "this device" of the database, or the name of the one below.
    pub(crate) fn device_name(&self) -> &str {
        self.device.as_deref().unwrap_or("this device")
    }

    /// "fio (pid 812) does 71 % of this device's I/O".
    pub(crate) fn sentence(&self) -> String {
        let (device, percent) = (self.device_name(), self.share * 100.0);
        match self.operations_share {
            Some(operations) if (operations - self.share).abs() >= SHARES_AGREE => {
                let operations = operations * 100.0;
                format!("{self} does {operations:.0} % of {device}'s I/Os and {percent:.0} % of its bytes")
            }
            _ => format!("{self} does {percent:.0} % of {device}'s I/O"),
        }
    }
}

impl fmt::Display for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.command, self.pid)
    }
}

impl Moment {
    /// All files with a known interval, summed, with the syncs of those that count them, without their histograms. `None` where
    /// none has one.
    pub fn database(&self) -> Option<Delta> {
        let known = || {
            let files = self.files.sums().iter().filter(|file| is_of_database(file));
            files.filter_map(|file| file.interval.known())
        };
        let mut counters = known().map(|delta| delta.counters).reduce(Counters::beside)?;
        if let Some(syncs) = known().filter_map(|delta| delta.counters.sync.known()).reduce(Ops::plus) {
            counters.sync = Figure::Known(syncs);
        }
        Some(Delta { elapsed_ns: self.elapsed_ns()?, counters, latencies: None })
    }

    /// How long the database was observed; `None` where nothing is known of its files.
    pub fn elapsed_ns(&self) -> Option<u64> {
        let mut files = self.files.sums().iter();
        let known = files.find(|file| is_of_database(file) && file.interval.known().is_some());
        known.and_then(|file| file.interval.known()).map(|delta| delta.elapsed_ns)
    }

    /// The device's interval, where known.
    pub fn device(&self) -> Option<&Delta> {
        self.device.as_ref().and_then(|device| device.interval.known())
    }
}

impl Observation {
    /// Purposes of the files that the database used; those of all files where it used none.
    pub fn roles(&self) -> BTreeSet<FileKind> {
        let files = || {
            let all = self.moments.iter().flat_map(|moment| moment.files.sums());
            all.filter(|file| is_of_database(file))
        };
        let is_used =
            |file: &FileInterval| file.interval.known().is_some_and(|delta| delta.counters.operations() > 0);
        let roles = |unused_too: bool| -> BTreeSet<FileKind> {
            files().filter(|file| unused_too || is_used(file)).map(|file| file.file.kind).collect()
        };
        let used = roles(false);
        if used.is_empty() { roles(true) } else { used }
    }

    /// Whether the database did any I/O that is known.
    pub fn is_used(&self) -> bool {
        let files = self.moments.iter().flat_map(|moment| moment.files.sums());
        let files = files.filter(|file| is_of_database(file));
        files.filter_map(|file| file.interval.known()).any(|delta| delta.counters.operations() > 0)
    }

    /// Transactions committed a second over the moments that know it.
    pub(crate) fn commits_per_s(&self) -> Option<f64> {
        Some(self.per_ns(|moment| moment.commits)? * 1e9)
    }

    /// The share of the time in which a transaction had the only turn to write, over the moments that know it.
    pub(crate) fn writer_share(&self) -> Option<f64> {
        self.per_ns(|moment| moment.writer_ns)
    }

    /// Bytes of the log's records a second, without what fills up blocks, over the moments that know them.
    pub(crate) fn log_records_per_s(&self) -> Option<f64> {
        Some(self.per_ns(|moment| moment.log_record_bytes)? * 1e9)
    }

    fn per_ns(&self, counted: fn(&Moment) -> Option<u64>) -> Option<f64> {
        let known = self.moments.iter().filter_map(|moment| counted(moment).zip(moment.elapsed_ns()));
        let (count, ns) = known.fold((0_u64, 0_u64), |sum, (count, ns)| (sum.0 + count, sum.1 + ns));
        (ns > 0).then(|| count as f64 / ns as f64)
    }

    /// Mean use of the processors over the moments that know it.
    pub(crate) fn processors(&self) -> Option<ProcessorUse> {
        let known: Vec<ProcessorUse> = self.moments.iter().filter_map(|moment| moment.processors).collect();
        let mean = |of: fn(&ProcessorUse) -> f64| known.iter().map(of).sum::<f64>() / known.len() as f64;
        (!known.is_empty()).then(|| ProcessorUse {
            own: mean(|one| one.own),
            clients: mean(|one| one.clients),
            kernel: mean(|one| one.kernel),
            others: mean(|one| one.others),
            count: known.iter().map(|one| one.count).max().unwrap_or(0),
            own_waits_per_s: mean(|one| one.own_waits_per_s),
            clients_waits_per_s: mean(|one| one.clients_waits_per_s),
        })
    }

    /// One row for each file over all its known moments; a file without any has the last reason.
    pub fn files(&self) -> Vec<FileInterval> {
        let mut rows: Vec<FileInterval> = Vec::new();
        let mut places = HashMap::new();
        for file in self.moments.iter().flat_map(|moment| &moment.files) {
            match places.entry(file.file.key()) {
                Entry::Vacant(free) => {
                    free.insert(rows.len());
                    rows.push(file.clone());
                }
                Entry::Occupied(taken) => add_next(&mut rows[*taken.get()], file),
            }
        }
        rows
    }

    /// Reasons for intervals that are unknown, other than a file that came or went.
    pub fn gaps(&self) -> impl Iterator<Item = Reason> + '_ {
        self.moments.iter().flat_map(|moment| &moment.files).filter_map(|file| match file.interval {
            Interval::Unknown(Reason::FirstSight | Reason::Gone) | Interval::Known(_) => None,
            Interval::Unknown(reason) => Some(reason),
        })
    }

    /// Moments one by one; of a source that reports late as many together as make its lag small.
    pub(crate) fn stretches(&self) -> impl Iterator<Item = &[Moment]> {
        let elapsed_ns = |moment: &Moment| moment.elapsed_ns().unwrap_or(0);
        let least_ns = self.reporting_delay_ns.saturating_mul(LATE_SPANS);
        let mut rest = &self.moments[..];
        std::iter::from_fn(move || {
            let mut sum_ns = 0_u64;
            let enough = rest.iter().position(|moment| {
                sum_ns = sum_ns.saturating_add(elapsed_ns(moment));
                sum_ns >= least_ns
            });
            // The rest at the end is too short to be judged alone.
            let (stretch, after) = rest.split_at(enough? + 1);
            rest = after;
            Some(stretch)
        })
    }

    /// The part with the newest moments only: those that ended within `span_ns` before the last one did.
    #[must_use]
    pub fn newest(&self, span_ns: u64) -> Observation {
        self.between(span_ns, 0)
    }

    /// The part with the moments that ended within `from_ns` before the last one did, but not within `to_ns`.
    #[must_use]
    pub fn between(&self, from_ns: u64, to_ns: u64) -> Observation {
        let ended = self.ended_unix_ns();
        let until = |ago_ns: u64| {
            let at = ended.saturating_sub(ago_ns);
            self.moments.partition_point(|moment| moment.ended_unix_ns <= at)
        };
        let (first, end) = (until(from_ns), until(to_ns));
        Observation {
            moments: self.moments[first.min(end)..end].to_vec(),
            caps: self.caps.clone(),
            notes: self.notes.clone(),
            neighbours: self.neighbours.clone(),
            log_timing: self.log_timing.clone(),
            troubles: self.troubles.clone(),
            failures: self.failures.clone(),
            seen: self.seen.clone(),
            declared: self.declared.clone(),
            ..*self
        }
    }

    /// When the last moment ended, nanoseconds since 1970; 0 without moments.
    pub fn ended_unix_ns(&self) -> u64 {
        self.moments.last().map_or(0, |moment| moment.ended_unix_ns)
    }
}

/// Adds the next interval of a file to the sum of those before it.
fn add_next(row: &mut FileInterval, next: &FileInterval) {
    row.ended_unix_ns = next.ended_unix_ns;
    row.interval =
        match (std::mem::replace(&mut row.interval, Interval::Unknown(Reason::Gone)), &next.interval) {
            (Interval::Known(sum), Interval::Known(next)) => Interval::Known(sum.followed_by(next)),
            (sum @ Interval::Known(_), Interval::Unknown(_)) => sum,
            (Interval::Unknown(_), next) => next.clone(),
        };
}
