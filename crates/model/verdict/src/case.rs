//! What the rows of the table test: the figures of an observation, and what follows from several of them.

use crate::figures::expected_commit_ns;
use crate::thresholds::{
    CAP_REACHED, COMMIT_RATIO_DEGRADED, NEIGHBOUR_SHARE, OUTSTANDING_IDLE, RATIO_DEGRADED,
};
use crate::{Figures, Moment, Neighbour, Observation};
use capability::{Binding, Capability};
use filestats::{IoClass, ServiceLevel};
use workload::{Cap, CapKind};

/// A latency of the database beside what the curves expect.
pub struct Wait {
    pub what: &'static str,
    /// Measured over expected.
    pub times: f64,
    /// The same, scaled so that reads and commits count as degraded at the same limit.
    pub ratio: f64,
    /// What the device below says of the same kind of I/O.
    pub device_ratio: Option<f64>,
}

/// Everything a row may test.
pub struct Case<'a> {
    pub observation: &'a Observation,
    pub capability: Option<&'a Capability>,
    pub service_level: &'a ServiceLevel,
    pub figures: Figures,
    /// Utilisation of each moment that has one, with when it ended.
    pub utilisations: Vec<(u64, f64)>,
    /// Outstanding I/Os of the database in each moment, or in each few where the source reports late.
    pub outstanding: Vec<f64>,
}

impl<'a> Case<'a> {
    pub fn new(
        observation: &'a Observation,
        capability: Option<&'a Capability>,
        service_level: &'a ServiceLevel,
    ) -> Case<'a> {
        let figures_of = |moments: &[Moment]| Figures::from_moments(moments, capability);
        let utilisations = observation.moments.iter().filter_map(|moment| {
            let utilisation = figures_of(std::slice::from_ref(moment)).utilisation?;
            Some((moment.ended_unix_ns, utilisation.value))
        });
        Case {
            observation,
            capability,
            service_level,
            figures: figures_of(&observation.moments),
            utilisations: utilisations.collect(),
            outstanding: observation.stretches().map(|moments| figures_of(moments).outstanding).collect(),
        }
    }

    /// What the database waits for longest, measured by the curves: reads or commits.
    pub fn longest_wait(&self) -> Option<Wait> {
        let reads = self.figures.reads_place.as_ref().map(|place| {
            let times = place.latency_ns / place.expected_ns;
            Wait {
                what: "reads from storage",
                times,
                ratio: times,
                device_ratio: self.figures.device_read_ratio,
            }
        });
        let commits = self.figures.commit_ratio.map(|times| Wait {
            what: "commits",
            times,
            // Commits vary more than reads, so that their limit is higher.
            ratio: times * RATIO_DEGRADED / COMMIT_RATIO_DEGRADED,
            device_ratio: self.figures.device_write_ratio,
        });
        reads.into_iter().chain(commits).max_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }

    /// The longest wait, if a session notices it: a tenth of a session's time, or a broken service level. An idle
    /// database whose rare reads find a sleeping CPU is not in trouble.
    pub fn noticed_wait(&self) -> Option<Wait> {
        let figures = &self.figures;
        let storage_ns = figures.reads_place.as_ref().map(|place| place.latency_ns);
        let broken = |class, ns: Option<f64>| ns.is_some_and(|ns| !self.service_level.kept(class, ns));
        let noticed = figures.outstanding >= OUTSTANDING_IDLE
            || broken(IoClass::Read, storage_ns)
            || broken(IoClass::LogWrite, figures.commit_ns());
        self.longest_wait().filter(|_| noticed)
    }

    pub fn capped_when_measured(&self, cap: &Cap) -> bool {
        self.capability.is_some_and(|capability| {
            capability.target.caps.iter().any(|then| {
                then.kind == cap.kind && then.device == cap.device && then.per_second <= cap.per_second
            })
        })
    }

    /// Another program of this host that does much of the I/O.
    pub fn busy_neighbour(&self) -> Option<&Neighbour> {
        self.observation.neighbours.first().filter(|one| one.share >= NEIGHBOUR_SHARE)
    }

    /// The cap that was there at the measurement and limits what runs out first.
    pub fn cap_that_binds(&self, binding: Binding) -> Option<&Cap> {
        let (reads, writes) = match binding {
            Binding::ReadOperations => (Some(CapKind::ReadIops), None),
            Binding::WriteOperations => (None, Some(CapKind::WriteIops)),
            Binding::Operations => (Some(CapKind::ReadIops), Some(CapKind::WriteIops)),
            Binding::ReadBandwidth => (Some(CapKind::ReadBytes), None),
            Binding::WriteBandwidth => (None, Some(CapKind::WriteBytes)),
            Binding::Bandwidth => (Some(CapKind::ReadBytes), Some(CapKind::WriteBytes)),
        };
        let more_writes = self.figures.write_percent() > 50;
        let [first, second] = if more_writes { [writes, reads] } else { [reads, writes] };
        let capped = |kind: Option<CapKind>| {
            let caps = &self.observation.caps;
            caps.iter().find(|cap| Some(cap.kind) == kind && self.capped_when_measured(cap))
        };
        capped(first).or_else(|| capped(second))
    }

    /// A cap that was not there (or was higher) at the measurement and is reached now, with the rate.
    pub fn cap_reached(&self) -> Option<(&Cap, f64)> {
        let device = self.figures.device.as_ref()?;
        let seconds = device.elapsed_s();
        let (read, write) = (device.counters.read, device.counters.write);
        let rate = |cap: &Cap| match cap.kind {
            CapKind::ReadIops => read.count as f64 / seconds,
            CapKind::WriteIops => write.count as f64 / seconds,
            CapKind::ReadBytes => read.bytes as f64 / seconds,
            CapKind::WriteBytes => write.bytes as f64 / seconds,
        };
        let caps = self.observation.caps.iter().filter(|cap| !self.capped_when_measured(cap));
        caps.map(|cap| (cap, rate(cap))).find(|(cap, rate)| *rate >= CAP_REACHED * cap.per_second as f64)
    }

    /// How many of the observed commits fit into one of 60 KiB, what that gains, and its time.
    pub fn batching(&self) -> Option<(u64, f64, f64)> {
        let capability = self.capability?;
        let bytes = self.figures.commits.average_bytes().known()?.max(512.0);
        let (one, sixty) =
            (expected_commit_ns(capability, bytes)?, expected_commit_ns(capability, 61_440.0)?);
        let batch = (61_440.0 / bytes).floor();
        let gain = batch * one / sixty;
        (batch >= 2.0 && gain > 1.0).then_some((batch as u64, gain, sixty))
    }

    /// The N that gives the whole throughput of the reads' curve, and how much more than N = 1 that is.
    pub fn widest(&self) -> Option<(u32, f64)> {
        let place = self.figures.reads_place.as_ref()?;
        let curve = self.capability?.curve(&place.curve)?;
        let knee = curve.knee.as_ref()?;
        Some((knee.outstanding_full, knee.iops / curve.points.first()?.iops))
    }
}
