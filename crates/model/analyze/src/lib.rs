//! What a stored stretch of file statistics shows to somebody who asks "what was it like, and what do I look at?":
//! PAL for today.
//!
//! Design: a week of twenty servers is a hundred million intervals, so that it is never held as a whole. One source
//! after the other goes through a [`Analyzer`], in it one file after the other (a [`FileSeries`], a few megabytes at
//! most). What a rule can say of one file alone it says at once (`FILE_RULES`); what needs several files (checkpoints,
//! backups, rebuilds, waits beside stalls, the busiest file) is left as a sum per interval (`group_totals.rs`) or as a
//! short list, and judged at the end (`SOURCE_RULES`). It is a room of its own, not a part of `findings`: that one
//! looks at one run whose every I/O is known, this one at long courses of means with holes in them; they share the
//! words, facts and weights.
//!
//! ```text
//! TimeSeries (captures) + FileSeries (one file, step by step) ──> Analyzer::add_file ──> FILE_RULES ──┐
//!          + the same hours of other days (Earlier)             └ sums per interval            ├─> Analysis
//! WaitSeries ──> Analyzer::add_waits      gaps ──> Analyzer::set_gaps     SOURCE_RULES at the end  ──┘   findings, busiest
//!                                                                                                  files, coverage
//! ```
//!
//! Every finding has its figures, its times and the next thing to look at; what it recognises "looks like" something.
//! Nothing is found in what is unknown: an interval across a restart, an untimed read, a size that nobody told. Limits
//! and their sources are in `limits.rs`. Pure: no I/O, no clock.

mod analyzer;
mod breaches;
mod busiest;
mod busy_file;
mod captured;
mod case;
mod coverage;
mod finding;
mod graded;
mod group_totals;
mod holes;
mod hours;
mod jobs;
pub mod limits;
mod rereads;
mod serial;
mod service_level;
mod source_case;
mod spikes;

mod wait_totals;
mod waits;

pub use analyzer::Analyzer;
pub use busy_file::{AtMost, BusyFile};
pub use case::{Direction, Earlier};
pub use coverage::{Coverage, Gap};
pub use finding::{Finding, FindingKind, Span};

pub use filestats::{FileSeries, TimeSeries, WaitSeries};

use case::FileCase;
use filestats::{Profile, Rules, ServiceLevel};
use serde::{Deserialize, Serialize};
use source_case::SourceCase;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The stretch, nanoseconds since 1970.
    pub from_unix_ns: u64,
    /// Its end.
    pub until_unix_ns: u64,
    /// What the users are promised.
    pub service_level: ServiceLevel,
    /// The scale that latencies are named by.
    pub profile: Profile,
    /// What makes an interval worthless.
    pub rules: Rules,
}

/// What one source's stretch shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// The source.
    pub source: String,
    /// How much of the stretch is known at all.
    pub coverage: Coverage,
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
    /// The files that were waited for longest.
    pub busiest: Vec<BusyFile>,
}

/// The rules for one file.
const FILE_RULES: &[fn(&FileCase) -> Vec<Finding>] = &[
    breaches::breaches,
    spikes::slower_than_usual,
    spikes::more_than_usual,
    serial::serial,
    rereads::rereads,
    jobs::vacuum_by_name,
];

/// The rules for all files of a source together.
const SOURCE_RULES: &[fn(&SourceCase) -> Vec<Finding>] = &[
    waits::not_the_disk,
    busiest::one_file,
    jobs::checkpoints,
    jobs::backups,
    jobs::rebuilds,
    spikes::no_normal,
    holes::holes,
    holes::ended_epochs,
    service_level::service_level,
];
