//! The line that tells how a run goes while it goes.

use load::Live;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;
use workload::{Phase, format_ns};

/// Follows one phase; its `Display` is the line.
pub struct Line {
    name: String,
    mean_block_bytes: f64,
    total: Duration,
    /// Looks of the last second, the oldest first.
    looks: VecDeque<Look>,
}

#[derive(Clone, Copy, Default)]
struct Look {
    elapsed: Duration,
    ios: u64,
    stall_ns: u64,
    measuring: bool,
}

/// Rates are those of so long.
const WINDOW: Duration = Duration::from_secs(1);

impl Line {
    /// Of a phase that has just begun.
    pub fn new(phase: &Phase) -> Line {
        let workloads = &phase.workloads;
        let bytes: f64 = workloads.iter().map(|placed| placed.workload.mean_block_bytes()).sum();
        let looks = VecDeque::from([Look::default()]);
        let name = match (&phase.name, &workloads[..]) {
            (name, _) if !name.is_empty() => name.clone(),
            (_, [one]) => one.workload.shape.to_string(),
            (_, several) => format!("{} workloads", several.len()),
        };
        Line {
            name,
            mean_block_bytes: bytes / workloads.len().max(1) as f64,
            total: phase.length.total(),
            looks,
        }
    }

    /// Takes a look at it.
    pub fn look(&mut self, live: &Live) {
        self.looks.push_back(Look {
            elapsed: live.elapsed,
            ios: live.ios,
            stall_ns: live.stall_ns,
            measuring: live.measuring,
        });
        let past = live.elapsed.saturating_sub(WINDOW);
        while self.looks.get(1).is_some_and(|second| second.elapsed <= past) {
            self.looks.pop_front();
        }
    }

    /// Until the phase ends by time.
    pub fn left(&self) -> Duration {
        self.looks.back().map_or(self.total, |now| self.total.saturating_sub(now.elapsed))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(then), Some(now)) = (self.looks.front(), self.looks.back()) else { return Ok(()) };
        let seconds = now.elapsed.saturating_sub(then.elapsed).as_secs_f64();
        let ios = now.ios.saturating_sub(then.ios) as f64;
        let stall_ns = now.stall_ns.saturating_sub(then.stall_ns) as f64;
        write!(f, "{}{}", self.name, if now.measuring { "" } else { " (warm-up)" })?;
        if seconds <= 0.0 {
            return Ok(());
        }
        let (iops, outstanding) = (ios / seconds, stall_ns / seconds / 1e9);
        write!(f, " · {iops:.0} IOPS · {:.1} MiB/s", iops * self.mean_block_bytes / 1_048_576.0)?;
        if ios > 0.0 {
            write!(f, " · {} mean · {outstanding:.1} outstanding", format_ns(stall_ns / ios))?;
        }
        Ok(())
    }
}
