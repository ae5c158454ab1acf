use crate::palette::Ink;
use crate::plot::{Plot, Values};
use capability::Capability;
use filestats::{Delta, Reason};
use verdict::{Figures, Moment, Observation};

/// More moments than this are drawn several to a point.
const INSTANTS_MAX: usize = 1_000;

/// An observation as charts over time draw it.
pub struct CheckSeries {
    pub(crate) begin_unix_ns: u64,
    pub(crate) end_unix_ns: u64,
    /// Number of moments that each point stands for.
    pub moments_each: usize,
    /// The points in the order of time.
    pub instants: Vec<Instant>,
    /// Named parts of the observation: seconds since its beginning, and the name.
    phases: Vec<(f64, f64, String)>,
}

/// One point; `None` is not known.
pub struct Instant {
    /// Seconds since the observation began.
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    /// Mean latency of reads from storage.
    pub read_ns: Option<f64>,
    pub(crate) commit_ns: Option<f64>,
    pub(crate) database_iops: Option<f64>,
    pub(crate) device_iops: Option<f64>,
    /// Why nothing is known of the database's files.
    pub gap: Option<Reason>,
}

impl CheckSeries {
    /// The series of an observation. Phases are their names with their ends, nanoseconds since 1970.
    pub fn new<'a>(
        observation: &Observation,
        capability: Option<&Capability>,
        phases: impl Iterator<Item = (&'a str, u64, u64)>,
    ) -> CheckSeries {
        let moments = &observation.moments;
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
            let figures = Figures::from_moments(moments, capability);
            let to_s = moments.last().map_or(from_s, |moment| seconds(moment.ended_unix_ns));
            let instant = Instant {
                from_s,
                to_s,
                read_ns: figures.storage_reads.latency_ns().known(),
                commit_ns: figures.commit_ns(),
                database_iops: figures.database.as_ref().map(Delta::iops),
                device_iops: figures.device_iops(),
                gap: if figures.database.is_none() { Some(gap_reason(moments)) } else { None },
            };
            from_s = to_s;
            instant
        };
        let instants = moments.chunks(moments_each).map(instant).collect();
        let phases = phases.map(|(name, from, to)| (seconds(from), seconds(to), name.to_owned())).collect();
        CheckSeries {
            begin_unix_ns,
            end_unix_ns: observation.ended_unix_ns(),
            moments_each,
            instants,
            phases,
        }
    }

    pub(crate) fn has_phases(&self) -> bool {
        !self.phases.is_empty()
    }

    /// Gaps as stripes, and the names of the phases above the plot.
    pub(crate) fn mark(&self, plot: &mut Plot<'_>) {
        for instant in self.instants.iter().filter(|instant| instant.gap.is_some()) {
            plot.stripe(instant.from_s, instant.to_s, Ink::Gap, 0.85);
        }
        plot.phases(&self.phases);
    }

    /// One figure of each instant, at its middle.
    pub(crate) fn values(&self, figure: impl Fn(&Instant) -> Option<f64>) -> Values {
        self.instants
            .iter()
            .map(|instant| (f64::midpoint(instant.from_s, instant.to_s), figure(instant)))
            .collect()
    }
}

/// Time between the first two moments, where the first one has no time of its own.
fn usual_elapsed_ns(moments: &[Moment]) -> u64 {
    match moments {
        [first, second, ..] => second.ended_unix_ns.saturating_sub(first.ended_unix_ns),
        _ => 0,
    }
}

fn gap_reason(moments: &[Moment]) -> Reason {
    let files = moments.iter().flat_map(|moment| &moment.files);
    let mut reasons = files.filter_map(|file| file.interval.reason());
    reasons.next_back().unwrap_or(Reason::NotCounted)
}
