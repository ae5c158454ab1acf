use crate::Check;
use filestats::{Interval, Reason};
use verdict::{Figures, Moment};

/// More moments than this are drawn several to a point.
const INSTANTS_MAX: usize = 1_000;

/// The observation as charts over time draw it.
pub(crate) struct Course {
    pub(crate) begin_unix_ns: u64,
    pub(crate) end_unix_ns: u64,
    /// How many moments each point stands for.
    pub(crate) moments_each: usize,
    pub(crate) instants: Vec<Instant>,
}

/// One point of the course; what is not known is missing.
pub(crate) struct Instant {
    /// Seconds since the course began.
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    pub(crate) read_ns: Option<f64>,
    pub(crate) commit_ns: Option<f64>,
    pub(crate) database_iops: Option<f64>,
    pub(crate) device_iops: Option<f64>,
    /// Why nothing is known of the database's files.
    pub(crate) gap: Option<Reason>,
}

impl Course {
    pub(crate) fn of(check: &Check) -> Course {
        let moments = &check.observation.moments;
        let begin_unix_ns = moments.first().map_or(0, |moment| {
            let files = moment.files.iter().chain(&moment.device);
            let elapsed_ns =
                files.filter_map(|file| file.interval.known()).map(|delta| delta.elapsed_ns).max();
            let elapsed_ns = elapsed_ns.unwrap_or_else(|| usual_elapsed_ns(moments));
            moment.ended_unix_ns.saturating_sub(elapsed_ns)
        });
        let seconds = |unix_ns: u64| unix_ns.saturating_sub(begin_unix_ns) as f64 / 1e9;
        let moments_each = moments.len().div_ceil(INSTANTS_MAX).max(1);
        let mut from_s = 0.0;
        let instant = |moments: &[Moment]| {
            let figures = Figures::from_moments(moments, check.capability.as_ref());
            let to_s = moments.last().map_or(from_s, |moment| seconds(moment.ended_unix_ns));
            let instant = Instant {
                from_s,
                to_s,
                read_ns: figures.storage_reads.latency_ns().known(),
                commit_ns: figures.commit_ns(),
                database_iops: figures.database.as_ref().map(filestats::Delta::iops),
                device_iops: figures.device_iops(),
                gap: if figures.database.is_none() { Some(gap(moments)) } else { None },
            };
            from_s = to_s;
            instant
        };
        let instants = moments.chunks(moments_each).map(instant).collect();
        Course { begin_unix_ns, end_unix_ns: check.observation.ended_unix_ns(), moments_each, instants }
    }

    /// The named stretches in seconds since the course began.
    pub(super) fn phases<'a>(&self, check: &'a Check) -> Vec<(f64, f64, &'a str)> {
        let seconds = |unix_ns: u64| unix_ns.saturating_sub(self.begin_unix_ns) as f64 / 1e9;
        let phases = check.phases.iter();
        phases
            .map(|phase| (seconds(phase.from_unix_ns), seconds(phase.to_unix_ns), phase.name.as_str()))
            .collect()
    }

    /// One figure of each instant, at its middle.
    pub(super) fn values(&self, of: impl Fn(&Instant) -> Option<f64>) -> Vec<(f64, Option<f64>)> {
        self.instants
            .iter()
            .map(|instant| (f64::midpoint(instant.from_s, instant.to_s), of(instant)))
            .collect()
    }
}

/// Time between the first two moments, where the first one does not tell its own.
fn usual_elapsed_ns(moments: &[Moment]) -> u64 {
    match moments {
        [first, second, ..] => second.ended_unix_ns.saturating_sub(first.ended_unix_ns),
        _ => 0,
    }
}

fn gap(moments: &[Moment]) -> Reason {
    let files = moments.iter().flat_map(|moment| &moment.files);
    let mut reasons = files.filter_map(|file| match file.interval {
        Interval::Unknown(reason) => Some(reason),
        Interval::Known(_) => None,
    });
    reasons.next_back().unwrap_or(Reason::NotCounted)
}
