//! Whether a resource was full: throughput stopped growing while outstanding I/Os grew.
//!
//! ```text
//! rate                     levels of outstanding I/Os, half a doubling each, and the median rate in each
//!  │        ____________   plateau: rates of all levels from here on agree within 7 %, and outstanding I/Os double at least
//!  │      .                latency of the last level over that of all below the plateau: 1.67 x, else latency is only noisy
//!  │    .                  below: rates of at most 0.8 x the plateau, so that the demand is not just constant
//!  └─────────────────── outstanding
//! ```
//!
//! The device must be busy all the time then, or a limit above it hold the I/Os back. Where that is not known, outstanding I/Os must
//! grow four-fold.
//!
//! A limit that is set on this host is known: it was full where as much passed as it allows.
//!
//! Only windows with I/Os alike are compared: sizes within a factor, shares of writes within some percent. Reads whose rate is
//! constant while that of the writes beside them is not are full themselves; otherwise it is what both share.

use crate::CONTRADICTS;
use crate::reached::{Rate, Rates};
use crate::window::{LIMITED, Side, Window};
use capability::{Bound, Origin, Resource, ResourceName};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A resource that was seen full.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saturated {
    /// The resource.
    pub name: ResourceName,
    /// Its rate, I/Os or bytes a second.
    pub value: f64,
    /// The lowest and highest rate of four fifths of the windows in which it was full.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// Mean bytes of the I/Os.
    pub io_bytes: f64,
    /// Share of writes among all I/Os, 0 to 1.
    pub write_share: f64,
    /// Outstanding I/Os from which on it was full.
    pub outstanding: f64,
    /// Windows in which it was full.
    pub windows: u32,
    /// When it was last, nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// The limit of this host that made it full, as the host counts it. It counts only while it is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
}

/// Windows that are compared, at least: three minutes.
const WINDOWS_MIN: usize = 36;
/// Windows of one level.
const LEVEL_WINDOWS_MIN: usize = 3;
/// Levels for each doubling of outstanding I/Os.
const LEVELS_PER_DOUBLING: f64 = 2.0;
/// Outstanding I/Os grow by this factor on a plateau of a device that is always busy.
const OUTSTANDING_GROWS: f64 = 2.0;
/// Growth on a plateau where it is not known whether the device is busy, or a limit above it holds I/Os back: the queue of a
/// single server varies by less than this from window to window at 70 % of its load, by chance alone (M/M/1).
const OUTSTANDING_GROWS_UNKNOWN: f64 = 4.0;
/// A device that is busy for this share of the time is always busy.
const BUSY: f64 = 0.98;
/// Rates that agree.
const FLAT: f64 = 0.07;
/// Rates below a plateau.
const BELOW: f64 = 0.8;
/// Latency on the plateau over latency below it, where outstanding I/Os grow on the plateau.
const LATENCY_GROWS: f64 = 1.67;
/// Latency on the plateau over latency below it, where outstanding I/Os were never seen to grow on it: a
/// queue that is this long has a busy server before it.
const LATENCY_OF_A_QUEUE: f64 = 8.0;
/// Sizes that are alike.
const SIZE_ALIKE: f64 = 1.5;
/// Shares of writes that are alike.
const SHARE_ALIKE: f64 = 0.15;
/// I/Os of one direction only.
const ONE_SIDED: f64 = 0.05;
/// How far the rate of one direction varies, as a part of all I/Os, where it does not follow from that of the other.
const VARIES: f64 = 0.2;
/// Sizes from here on are limited in bytes rather than in operations, where the windows do not say.
const LARGE_BYTES: f64 = 65_536.0;
/// Spreads that differ by this factor say whether operations or bytes are constant.
const STEADIER: f64 = 0.7;

/// The I/Os of a window that are examined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    Both,
    Reads,
    Writes,
}

/// One window of a lane.
#[derive(Clone, Copy)]
struct Sample {
    at_unix_ns: u64,
    rate: Rate,
    outstanding: f64,
    rates: Rates,
    busy: Option<f64>,
    is_held_back: bool,
}

/// The part of the windows in which throughput was flat.
struct Plateau {
    full: Vec<Sample>,
    entry: f64,
}

impl Lane {
    fn sample(self, window: &Window) -> Option<Sample> {
        let rates = window.rates();
        let side = |side: &Side| side.outstanding(window.elapsed_s);
        let (rate, outstanding) = match self {
            Lane::Both => (rates.both(), window.outstanding()),
            Lane::Reads => (rates.reads, side(&window.reads)),
            Lane::Writes => (rates.writes, side(&window.writes)),
        };
        let is_used = rate.ios > 0.0 && rate.bytes > 0.0 && outstanding > 0.0;
        is_used.then(|| Sample {
            at_unix_ns: window.ended_unix_ns,
            rate,
            outstanding,
            rates,
            busy: window.busy(),
            is_held_back: window.is_held_back(),
        })
    }

    fn name(self, in_bytes: bool) -> ResourceName {
        match (self, in_bytes) {
            (Lane::Both, false) => ResourceName::Operations,
            (Lane::Both, true) => ResourceName::Bandwidth,
            (Lane::Reads, false) => ResourceName::ReadOperations,
            (Lane::Reads, true) => ResourceName::ReadBandwidth,
            (Lane::Writes, false) => ResourceName::WriteOperations,
            (Lane::Writes, true) => ResourceName::WriteBandwidth,
        }
    }
}

/// Resources that were full in these windows, apart from those that limits of this host hold back.
pub(crate) fn find(windows: &VecDeque<Window>) -> Vec<Saturated> {
    // A rate that a limit holds down says nothing of what both directions share, or of the storage below the limit.
    let others: Vec<Window> = windows.iter().filter(|window| !window.is_near_limit()).copied().collect();
    if let Some(both) = full_lane(&others, Lane::Both) {
        return vec![both];
    }
    [Lane::Reads, Lane::Writes].into_iter().filter_map(|lane| full_lane(&others, lane)).collect()
}

/// The resources on which no limit was set in any of the `newest` windows.
pub(crate) fn unlimited(windows: &VecDeque<Window>, newest: usize) -> impl Iterator<Item = ResourceName> {
    let is_unlimited =
        move |kind: usize| windows.iter().rev().take(newest).all(|window| window.limits[kind].is_none());
    LIMITED.into_iter().enumerate().filter(move |(kind, _)| is_unlimited(*kind)).map(|(_, (_, name))| name)
}

/// Limits set on this host that held I/Os back in these windows.
pub(crate) fn find_limited(windows: &VecDeque<Window>) -> Vec<Saturated> {
    LIMITED
        .into_iter()
        .enumerate()
        .filter_map(|(kind, (_, name))| full_by_limit(windows, kind, name))
        .collect()
}

/// A limit that held I/Os back. Where I/Os wait is not known to every database, and not to the device, so
/// that outstanding I/Os do not show it.
fn full_by_limit(windows: &VecDeque<Window>, kind: usize, name: ResourceName) -> Option<Saturated> {
    let per_second = windows.back()?.limits[kind]?.per_second;
    let is_full = |window: &&Window| {
        window.at_limit(kind).is_some_and(|limit| limit.per_second.to_bits() == per_second.to_bits())
    };
    let full: Vec<Sample> = windows.iter().filter(is_full).filter_map(|one| Lane::Both.sample(one)).collect();
    if full.len() < LEVEL_WINDOWS_MIN {
        return None;
    }
    // Below a limit, large I/Os are divided, others are merged, and flushes are not counted; and it may not hold for all programs.
    // Its count is then not the device's.
    let share = quantile(&full, 0.5, |sample| sample.rates.figure(name)) / per_second;
    if !(1.0 / CONTRADICTS..=CONTRADICTS).contains(&share) {
        return None;
    }
    let rate = |sample: &Sample| sample.rates.figure(name).min(per_second);
    Some(Saturated {
        name,
        value: per_second,
        low: quantile(&full, 0.1, rate),
        high: per_second,
        io_bytes: quantile(&full, 0.5, |sample| sample.rates.bytes_each(name)),
        write_share: quantile(&full, 0.5, |sample| sample.rates.write_share()),
        outstanding: quantile(&full, 0.1, |sample| sample.outstanding),
        windows: u32::try_from(full.len()).unwrap_or(u32::MAX),
        at_unix_ns: full.iter().map(|sample| sample.at_unix_ns).max()?,
        limit: Some(per_second),
    })
}

fn full_lane(windows: &[Window], lane: Lane) -> Option<Saturated> {
    let samples: Vec<Sample> = windows.iter().filter_map(|window| lane.sample(window)).collect();
    let alike = alike(samples, lane);
    if alike.len() < WINDOWS_MIN {
        return None;
    }
    let operations = plateau(&alike, |sample| sample.rate.ios);
    let bytes = plateau(&alike, |sample| sample.rate.bytes);
    let in_bytes = match (&operations, &bytes) {
        (None, None) => return None,
        (Some(plateau), Some(_)) => is_limited_in_bytes(&plateau.full),
        (operations, _) => operations.is_none(),
    };
    let plateau = if in_bytes { bytes? } else { operations? };
    let full = &plateau.full;
    let lane = match lane {
        Lane::Both => narrowed(full),
        lane if stands_alone(full, lane) => lane,
        _ => return None,
    };
    let value = |sample: &Sample| {
        let rate = match lane {
            Lane::Both => sample.rates.both(),
            Lane::Reads => sample.rates.reads,
            Lane::Writes => sample.rates.writes,
        };
        if in_bytes { rate.bytes } else { rate.ios }
    };
    let name = lane.name(in_bytes);
    Some(Saturated {
        name,
        value: quantile(full, 0.5, value),
        low: quantile(full, 0.1, value),
        high: quantile(full, 0.9, value),
        io_bytes: quantile(full, 0.5, |sample| sample.rates.bytes_each(name)),
        write_share: quantile(full, 0.5, |sample| sample.rates.write_share()),
        outstanding: plateau.entry,
        windows: u32::try_from(full.len()).unwrap_or(u32::MAX),
        at_unix_ns: full.iter().map(|sample| sample.at_unix_ns).max()?,
        limit: None,
    })
}

/// The windows whose I/Os are like those of the windows with the most outstanding.
fn alike(mut samples: Vec<Sample>, lane: Lane) -> Vec<Sample> {
    samples.sort_by(|a, b| b.outstanding.total_cmp(&a.outstanding));
    let busiest = &samples[..samples.len().div_ceil(4)];
    if busiest.is_empty() {
        return Vec::new();
    }
    let bytes = quantile(busiest, 0.5, |sample| sample.rate.bytes_each());
    let share = quantile(busiest, 0.5, |sample| sample.rates.write_share());
    samples.retain(|sample| {
        let size = sample.rate.bytes_each() / bytes;
        let is_alike = (sample.rates.write_share() - share).abs() <= SHARE_ALIKE;
        (1.0 / SIZE_ALIKE..=SIZE_ALIKE).contains(&size) && (lane != Lane::Both || is_alike)
    });
    samples
}

/// The plateau of a rate over outstanding I/Os, where there is one.
fn plateau(samples: &[Sample], rate: fn(&Sample) -> f64) -> Option<Plateau> {
    let level = |sample: &Sample| (sample.outstanding.log2() * LEVELS_PER_DOUBLING).floor() as i32;
    let mut levels: Vec<i32> = samples.iter().map(level).collect();
    levels.sort_unstable();
    levels.dedup();
    let of_level = |at: i32| samples.iter().filter(move |sample| level(sample) == at).copied();
    let known = levels.into_iter().filter_map(|at| {
        let of_it: Vec<Sample> = of_level(at).collect();
        (of_it.len() >= LEVEL_WINDOWS_MIN).then(|| (at, quantile(&of_it, 0.5, rate)))
    });
    let known: Vec<(i32, f64)> = known.collect();
    let most = known.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let flat = known.iter().rev().take_while(|(_, rate)| *rate >= most * (1.0 - FLAT));
    let (first, last) = (flat.clone().last()?.0, flat.clone().next()?.0);
    let outstanding_at = |at: i32| (f64::from(at) / LEVELS_PER_DOUBLING).exp2();
    let at_last: Vec<Sample> = of_level(last).collect();
    let grows = outstanding_at(last) / outstanding_at(first) >= growth_needed(&at_last)?;
    let below: Vec<Sample> = samples
        .iter()
        .filter(|sample| level(sample) < first && rate(sample) <= most * BELOW)
        .copied()
        .collect();
    if below.len() < LEVEL_WINDOWS_MIN {
        return None;
    }
    let latency = |sample: &Sample| sample.outstanding / sample.rate.ios;
    let queued = quantile(&at_last, 0.5, latency);
    let is_queue = queued >= LATENCY_OF_A_QUEUE * quantile(&below, 0.5, latency);
    let is_late = queued >= LATENCY_GROWS * quantile(&below, 0.75, latency);
    if !(is_queue || grows && is_late) {
        return None;
    }
    // Where it is entered, throughput still grows a little.
    let inner = if last > first { first + 1 } else { first };
    let full = samples.iter().filter(|sample| level(sample) >= inner && rate(sample) >= most * BELOW);
    Some(Plateau { full: full.copied().collect(), entry: outstanding_at(first) })
}

/// Factor by which outstanding I/Os must grow on a plateau; `None` where the device is not always busy and nothing holds
/// I/Os back above it: then nothing is full.
fn growth_needed(samples: &[Sample]) -> Option<f64> {
    let held_back = samples.iter().filter(|sample| sample.is_held_back).count();
    let busy = samples.iter().map(|sample| sample.busy).collect::<Option<Vec<f64>>>();
    let is_most = |count: usize| count * 2 >= samples.len();
    match busy {
        Some(busy) if is_most(busy.iter().filter(|share| **share >= BUSY).count()) => Some(OUTSTANDING_GROWS),
        Some(_) if !is_most(held_back) => None,
        _ => Some(OUTSTANDING_GROWS_UNKNOWN),
    }
}

/// Whether bytes are steadier than operations; where all I/Os are of one size, whether that is large.
fn is_limited_in_bytes(full: &[Sample]) -> bool {
    let spread = |rate: fn(&Sample) -> f64| {
        (quantile(full, 0.9, rate) - quantile(full, 0.1, rate)) / quantile(full, 0.5, rate)
    };
    let (operations, bytes) = (spread(|sample| sample.rate.ios), spread(|sample| sample.rate.bytes));
    let is_large = quantile(full, 0.5, |sample| sample.rate.bytes_each()) >= LARGE_BYTES;
    bytes < operations * STEADIER || is_large && operations >= bytes * STEADIER
}

/// One direction, where nearly all I/Os are of it.
fn narrowed(full: &[Sample]) -> Lane {
    match quantile(full, 0.5, |sample| sample.rates.write_share()) {
        share if share <= ONE_SIDED => Lane::Reads,
        share if share >= 1.0 - ONE_SIDED => Lane::Writes,
        _ => Lane::Both,
    }
}

/// Whether the other direction varied while this one was full: then they do not share what was full.
fn stands_alone(full: &[Sample], lane: Lane) -> bool {
    let other = |sample: &Sample| match lane {
        Lane::Reads => sample.rates.writes.ios,
        _ => sample.rates.reads.ios,
    };
    let varies = quantile(full, 0.9, other) - quantile(full, 0.1, other);
    varies >= VARIES * quantile(full, 0.5, |sample| sample.rates.both().ios)
}

/// The value below which that share of the samples lies.
fn quantile(samples: &[Sample], share: f64, value: impl Fn(&Sample) -> f64) -> f64 {
    let mut values: Vec<f64> = samples.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    let at = (values.len().saturating_sub(1) as f64 * share).round() as usize;
    values.get(at).copied().unwrap_or(0.0)
}

impl Saturated {
    /// Whether these rates are of I/Os like those with which it was full.
    pub(crate) fn is_like(&self, rates: &Rates) -> bool {
        let size = rates.bytes_each(self.name) / self.io_bytes;
        let concerns_both = matches!(self.name, ResourceName::Operations | ResourceName::Bandwidth);
        let share = (rates.write_share() - self.write_share).abs();
        (1.0 / SIZE_ALIKE..=SIZE_ALIKE).contains(&size) && (!concerns_both || share <= SHARE_ALIKE)
    }

    /// Whether both are the same resource, full by limits, or with I/Os alike.
    pub(crate) fn is_same(&self, other: &Saturated) -> bool {
        if self.limit.is_some() || other.limit.is_some() {
            return self.name == other.name && self.limit.is_some() && other.limit.is_some();
        }
        let size = other.io_bytes / self.io_bytes;
        let share = (other.write_share - self.write_share).abs();
        self.name == other.name && (1.0 / SIZE_ALIKE..=SIZE_ALIKE).contains(&size) && share <= SHARE_ALIKE
    }

    /// The part of it that a demand of such I/Os uses.
    pub(crate) fn share(&self, demand: &Rates) -> Option<f64> {
        self.is_like(demand).then(|| demand.figure(self.name) / self.value)
    }

    /// Its figure.
    pub fn resource(&self) -> Resource {
        Resource {
            name: self.name,
            value: self.value,
            unit: self.name.unit(),
            bound: Bound::Exact,
            interval: Some((self.low, self.high)),
            io_bytes: Some(self.io_bytes),
            write_percent: Some((self.write_share * 100.0).round() as u8),
            from: Origin::Seen,
            at_unix_ns: self.at_unix_ns,
        }
    }
}
