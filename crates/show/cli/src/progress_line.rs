//! The progress line of a run.

use load::{LiveStats, RunStage};
use std::fmt;
use std::time::Duration;
use workload::{Phase, format_ns};

/// Follows one phase; its `Display` is the line: "oltp · 59061 IOPS · p50 413 us · p99 3.15 ms · max
/// 37.0 ms · 461.4 MiB/s · 32 outstanding". The terminal leaves out parts from the end where the line is too long for it.
pub struct ProgressLine {
    name: String,
    total: Duration,
    ios_max: Option<u64>,
    live: Option<LiveStats>,
}

impl ProgressLine {
    /// The line of a phase that has just begun.
    pub fn new(phase: &Phase) -> ProgressLine {
        let name = match (&phase.name, &phase.workloads[..]) {
            (name, _) if !name.is_empty() => name.clone(),
            (_, [one]) => one.workload.shape.to_string(),
            (_, several) => format!("{} workloads", several.len()),
        };
        ProgressLine { name, total: phase.length.total(), ios_max: phase.length.ios_max, live: None }
    }

    /// Sets the latest figures.
    pub fn update(&mut self, live: &LiveStats) {
        self.live = Some(*live);
    }

    /// The time until the phase ends, by its duration or by its I/Os at the rate of the last second; `None` where it is
    /// unknown.
    pub fn left(&self) -> Option<Duration> {
        let Some(live) = self.live else { return self.ios_max.is_none().then_some(self.total) };
        let by_time = self.total.saturating_sub(live.elapsed);
        let Some(ios_max) = self.ios_max else { return Some(by_time) };
        let iops = live.recent.iops();
        let seconds = ios_max.saturating_sub(live.ios) as f64 / iops;
        (iops > 0.0).then(|| by_time.min(Duration::try_from_secs_f64(seconds).unwrap_or(by_time)))
    }
}

impl fmt::Display for ProgressLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        let Some(live) = &self.live else { return Ok(()) };
        match live.stage {
            RunStage::Measuring => {}
            RunStage::WarmUp => f.write_str(" (warm-up)")?,
            RunStage::CoolDown => f.write_str(" (cool-down)")?,
            RunStage::Verifying => return write!(f, " · {} blocks checked", live.ios),
        }
        let recent = &live.recent;
        write!(f, " · {:.0} IOPS", recent.iops())?;
        if recent.ios > 0 {
            let [p50, p99, max] =
                [recent.p50_ns, recent.p99_ns, recent.max_ns].map(|ns| format_ns(ns as f64));
            write!(f, " · p50 {p50} · p99 {p99} · max {max}")?;
        }
        write!(f, " · {:.1} MiB/s · {} outstanding", recent.mib_per_s(), live.outstanding)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::RecentStats;
    use workload::{RunLength, Shape};

    #[test]
    fn the_line_shows_the_last_second_and_the_time_left() {
        let length = RunLength { duration: Duration::from_secs(60), ..RunLength::default() };
        let mut line = ProgressLine::new(&Phase::single(Shape::random_read(8192).into(), length));
        let recent = RecentStats {
            time: Duration::from_millis(500),
            ios: 1000,
            bytes: 1000 * 8192,
            p50_ns: 85_312,
            p99_ns: 2_000_000,
            max_ns: 12_345_678,
        };
        let live = LiveStats {
            elapsed: Duration::from_secs(20),
            stage: RunStage::WarmUp,
            ios: 40_000,
            bytes: 40_000 * 8192,
            stall_ns: 1,
            outstanding: 31,
            recent,
        };
        line.update(&live);
        assert_eq!(
            line.to_string(),
            "random read 8 KiB (warm-up) · 2000 IOPS · p50 85.3 us · p99 2.00 ms · max 12.3 ms · 15.6 MiB/s · 31 outstanding"
        );
        assert_eq!(line.left(), Some(Duration::from_secs(40)));
        let counted = ProgressLine { ios_max: Some(44_000), ..line };
        assert_eq!(counted.left(), Some(Duration::from_secs(2)), "2000 a second, 4000 to go");
        line = ProgressLine { ios_max: None, ..counted };
        line.update(&LiveStats { stage: RunStage::Verifying, ..live });
        assert_eq!(line.to_string(), "random read 8 KiB · 40000 blocks checked");
    }
}
