//! All files of a source together, for the rules that need several of them.

use crate::Settings;
use crate::busy_file::BusyFile;
use crate::coverage::Coverage;
use crate::graded::GradedOperations;
use crate::group_totals::GroupTotals;
use crate::jobs::candidates::{Rebuild, VmWrite, WholeRead};
use crate::wait_totals::WaitTotals;
use filestats::{Figure, TimeSeries, WaitClass};
use std::collections::BTreeMap;

/// Data collected of a source.
pub(crate) struct SourceCase<'a> {
    pub series: &'a TimeSeries,
    pub settings: &'a Settings,
    pub coverage: Coverage,
    pub totals: GroupTotals,
    pub busiest: Vec<BusyFile>,
    /// Files with any time waited.
    pub files_waited: usize,
    pub kept: GradedOperations,
    /// Whether a finding says that the level was broken.
    pub broken: bool,
    pub data_bytes: Figure<u64>,
    pub whole_reads: Vec<WholeRead>,
    pub rebuilds: Vec<Rebuild>,
    pub vm_writes: Vec<VmWrite>,
    pub waited: BTreeMap<WaitClass, WaitTotals>,
    /// Other days of which an hour of the stretch is kept.
    pub days: usize,
}
