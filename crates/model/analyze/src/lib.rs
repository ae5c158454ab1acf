//! Analysis of a stored stretch of file statistics: slow files, unusual load, background jobs, and the next thing to
//! examine (what PAL does for Windows).
//!
//! A week of twenty servers is a hundred million intervals, so that it is never held as a whole. An [`Analyzer`] takes
//! the files of one source sequentially (a [`FileSeries`] is a few megabytes at most). Rules for single files are applied
//! at once (`FILE_RULES`); what needs several files (checkpoints, backups, rebuilds, waits beside stalls, the busiest
//! file) is kept as a sum per interval (`group_totals.rs`) or as a short list, and judged at the end (`SOURCE_RULES`).
//! `findings` judges one run of which every I/O is known; this crate judges long series of means with gaps. They share
//! facts, weights and the wording of numbers.
//!
//! ```text
//! TimeSeries (captures) + FileSeries (one file, step by step) ──> Analyzer::add_file ──> FILE_RULES ──┐
//!          + the same hours of other days (Earlier)             └ sums per interval            ├─> Analysis
//! WaitSeries ──> Analyzer::add_waits      gaps ──> Analyzer::set_gaps     SOURCE_RULES at the end  ──┘   findings, busiest
//!                                                                                                  files, coverage
//! ```
//!
//! Every finding has its figures, its times and the next step; a recognised job only "looks like" one. Unknown intervals
//! (across a restart, untimed, without a size) give no finding. Limits and their sources are in `limits.rs`. Pure: no
//! I/O, no clock.

mod analyzer;
mod breaches;
mod busiest;
mod busy_file;
mod captured;
mod case;
mod coverage;
mod finding;
mod gaps;
mod graded;
mod group_totals;
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

/// The stretch to analyse, and the references for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The stretch, nanoseconds since 1970.
    pub from_unix_ns: u64,
    /// Its end.
    pub until_unix_ns: u64,
    /// The latency promised to the users.
    pub service_level: ServiceLevel,
    /// The scale that latencies are named by.
    pub profile: Profile,
    /// Bounds of a usable interval.
    pub rules: Rules,
}

/// Analysis of one source's stretch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// The source.
    pub source: String,
    /// Known part of the stretch.
    pub coverage: Coverage,
    /// The findings, the worst first.
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
    gaps::gaps,
    gaps::ended_epochs,
    service_level::service_level,
];
