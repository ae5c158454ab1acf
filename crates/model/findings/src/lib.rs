//! Meaning of a run: whether the storage was measured, whether the figures can be trusted, and what they say.
//!
//! ```text
//! RunResult + RunConditions (RAM, device cache, cores, a measured knee, from the caller)
//!      │  Case::new(): latencies of both directions, the series row by row
//!      v
//! findings()   RULES, each of them a function Case -> Option<Finding>:
//!      │         whole    nothing measured, interrupted, stopped, errors, verification, target gone, too few I/Os
//!      │         client   CPU, other load, threads agree
//!      │         target   size against RAM and caches, exact multiples, sectors
//!      │         over_time  steady state, cliffs, stalls            (run_series.rs, steady.rs, cliffs.rs)
//!      │         laws     Little, bytes = I/Os x size, the measured knee; capped: a configured limit
//!      │         arrivals requested rate, hidden stalls, a late generator
//!      │         sample   percentiles that stand; jump, bands: where they jump; shares: writes, syncs
//!      v
//! Vec<Finding> kind, weight, one sentence, facts { what, value, unit }, remedy; the worst first
//! ```
//!
//! Limits and their sources are in `limits.rs`. Data that a result does not contain give no finding, never a
//! reassuring one. Pure: no I/O, no clock; every rule is tested with plain values.

mod arrivals;
mod bands;
mod capped;
mod case;
mod client;
mod cliffs;
mod finding;
mod jump;
pub mod ladder;
mod laws;
mod limits;
mod over_time;
mod run_series;
mod sample;
mod shares;
pub mod steady;
mod target;
mod whole;
pub mod words;

pub use finding::{Fact, Finding, FindingKind, Weight};

use capability::Knee;
use case::Case;
use filestats::Profile;
use workload::RunResult;

/// Facts of the machine and the storage that the caller knows and a result does not contain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunConditions {
    /// Bytes of main memory.
    pub memory_bytes: Option<u64>,
    /// Bytes of the cache in the device, controller or array.
    pub device_cache_bytes: Option<u64>,
    /// The unit in which the device really writes.
    pub sector_bytes: Option<u32>,
    /// Cores of the machine.
    pub cores: Option<u32>,
    /// Whether the device is a rotating disk.
    pub rotational: Option<bool>,
    /// The knee of a stored capability of this storage, for the same shape of I/O.
    pub knee: Option<Knee>,
    /// The scale of latency bands.
    pub profile: Profile,
}

type Rule = fn(&Case) -> Option<Finding>;

/// The rules that hold for every run, in the order in which findings of the same weight are read.
const RULES: &[Rule] = &[
    whole::nothing_measured,
    whole::errors,
    whole::verification,
    whole::interrupted,
    whole::stopped,
    whole::target_gone,
    whole::target_cut,
    whole::too_few_ios,
];

/// The rules after them, which say what limited the load: of a program that was stopped they would blame its processors or the
/// storage for that time.
const RULES_OF_LOAD: &[Rule] = &[
    client::cpu,
    client::other_load,
    client::threads,
    target::size,
    target::multiple,
    target::sectors,
    arrivals::rate,
    arrivals::late_generator,
    arrivals::response,
    laws::outstanding,
    laws::transfer_size,
    laws::knee,
    over_time::steady_state,
    over_time::cliffs,
    over_time::stalls,
    capped::capped,
    sample::percentiles,
    jump::percentile_jump,
    bands::bands,
    shares::write_share,
    shares::syncs,
];

/// Findings of a run; warnings first, then notes, then the points that are in order.
pub fn findings(result: &RunResult, conditions: &RunConditions) -> Vec<Finding> {
    let case = Case::new(result, conditions);
    let of_load = if result.was_stopped() { &[][..] } else { RULES_OF_LOAD };
    let mut found: Vec<Finding> = RULES.iter().chain(of_load).filter_map(|rule| rule(&case)).collect();
    found.sort_by_key(|finding| std::cmp::Reverse(finding.weight));
    found
}

/// Whether the figures may be used: no finding invalidates them.
pub fn is_valid(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| !finding.invalidates())
}
