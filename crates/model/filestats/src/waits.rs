//! Waits of sessions: cumulative wait counters of all engines under one set of classes.
//!
//! ```text
//! event ("PAGEIOLATCH_SH", "DataFileRead", "wait/io/file/innodb/innodb_data_file")
//!    └─ sqlserver::class(), postgres::class(), mysql::class() ─> WaitClass ─> implies()
//! two Snapshots ─> wait_intervals() ─> WaitInterval ─┐
//!                  intervals()      ─> FileInterval ─┴─> reconcile() ─> Reconciled: are they consistent?
//! ```

pub mod mysql;
pub mod postgres;
mod reconcile;
pub mod sqlserver;

pub use reconcile::{Agreement, Reconciled, reconcile};

use crate::{Epoch, Figure, Reason, Rules, Snapshot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Purpose of a wait, whatever the engine calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WaitClass {
    /// A page of data that is being read for this session.
    DataRead,
    /// A page of data that another session is reading.
    PeersRead,
    /// A page of data that is being written, or a file that grows.
    DataWrite,
    /// Data files that are being synced.
    DataSync,
    /// A write of the log.
    LogWrite,
    /// A sync of the log, what a commit waits for.
    LogSync,
    /// Sorts, hashes and other work that spilled.
    Temp,
    /// A backup or copy of files.
    Backup,
    /// A configured limit: Resource Governor, a log rate, a cost delay.
    Throttled,
    /// Another machine that must have the log first.
    Replication,
    /// Other I/O.
    Other,
}

/// One wait event since its epoch began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitSample {
    /// The counting program, as in [`crate::FileIdentity::instance`].
    pub instance: String,
    /// The engine's own name of it.
    pub event: String,
    /// Its class.
    pub class: WaitClass,
    /// Since when the counters grow.
    pub epoch: Epoch,
    /// Waits that began or ended, as the engine counts them.
    pub count: Figure<u64>,
    /// Summed time of them, nanoseconds.
    pub wait_ns: Figure<u64>,
}

/// Waits between two captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitDelta {
    /// Time between the captures on the source's clock.
    pub elapsed_ns: u64,
    /// Waits.
    pub count: Figure<u64>,
    /// Their summed time.
    pub wait_ns: Figure<u64>,
}

/// One event's interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitInterval {
    /// The counting program.
    pub instance: String,
    /// The event, in the engine's word.
    pub event: String,
    /// Our class of it.
    pub class: WaitClass,
    /// Growth of the counters, or why it cannot be known.
    pub interval: Figure<WaitDelta>,
}

/// The waits between two snapshots of one source, a row for each event of the later one.
pub fn wait_intervals(earlier: &Snapshot, later: &Snapshot, rules: Rules) -> Vec<WaitInterval> {
    let before: BTreeMap<_, &WaitSample> = earlier.waits.iter().map(|wait| (wait.key(), wait)).collect();
    let elapsed_ns = later.clock_ns.checked_sub(earlier.clock_ns);
    let from_zero = earlier.missing_is_zero_until(later);
    let row = |now: &WaitSample| WaitInterval {
        instance: now.instance.clone(),
        event: now.event.clone(),
        class: now.class,
        interval: match before.get(&now.key()) {
            Some(then) => between(then, now, elapsed_ns, rules),
            None if from_zero => between(&now.at_zero(), now, elapsed_ns, rules),
            None => Figure::unknown(Reason::FirstSight),
        },
    };
    later.waits.iter().map(row).collect()
}

pub(crate) fn between(
    then: &WaitSample,
    now: &WaitSample,
    elapsed_ns: Option<u64>,
    rules: Rules,
) -> Figure<WaitDelta> {
    if let Some(reason) = then.epoch.ended(&now.epoch) {
        return Figure::unknown(reason);
    }
    let since = |now: Figure<u64>, then: Figure<u64>| now.zip(then, u64::checked_sub).transpose();
    let delta = |elapsed_ns| match (since(now.count, then.count), since(now.wait_ns, then.wait_ns)) {
        (Some(count), Some(wait_ns)) => Figure::Known(WaitDelta { elapsed_ns, count, wait_ns }),
        _ => Figure::unknown(Reason::CounterFell),
    };
    rules.elapsed_ns(elapsed_ns).map(delta).flatten()
}

impl WaitSample {
    fn key(&self) -> (&str, &str) {
        (&self.instance, &self.event)
    }

    pub(crate) fn at_zero(&self) -> WaitSample {
        WaitSample { count: self.count.map(|_| 0), wait_ns: self.wait_ns.map(|_| 0), ..self.clone() }
    }
}

impl WaitDelta {
    /// Mean time of one wait in nanoseconds.
    pub fn mean_ns(&self) -> Figure<f64> {
        match self.count {
            Figure::Known(0) => Figure::unknown(Reason::NoOperations),
            count => self.wait_ns.zip(count, |wait, count| wait as f64 / count as f64),
        }
    }

    /// Whether anybody waited, as far as that is counted.
    pub fn is_any(&self) -> bool {
        [self.count, self.wait_ns].iter().any(|figure| figure.known().is_some_and(|value| value > 0))
    }

    /// Mean number of sessions that waited.
    pub fn sessions(&self) -> Figure<f64> {
        self.wait_ns.map(|wait| wait as f64 / self.elapsed_ns as f64)
    }
}

impl WaitClass {
    /// All of them.
    pub const ALL: [WaitClass; 11] = [
        WaitClass::DataRead,
        WaitClass::PeersRead,
        WaitClass::DataWrite,
        WaitClass::DataSync,
        WaitClass::LogWrite,
        WaitClass::LogSync,
        WaitClass::Temp,
        WaitClass::Backup,
        WaitClass::Throttled,
        WaitClass::Replication,
        WaitClass::Other,
    ];

    /// A word for it: "data-read".
    pub fn word(self) -> &'static str {
        match self {
            WaitClass::DataRead => "data-read",
            WaitClass::PeersRead => "peers-read",
            WaitClass::DataWrite => "data-write",
            WaitClass::DataSync => "data-sync",
            WaitClass::LogWrite => "log-write",
            WaitClass::LogSync => "log-sync",
            WaitClass::Temp => "temp",
            WaitClass::Backup => "backup",
            WaitClass::Throttled => "throttled",
            WaitClass::Replication => "replication",
            WaitClass::Other => "other",
        }
    }

    /// Meaning for the reader where much time goes into it.
    pub fn implies(self) -> &'static str {
        match self {
            WaitClass::DataRead => {
                "reads of data are slow, or too many: compare with the files' read latency, then look at plans, \
                 indexes and memory"
            }
            WaitClass::PeersRead => {
                "several sessions want a page that one of them is reading: the same causes as slow reads"
            }
            WaitClass::DataWrite => {
                "sessions write data themselves: files that grow, a cache too small for what is changed, or slow \
                 writes"
            }
            WaitClass::DataSync => {
                "a checkpoint or a growing file waits for the storage's cache to be emptied"
            }
            WaitClass::LogWrite => {
                "the log's storage is slow, or it is written in too many small pieces: batch commits"
            }
            WaitClass::LogSync => {
                "commits wait for the log to be on stable storage: its sync latency, times commits that cannot share \
                 one"
            }
            WaitClass::Temp => "sorts and hashes do not fit into their memory and spill to files",
            WaitClass::Backup => "a backup or copy reads or writes beside the workload",
            WaitClass::Throttled => "a configured limit adds the time, not the storage",
            WaitClass::Replication => {
                "another machine must have the log first: network and its storage, not this one"
            }
            WaitClass::Other => "look the event up by its name",
        }
    }
}

impl fmt::Display for WaitClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitClass::DataRead => "data read",
            WaitClass::PeersRead => "another's data read",
            WaitClass::DataWrite => "data write",
            WaitClass::DataSync => "data sync",
            WaitClass::LogWrite => "log write",
            WaitClass::LogSync => "log sync",
            WaitClass::Temp => "temporary files",
            WaitClass::Backup => "backup",
            WaitClass::Throttled => "throttled",
            WaitClass::Replication => "replication",
            WaitClass::Other => "other I/O",
        })
    }
}
