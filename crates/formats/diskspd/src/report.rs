//! Results in diskspd's formats, so that programs that read diskspd's output read Headroom's.
//!
//! ```text
//! Report ──> view::Span (threads, samples, buckets of a timespan) ──> text, text_2016, xml
//! ```
//!
//! `text` is the report of version 2.2, `text_2016` that of 2.0.17 (`parameters` and `tables` are what both
//! share), `xml` the XML result. They are views of the profile and of `workload`'s results.

mod parameters;
mod tables;
mod text;
mod text_2016;
mod view;
mod xml;

pub use text::{profile_text, text};
pub use text_2016::text_2016;
pub use xml::xml;

use crate::profile::Profile;
use workload::PhaseResult;

/// The input of a report, for one call of [`text()`], [`text_2016()`] or [`xml()`].
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// The command line as given, program name included.
    pub command_line: &'a str,
    /// The profile that ran.
    pub profile: &'a Profile,
    /// The machine.
    pub system: &'a SystemFacts,
    /// The results: a phase for each of the profile's timespans, in it a result for each of its targets, in
    /// their order. A run that was ended early has fewer phases.
    pub phases: &'a [PhaseResult],
}

/// The machine as diskspd's reports describe it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemFacts {
    /// Host name.
    pub computer_name: String,
    /// When the program started, nanoseconds since 1970; `None` leaves the line empty.
    pub started_unix_ns: Option<u64>,
    /// The frequency governor ("performance") in the place of Windows' power scheme, where the kernel reports it.
    pub power_scheme: Option<String>,
    /// The machine's CPUs that are on line.
    pub cpus: Vec<CpuFacts>,
}

/// One logical CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuFacts {
    /// The kernel's number.
    pub id: u32,
    /// Its core, counted over the whole machine; CPUs that share one are its hardware threads.
    pub core: u32,
    /// Its NUMA node.
    pub node: u32,
    /// Its socket.
    pub socket: u32,
    /// 0, or higher for faster cores where the machine has several kinds.
    pub efficiency_class: u8,
}

impl SystemFacts {
    pub(crate) fn cpu(&self, id: u32) -> CpuFacts {
        let known = self.cpus.iter().find(|cpu| cpu.id == id);
        known.copied().unwrap_or(CpuFacts { id, core: id, ..CpuFacts::default() })
    }

    /// The different values of a property, sorted.
    pub(crate) fn distinct(&self, of: impl Fn(&CpuFacts) -> u32) -> Vec<u32> {
        let mut values: Vec<u32> = self.cpus.iter().map(of).collect();
        values.sort_unstable();
        values.dedup();
        values
    }

    pub(crate) fn has_hardware_threads(&self) -> bool {
        self.distinct(|cpu| cpu.core).len() < self.cpus.len()
    }

    pub(crate) fn efficiency_class_max(&self) -> u8 {
        self.cpus.iter().map(|cpu| cpu.efficiency_class).max().unwrap_or(0)
    }

    /// "2026/03/05 14:07:09 UTC"; empty where not known.
    pub(crate) fn start_time(&self) -> String {
        let started = self.started_unix_ns.map(|ns| jiff::Timestamp::from_nanosecond(i128::from(ns)));
        match started {
            Some(Ok(time)) => time.strftime("%Y/%m/%d %H:%M:%S UTC").to_string(),
            _ => String::new(),
        }
    }

    pub(crate) fn power_scheme(&self) -> &str {
        self.power_scheme.as_deref().unwrap_or("<unknown>")
    }
}
