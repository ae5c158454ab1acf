//! The case that the rows of the table test: the figures of an observation, and what follows from several of
//! them.

use crate::figures::expected_commit_ns;
use crate::pressure::{CapUse, caps_used, was_measured_under};
use crate::thresholds::{
    CAP_REACHED, COMMIT_RATIO_DEGRADED, NEIGHBOUR_SHARE, NEIGHBOUR_TAKES_MIN, OUTSTANDING_IDLE,
    RATIO_DEGRADED, UTILISATION_FULL, WAKING_NS,
};
use crate::{Cause, Figures, Moment, Neighbour, Observation, VerdictKind};
use capability::{Binding, Capability, Curve, Point};
use filestats::{Delta, Figure, IoClass, ServiceLevel};
use workload::{Cap, CapKind};

/// Reference of a latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A measured curve at the same load.
    Curve,
    /// Its own latency seen at rest: nothing of the kind was measured.
    SeenAtRest,
}

/// A latency of the database beside what is expected.
pub struct Wait {
    pub what: &'static str,
    pub class: IoClass,
    pub latency_ns: f64,
    /// Observed over expected.
    pub times: f64,
    /// Source of the expectation.
    pub reference: Reference,
    /// Observed over expected, scaled so that reads and commits count as degraded at the same limit.
    pub ratio: f64,
    /// The latency of the same kind of I/O at the device below over what the curve expects there.
    pub device_ratio: Option<f64>,
    /// The latency of that I/O at the device, nanoseconds.
    pub device_ns: Option<f64>,
}

impl Wait {
    /// It is longer than expected by no more than the time until a session has a processor again, and the device is not slow.
    pub fn is_waking_up(&self) -> bool {
        let excess_ns = self.latency_ns * (1.0 - 1.0 / self.times);
        excess_ns < WAKING_NS && self.device_ratio.is_none_or(|ratio| ratio < RATIO_DEGRADED)
    }
}

/// Everything a row may test.
pub struct Case<'a> {
    pub observation: &'a Observation,
    pub capability: Option<&'a Capability>,
    pub service_level: &'a ServiceLevel,
    pub figures: Figures,
    /// Of a storage that was never measured: the cap that is reached most often.
    pub cap_in_use: Option<CapUse>,
    /// Utilisation of each moment that has one, with when it ended: of the storage, of that cap, or of what was seen full.
    pub utilisations: Vec<(u64, f64)>,
    /// Outstanding I/Os of the database in each moment, or in each few where the source reports late.
    pub outstanding: Vec<f64>,
}

impl Observation {
    /// The cap that is reached most often, if one is, and the part of it that is in use in each moment, with when that ended.
    fn reached_cap(&self) -> Option<(CapUse, Vec<(u64, f64)>)> {
        let in_moments = |cap: &Cap| -> Vec<(u64, f64)> {
            let of_moment = |moment: &Moment| {
                let used = moment.caps.iter().find(|used| used.cap == *cap)?;
                Some((moment.ended_unix_ns, used.share()))
            };
            self.moments.iter().filter_map(of_moment).collect()
        };
        let caps = caps_used(&self.moments).into_iter().map(|used| {
            let shares = in_moments(&used.cap);
            (used, shares)
        });
        let reached =
            |shares: &[(u64, f64)]| shares.iter().filter(|(_, used)| *used >= UTILISATION_FULL).count();
        caps.filter(|(_, shares)| reached(shares) > 0).max_by_key(|(_, shares)| reached(shares))
    }

    /// Utilisation of each moment that has one, with when it ended; without a capability, of the cap that is reached most often, else
    /// of what the storage was seen to give when it was full.
    fn utilisations(&self, capability: Option<&Capability>) -> Vec<(u64, f64)> {
        if capability.is_none()
            && let Some((_, shares)) = self.reached_cap()
        {
            return shares;
        }
        let known = self.moments.iter().filter_map(|moment| {
            let figures = Figures::from_moments(std::slice::from_ref(moment), capability);
            let of_seen = || Some(self.seen.as_ref()?.utilisation(&figures.flows()?)?.0);
            let used = if capability.is_some() { figures.utilisation } else { of_seen() };
            Some((moment.ended_unix_ns, used?.value))
        });
        known.collect()
    }

    /// The part of the moments, of those that have a utilisation, in which the demand was at the knee or beyond.
    pub fn share_at_knee(&self, capability: Option<&Capability>) -> f64 {
        let utilisations = self.utilisations(capability);
        let at_knee = utilisations.iter().filter(|(_, used)| *used >= UTILISATION_FULL).count();
        at_knee as f64 / utilisations.len().max(1) as f64
    }
}

impl<'a> Case<'a> {
    pub fn new(
        observation: &'a Observation,
        capability: Option<&'a Capability>,
        service_level: &'a ServiceLevel,
    ) -> Case<'a> {
        let figures_of = |moments: &[Moment]| Figures::from_moments(moments, capability);
        let mut figures = figures_of(&observation.moments);
        observation.seen.iter().for_each(|seen| figures.compare_with_seen(seen));
        let cap_in_use = if capability.is_none() { observation.reached_cap() } else { None };
        let (cap_in_use, utilisations) = match cap_in_use {
            Some((used, shares)) => (Some(used), shares),
            None => (None, observation.utilisations(capability)),
        };
        Case {
            observation,
            capability,
            service_level,
            figures,
            cap_in_use,
            utilisations,
            outstanding: observation.stretches().map(|moments| figures_of(moments).outstanding).collect(),
        }
    }

    /// Waits of the database, beside the expectation of the curves: reads and commits.
    pub fn waits(&self) -> impl Iterator<Item = Wait> {
        let device_ns = |latency: fn(&Delta) -> Figure<f64>| latency(self.figures.device.as_ref()?).known();
        let reads = self.figures.reads_place.as_ref().map(|place| {
            let times = place.latency_ns / place.expected_ns;
            Wait {
                what: "reads from storage",
                class: IoClass::Read,
                latency_ns: place.latency_ns,
                times,
                reference: Reference::Curve,
                ratio: times,
                device_ratio: self.figures.device_read_ratio,
                device_ns: device_ns(Delta::read_latency_ns),
            }
        });
        let known_commits = self.figures.commit_ratio.zip(self.figures.commit_ns());
        let commits = known_commits.map(|(times, latency_ns)| Wait {
            what: "commits",
            class: IoClass::LogWrite,
            latency_ns,
            times,
            reference: match self.figures.commit_rest_ns {
                None => Reference::Curve,
                Some(_) => Reference::SeenAtRest,
            },
            // Commits vary more than reads, so that their limit is higher.
            ratio: times * RATIO_DEGRADED / COMMIT_RATIO_DEGRADED,
            device_ratio: self.figures.device_write_ratio,
            device_ns: device_ns(Delta::write_latency_ns),
        });
        reads.into_iter().chain(commits)
    }

    /// The longest wait of the database.
    pub fn longest_wait(&self) -> Option<Wait> {
        self.waits().max_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }

    /// The longest wait that a session notices: a tenth of a session's time and more than it takes to wake up, or a broken service
    /// level. An idle database whose rare reads find a sleeping CPU is not in trouble.
    pub fn noticed_wait(&self) -> Option<Wait> {
        let is_busy = self.figures.outstanding >= OUTSTANDING_IDLE;
        let is_noticed = |wait: &Wait| {
            !self.service_level.kept(wait.class, wait.latency_ns) || is_busy && !wait.is_waking_up()
        };
        self.waits().filter(is_noticed).max_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }

    pub fn capped_when_measured(&self, cap: &Cap) -> bool {
        self.capability.is_some_and(|capability| was_measured_under(capability, cap))
    }

    /// Another program of this host that does much of what runs out first.
    pub fn busy_neighbour(&self, binding: Binding) -> Option<&Neighbour> {
        // Other programs' I/O on a disk below uses up no limit on the database's own device.
        let is_own_limit =
            self.cap_that_binds(binding).is_some_and(|cap| self.own_device() == Some(cap.device.as_str()));
        let mut all = self.observation.neighbours.iter().filter(|one| !is_own_limit || one.device.is_none());
        all.find(|one| one.part_of(Some(binding)) >= NEIGHBOUR_SHARE)
    }

    /// The number of the device that the database's files lie on, "254:0".
    fn own_device(&self) -> Option<&str> {
        let device = self.observation.moments.last()?.device.as_ref()?;
        Some(&device.file.file_id)
    }

    /// Another program of this host that does much of the I/O, and enough of it to slow this storage as it was measured: on
    /// a disk that fails, the few I/Os of another program may be most.
    pub fn slowing_neighbour(&self) -> Option<&Neighbour> {
        // Of the workload that the storage carries least of: whether the other program reads or writes is not known.
        let curves = || self.capability.iter().flat_map(|known| &known.curves).filter(|it| it.knee.is_some());
        let most =
            |curve: &Curve, figure: fn(&Point) -> f64| curve.points.iter().map(figure).fold(0.0, f64::max);
        let least = |figure: fn(&Point) -> f64| {
            curves().map(|curve| most(curve, figure)).fold(f64::INFINITY, f64::min)
        };
        let (iops, mib_per_s) = (least(|point| point.iops), least(|point| point.mib_per_s));
        let seconds = self.figures.elapsed_s.max(f64::MIN_POSITIVE);
        let takes = |one: &&Neighbour| {
            one.operations.unwrap_or(0) as f64 / seconds >= NEIGHBOUR_TAKES_MIN * iops
                || one.bytes as f64 / f64::from(1 << 20) / seconds >= NEIGHBOUR_TAKES_MIN * mib_per_s
        };
        self.observation.neighbours.iter().filter(|one| one.does_much()).find(takes)
    }

    /// Where the cause of a verdict lies, beside the database and its storage.
    pub fn cause(&self, kind: VerdictKind) -> Option<Cause> {
        let neighbour = match kind {
            VerdictKind::StorageDegraded if self.fails() || self.hangs() => None,
            VerdictKind::StorageDegraded => self.slowing_neighbour(),
            VerdictKind::DemandExceedsCapability | VerdictKind::Burst => {
                self.busy_neighbour(self.figures.utilisation?.binding)
            }
            _ => None,
        };
        match neighbour {
            Some(_) => Some(Cause::AnotherProgram),
            None => (kind == VerdictKind::StorageDegraded).then_some(Cause::Below),
        }
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

    /// Caps that were not there (or were higher) at the measurement and are reached now, each with the rate and whether the
    /// cap itself counted that: before I/Os are merged into the device's requests. Where it does not count, the device's rate
    /// without what other programs are known to have done, which the cap of a control group does not hold.
    pub fn caps_reached(&self) -> impl Iterator<Item = (&Cap, f64, bool)> {
        self.new_caps().filter(|(cap, rate, _)| *rate >= CAP_REACHED * cap.per_second as f64)
    }

    /// The caps that were not there (or were higher) at the measurement, with their rates as in [`Case::caps_reached`].
    pub fn new_caps(&self) -> impl Iterator<Item = (&Cap, f64, bool)> {
        let counted = move |cap: &Cap| {
            let used = self.figures.caps.iter().find(|used| used.cap == *cap)?;
            Some((used.per_second(), true))
        };
        let rate =
            move |cap: &Cap| counted(cap).or_else(|| Some((self.own_rate_at_device(cap.kind)?, false)));
        let caps = self.observation.caps.iter().filter(|cap| !self.capped_when_measured(cap));
        caps.filter_map(move |cap| rate(cap).map(|(rate, by_cap)| (cap, rate, by_cap)))
    }

    /// Operations or bytes a second of the device, without those of other programs that are known.
    fn own_rate_at_device(&self, kind: CapKind) -> Option<f64> {
        let device = self.figures.device.as_ref()?;
        let (read, write) = (device.counters.read, device.counters.write);
        let others = self.observation.neighbours.iter().filter(|one| one.device.is_none());
        let (of_ios, of_bytes) = others
            .filter_map(|one| Some((one.operations_share?, one.share)))
            .fold((0.0, 0.0), |(ios, bytes), (more_ios, more_bytes)| (ios + more_ios, bytes + more_bytes));
        let own = |all: u64, others: f64| all as f64 / device.elapsed_s() * (1.0 - others).max(0.0);
        Some(match kind {
            CapKind::ReadIops => own(read.count, of_ios),
            CapKind::WriteIops => own(write.count, of_ios),
            CapKind::ReadBytes => own(read.bytes, of_bytes),
            CapKind::WriteBytes => own(write.bytes, of_bytes),
        })
    }

    /// Number of observed commits that fit into one of 60 KiB, the gain, and its time.
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
