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

/// What was collected of a source.
pub(crate) struct SourceCase<'a> {
    pub series: &'a TimeSeries,
    pub settings: &'a Settings,
    pub coverage: &'a Coverage,
    pub totals: &'a GroupTotals,
    pub busiest: &'a [BusyFile],
    /// Files with any time waited.
    pub files_waited: usize,
    pub files: usize,
    pub kept: &'a GradedOperations,
    /// Whether a finding says that the level was broken.
    pub broken: bool,
    pub data_bytes: Figure<u64>,
    pub whole_reads: &'a [WholeRead],
    pub rebuilds: &'a [Rebuild],
    pub vm_writes: &'a [VmWrite],
    pub waited: &'a BTreeMap<WaitClass, WaitTotals>,
    pub usual_known: bool,
    /// Other days of which an hour of the stretch is kept.
    pub days: usize,
}
