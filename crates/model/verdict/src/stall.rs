//! Tasks that were stalled on I/O, and the layers that account for it.

use crate::case::Case;
use crate::figures::IOS_TO_COMPARE;
use crate::thresholds::{COVERAGE_MIN, EXPLAINED_MIN, OUTSTANDING_IDLE, STALLED_MIN};
use crate::{Evidence, Figures, Observation, Pressure};
use filestats::{Figure, Ops};
use std::fmt;
use workload::{CapKind, Unit};

/// Tasks that were stalled on I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tasks {
    Host,
    Group,
}

impl fmt::Display for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Tasks::Host => "tasks of this host",
            Tasks::Group => "tasks in the database's control group",
        })
    }
}

/// Tasks that were stalled on I/O for much of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stall {
    pub whose: Tasks,
    /// Of the time, 0 to 1.
    pub share: f64,
    /// Share of the time in which the busiest device had I/Os outstanding.
    pub device: f64,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} were stalled on I/O {:.0} % of the time", self.whose, self.share * 100.0)
    }
}

impl Case<'_> {
    /// Tasks that were stalled for much of the time, though no device of this host was busy for half of that. Of the database's
    /// control group where that is known: other programs may wait for other things.
    pub fn stall_above_devices(&self) -> Option<Stall> {
        let group = self.pressure(|pressure| pressure.group_ns);
        let (whose, share) = match group {
            Some(share) => (Tasks::Group, share),
            None => (Tasks::Host, self.pressure(|pressure| pressure.host_ns)?),
        };
        let device = self.pressure(|pressure| pressure.device_ns)?;
        // Waits of the database for its other volumes are found there.
        let elsewhere = self.observation.outstanding_elsewhere;
        let is_above = share >= STALLED_MIN && device.max(elsewhere) < share * EXPLAINED_MIN;
        is_above.then_some(Stall { whose, share, device })
    }

    /// A stall that the database's own count of its waits does not account for either.
    pub fn unexplained_stall(&self) -> Option<Stall> {
        self.stall_above_devices().filter(|stall| self.figures.outstanding < stall.share * EXPLAINED_MIN)
    }

    /// A stall that stands for waits of sessions that the database does not time.
    pub fn untimed_stall(&self) -> Option<Stall> {
        let figures = &self.figures;
        let stands_in = |by_device: bool, ops: Ops| by_device && ops.count >= IOS_TO_COMPARE;
        let untimed = stands_in(figures.commits_by_device, figures.commits)
            || stands_in(figures.reads_by_device, figures.storage_reads);
        self.unexplained_stall().filter(|_| untimed)
    }

    fn pressure(&self, time_ns: fn(&Pressure) -> Figure<u64>) -> Option<f64> {
        self.observation.pressure(time_ns)
    }

    /// Count of each limit, for the evidence.
    pub fn cap_facts(&self) -> Vec<Evidence> {
        let facts = self.figures.caps.iter().map(|used| {
            let (what, unit) = match used.cap.kind {
                CapKind::ReadIops => ("reads a second that the cap counted", Unit::PerSecond),
                CapKind::WriteIops => ("writes and flushes a second that the cap counted", Unit::PerSecond),
                CapKind::ReadBytes => ("bytes read that the cap counted", Unit::BytesPerSecond),
                CapKind::WriteBytes => ("bytes written that the cap counted", Unit::BytesPerSecond),
            };
            self.observed(what, used.per_second(), unit, &used.cap.origin)
        });
        facts.collect()
    }

    /// How long tasks were stalled, for the evidence.
    pub fn stall_facts(&self) -> Vec<Evidence> {
        let stalled = [
            (Tasks::Host, "/proc/pressure/io", self.pressure(|pressure| pressure.host_ns)),
            (Tasks::Group, "io.pressure", self.pressure(|pressure| pressure.group_ns)),
        ];
        let facts = stalled.into_iter().filter_map(|(whose, source, share)| {
            let what = format!("time in which {whose} were stalled on I/O");
            Some(self.observed(&what, share?, Unit::Share, source))
        });
        facts.collect()
    }
}

impl Observation {
    /// Mean of a time of [`Pressure`] as a share of the time, where known.
    fn pressure(&self, time_ns: fn(&Pressure) -> Figure<u64>) -> Option<f64> {
        let all = self.moments.iter().map(|moment| &moment.pressure);
        let known = all.filter_map(|pressure| Some((time_ns(pressure).known()?, pressure.elapsed_ns)));
        let (ns, elapsed_ns) =
            known.fold((0_u64, 0_u64), |sum, one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)));
        (elapsed_ns > 0).then(|| (ns as f64 / elapsed_ns as f64).min(1.0))
    }

    /// Whether the counters are known, hardly any session waits for I/O by them, and tasks are not stalled: where nothing
    /// completes, no counter shows that sessions wait. `false` too where the counters are not known.
    pub fn is_idle(&self) -> bool {
        let figures = Figures::from_moments(&self.moments, None);
        let group = self.pressure(|pressure| pressure.group_ns);
        let stalled = group.or_else(|| self.pressure(|pressure| pressure.host_ns));
        figures.coverage >= COVERAGE_MIN
            && figures.outstanding < OUTSTANDING_IDLE
            && stalled.is_none_or(|share| share < STALLED_MIN)
    }
}
