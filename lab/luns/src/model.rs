use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use workload::format_ns;

/// A disk as its users see it: the latency of an I/O, how many run at once, pauses and a write cache.
///
/// ```text
///   I/O ──> [unit 1] latency ──> done        width units; an I/O that finds none free waits for the first
///           [unit 2]                         IOPS at most = width / latency
///   write ─> cache ──> done at once          while it is not full; its content drains through the same units
///                 └──> [units]
///   stall: no unit makes progress, for stall_ns of every every_ns
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskModel {
    /// Duration of one I/O, nanoseconds.
    pub latency_ns: u64,
    /// I/Os that run at once; `None`: any number, so that every I/O takes the latency.
    pub width: Option<u32>,
    /// Pauses of the whole disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<Stalls>,
    /// Size of the write cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<u64>,
}

/// Pauses of a modelled disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stalls {
    /// Length of a pause, nanoseconds.
    pub stall_ns: u64,
    /// From the start of one pause to the start of the next, nanoseconds.
    pub every_ns: u64,
}

impl DiskModel {
    /// Largest width.
    pub const WIDTH_MAX: u32 = 4096;
    /// Longest latency, nanoseconds.
    pub const LATENCY_NS_MAX: u64 = 60_000_000_000;
    /// Duration of a write into the cache, nanoseconds.
    pub const CACHED_NS: u64 = 100_000;

    /// Checks that the values are possible.
    ///
    /// # Errors
    /// The impossible value, in words.
    pub fn validate(&self) -> Result<(), String> {
        if self.latency_ns == 0 || self.latency_ns > Self::LATENCY_NS_MAX {
            return Err(format!(
                "a latency of {}: give more than 0 and at most {}",
                format_ns(self.latency_ns as f64),
                format_ns(Self::LATENCY_NS_MAX as f64)
            ));
        }
        if let Some(width) = self.width.filter(|width| *width == 0 || *width > Self::WIDTH_MAX) {
            return Err(format!("a width of {width}: give 1 to {}", Self::WIDTH_MAX));
        }
        if let Some(Stalls { stall_ns, every_ns }) = self.stalls
            && (stall_ns == 0 || every_ns <= stall_ns)
        {
            return Err(format!(
                "a stall of {} every {}: it must be shorter than the time from one to the next",
                format_ns(stall_ns as f64),
                format_ns(every_ns as f64)
            ));
        }
        if self.cache_bytes == Some(0) {
            return Err("a cache of 0 bytes: leave it out".into());
        }
        Ok(())
    }

    /// Most I/Os per second; `None` where any number run at once.
    pub fn iops_max(&self) -> Option<f64> {
        let stalled = self.stalls.map_or(0.0, |stalls| stalls.stall_ns as f64 / stalls.every_ns as f64);
        Some(f64::from(self.width?) * 1e9 / self.latency_ns as f64 * (1.0 - stalled))
    }
}

/// The state of a modelled disk: computes when each I/O is done, in order of arrival. Times are nanoseconds since it was
/// set up.
#[derive(Debug)]
pub struct ModelledDisk {
    model: DiskModel,
    /// When each unit is free again; empty where any number of I/Os run at once.
    units: BinaryHeap<Reverse<u64>>,
    /// Writes in the cache: when they have drained, and their bytes.
    draining: BinaryHeap<Reverse<(u64, u64)>>,
    dirty_bytes: u64,
}

impl ModelledDisk {
    /// An idle disk.
    pub fn new(model: DiskModel) -> ModelledDisk {
        let units = (0..model.width.unwrap_or(0)).map(|_| Reverse(0)).collect();
        ModelledDisk { model, units, draining: BinaryHeap::new(), dirty_bytes: 0 }
    }

    /// When a read that arrives now is done.
    pub fn read(&mut self, now_ns: u64) -> u64 {
        self.work(now_ns)
    }

    /// When a write that arrives now is done.
    pub fn write(&mut self, now_ns: u64, bytes: u64) -> u64 {
        let Some(cache_bytes) = self.model.cache_bytes else { return self.work(now_ns) };
        if bytes > cache_bytes {
            return self.work(now_ns);
        }
        // It waits until enough of the earlier writes have drained.
        let mut accepted_ns = now_ns;
        while let Some(Reverse((drained_ns, drained_bytes))) = self.draining.peek().copied() {
            if drained_ns > now_ns && self.dirty_bytes + bytes <= cache_bytes {
                break;
            }
            self.draining.pop();
            self.dirty_bytes -= drained_bytes;
            accepted_ns = accepted_ns.max(drained_ns);
        }
        self.dirty_bytes += bytes;
        let drained_ns = self.work(accepted_ns);
        self.draining.push(Reverse((drained_ns, bytes)));
        self.after(accepted_ns, DiskModel::CACHED_NS)
    }

    /// When all that the cache holds now has drained.
    pub fn flushed(&self, now_ns: u64) -> u64 {
        self.draining.iter().map(|Reverse((drained_ns, _))| *drained_ns).max().unwrap_or(0).max(now_ns)
    }

    fn work(&mut self, now_ns: u64) -> u64 {
        let begin_ns = match self.units.pop() {
            Some(Reverse(free_ns)) => free_ns.max(now_ns),
            None => now_ns,
        };
        let done_ns = self.after(begin_ns, self.model.latency_ns);
        if self.model.width.is_some() {
            self.units.push(Reverse(done_ns));
        }
        done_ns
    }

    /// When work of that length that starts at `begin_ns` is done: it makes no progress during a stall. The first stall comes
    /// after a whole period.
    fn after(&self, begin_ns: u64, work_ns: u64) -> u64 {
        let Some(Stalls { stall_ns, every_ns }) = self.model.stalls else { return begin_ns + work_ns };
        let (mut at_ns, mut left_ns) = (begin_ns, work_ns);
        loop {
            let within_ns = at_ns % every_ns;
            if at_ns >= every_ns && within_ns < stall_ns {
                at_ns += stall_ns - within_ns;
                continue;
            }
            let until_stall_ns = every_ns - within_ns;
            if left_ns <= until_stall_ns {
                return at_ns + left_ns;
            }
            at_ns += until_stall_ns;
            left_ns -= until_stall_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn model(latency_ms: u64, width: Option<u32>) -> DiskModel {
        DiskModel { latency_ns: latency_ms * MS, width, stalls: None, cache_bytes: None }
    }

    #[test]
    fn as_many_as_it_is_wide_take_one_latency_and_the_next_two() {
        let mut disk = ModelledDisk::new(model(20, Some(16)));
        let done: Vec<u64> = (0..33).map(|_| disk.read(0) / MS).collect();
        assert_eq!((done[0], done[15], done[16], done[31], done[32]), (20, 20, 40, 40, 60));
        let mut any = ModelledDisk::new(model(5, None));
        assert!((0..1000).all(|_| any.read(7 * MS) == 12 * MS));
    }

    #[test]
    fn no_io_makes_progress_during_a_stall() {
        let stalls = Some(Stalls { stall_ns: 2_000 * MS, every_ns: 30_000 * MS });
        let mut disk = ModelledDisk::new(DiskModel { stalls, ..model(5, Some(1)) });
        assert_eq!(disk.read(0), 5 * MS);
        // Started 2 ms before the stall: 3 ms are left after it.
        assert_eq!(disk.read(29_998 * MS), 32_003 * MS);
        assert_eq!(disk.read(60_500 * MS), 62_005 * MS);
    }

    #[test]
    fn a_cache_takes_writes_at_once_until_it_is_full() {
        let cached = DiskModel { cache_bytes: Some(4 * 4096), ..model(10, Some(1)) };
        let mut disk = ModelledDisk::new(cached);
        let done: Vec<u64> = (0..6).map(|_| disk.write(0, 4096)).collect();
        assert!(done[..4].iter().all(|ns| *ns == DiskModel::CACHED_NS), "{done:?}");
        // Then each waits for one that leaves: 10 ms each, one at a time.
        assert_eq!(done[4..], [10 * MS + DiskModel::CACHED_NS, 20 * MS + DiskModel::CACHED_NS]);
        assert_eq!(disk.flushed(0), 60 * MS);
        // A read waits for its turn behind what drains, and an idle cache takes writes again.
        assert_eq!(disk.read(0), 70 * MS);
        assert_eq!(disk.write(1_000 * MS, 4096), 1_000 * MS + DiskModel::CACHED_NS);
    }

    #[test]
    fn impossible_values_are_refused() {
        assert!(model(5, Some(1)).validate().is_ok());
        for wrong in [
            model(0, Some(1)),
            model(5, Some(0)),
            DiskModel { stalls: Some(Stalls { stall_ns: 2, every_ns: 2 }), ..model(5, None) },
            DiskModel { cache_bytes: Some(0), ..model(5, None) },
        ] {
            assert!(wrong.validate().is_err(), "{wrong:?}");
        }
    }

    proptest! {
        /// A closed loop gets min(N, width) / latency, and Little's law holds by construction.
        #[test]
        fn a_closed_loop_gets_what_the_width_allows(width in 1u32..70, outstanding in 1usize..200, latency_us in 50u64..20_000) {
            let model = DiskModel { latency_ns: latency_us * 1000, width: Some(width), stalls: None, cache_bytes: None };
            let mut disk = ModelledDisk::new(model);
            let mut due: BinaryHeap<Reverse<u64>> = (0..outstanding).map(|_| Reverse(disk.read(0))).collect();
            let rounds = 100 * outstanding.max(width as usize);
            let mut now = 0;
            for _ in 0..rounds {
                let Some(Reverse(done)) = due.pop() else { unreachable!() };
                now = done;
                due.push(Reverse(disk.read(now)));
            }
            let iops = rounds as f64 * 1e9 / now as f64;
            let most = (outstanding as f64).min(f64::from(width)) * 1e6 / latency_us as f64;
            prop_assert!((iops / most - 1.0).abs() < 0.03, "{iops} of {most}");
        }
    }
}
