use crate::arm::Arm;
use crate::bucket::Bucket;
use crate::model::{Cost, Disk, Mechanics, Stall, WriteCache};
use crate::sampler::Sampler;
use stream::random::Random;

/// The state of a disk. Where I/Os are served in order of arrival, the completion of an I/O is known when it arrives,
/// since it is known when the channel and the first of the units become free (Kiefer and Wolfowitz 1955).
#[derive(Clone, Debug)]
pub struct DiskState {
    pub buckets: Vec<Bucket>,
    pub mechanics: MechanicsState,
    cache: Option<CacheState>,
    stall: Option<Stall>,
    sync: Sampler,
    /// End of the flush that runs, and of the next one, which serves all requests that arrive meanwhile.
    flushing_ns: u64,
    next_flush_ns: u64,
}

#[derive(Clone, Debug)]
pub enum MechanicsState {
    Flash(Box<FlashState>),
    Rotating(Arm),
}

#[derive(Clone, Debug)]
pub struct FlashState {
    /// When each stage becomes free; for writes as well, unless they have their own.
    channel: Vec<u64>,
    write_channel: Option<Vec<u64>>,
    /// For writes as well, unless they have their own.
    units: Units,
    write_units: Option<Units>,
    read: CostSampler,
    write: CostSampler,
}

#[derive(Clone, Debug)]
struct CostSampler {
    has_channel: bool,
    channel: Sampler,
    channel_byte_ns: f64,
    service: Sampler,
    service_byte_ns: f64,
    delay: Sampler,
    delay_byte_ns: f64,
}

/// When each of the units becomes free: a heap with the earliest on top.
#[derive(Clone, Debug)]
struct Units(Vec<u64>);

impl Units {
    fn new(units: u32) -> Units {
        Units(vec![0; units as usize])
    }

    #[inline]
    fn first_free_ns(&self) -> u64 {
        self.0[0]
    }

    /// Occupies the unit that becomes free first.
    #[inline]
    fn occupy(&mut self, until_ns: u64) {
        let units = &mut self.0[..];
        let (mut place, mut child) = (0, 1);
        while child < units.len() {
            if child + 1 < units.len() {
                child += usize::from(units[child + 1] < units[child]);
            }
            if units[child] >= until_ns {
                break;
            }
            units[place] = units[child];
            place = child;
            child = 2 * place + 1;
        }
        units[place] = until_ns;
    }
}

#[derive(Clone, Debug)]
struct CacheState {
    bytes: f64,
    write_ns: u64,
    drain_byte_ns: f64,
    /// When all that is in it or waits for it will be drained.
    empty_ns: u64,
}

impl CacheState {
    fn new(cache: &WriteCache) -> CacheState {
        CacheState {
            bytes: cache.bytes as f64,
            write_ns: cache.write_ns,
            drain_byte_ns: 1e9 / cache.drain_bytes_per_s,
            empty_ns: 0,
        }
    }

    /// When a write that arrives at `now_ns` is in the cache.
    fn write(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.empty_ns = self.empty_ns.max(now_ns) + (bytes as f64 * self.drain_byte_ns) as u64;
        // There is room once what is left to drain fits into the cache.
        let room_ns = self.empty_ns.saturating_sub((self.bytes * self.drain_byte_ns) as u64);
        room_ns.max(now_ns) + self.write_ns
    }
}

impl CostSampler {
    fn new(cost: &Cost) -> CostSampler {
        CostSampler {
            has_channel: cost.channel_byte_ns > 0.0 || cost.channel.mean_ns() > 0.0,
            channel: Sampler::new(&cost.channel),
            channel_byte_ns: cost.channel_byte_ns,
            service: Sampler::new(&cost.service),
            service_byte_ns: cost.service_byte_ns,
            delay: Sampler::new(&cost.delay),
            delay_byte_ns: cost.delay_byte_ns,
        }
    }
}

/// The end of the stall that `at_ns` lies in, otherwise `at_ns`.
#[inline]
fn after_stall(stall: Option<Stall>, at_ns: u64) -> u64 {
    let Some(stall) = stall else { return at_ns };
    let within = at_ns % stall.every_ns;
    let begins = stall.every_ns - stall.length_ns;
    if within < begins { at_ns } else { at_ns + (stall.every_ns - within) }
}

impl DiskState {
    pub fn new(disk: &Disk) -> DiskState {
        let mechanics = match &disk.mechanics {
            Mechanics::Flash(flash) => MechanicsState::Flash(Box::new(FlashState {
                channel: vec![0; flash.stages as usize],
                write_channel: flash.duplex.then(|| vec![0; flash.stages as usize]),
                units: Units::new(flash.units),
                write_units: flash.duplex.then(|| Units::new(flash.units)),
                read: CostSampler::new(&flash.read),
                write: CostSampler::new(&flash.write),
            })),
            Mechanics::Rotating(arm) => MechanicsState::Rotating(Arm::new(arm, disk.size_bytes)),
        };
        DiskState {
            buckets: disk.limits.iter().map(Bucket::new).collect(),
            mechanics,
            cache: disk.cache.as_ref().map(CacheState::new),
            stall: disk.stall,
            sync: Sampler::new(&disk.sync),
            flushing_ns: 0,
            next_flush_ns: 0,
        }
    }

    /// Whether such I/Os are served in order of arrival; the others wait for the [`Arm`], which reorders them.
    #[inline]
    pub fn serves_in_order(&self, write: bool, through: bool) -> bool {
        matches!(self.mechanics, MechanicsState::Flash(_)) || self.is_cached(write, through)
    }

    #[inline]
    fn is_cached(&self, write: bool, through: bool) -> bool {
        write && !through && self.cache.is_some()
    }

    /// When an I/O that arrives at `now_ns` completes. Calls must be in order of time.
    #[inline]
    pub fn serve(&mut self, now_ns: u64, write: bool, through: bool, bytes: u64, random: &mut Random) -> u64 {
        let mut at_ns = after_stall(self.stall, now_ns);
        let cached = self.is_cached(write, through);
        if let MechanicsState::Flash(flash) = &mut self.mechanics {
            let cost = if write { &flash.write } else { &flash.read };
            if cost.has_channel {
                let stages = match &mut flash.write_channel {
                    Some(stages) if write => stages,
                    _ => &mut flash.channel,
                };
                // Each passes I/Os on in order of arrival.
                let byte_ns = (bytes as f64 * cost.channel_byte_ns) as u64;
                for free_ns in stages {
                    at_ns = at_ns.max(*free_ns) + cost.channel.draw(random) + byte_ns;
                    *free_ns = at_ns;
                }
            }
            if !cached {
                let units = match &mut flash.write_units {
                    Some(units) if write => units,
                    _ => &mut flash.units,
                };
                let starts_ns = after_stall(self.stall, at_ns.max(units.first_free_ns()));
                let mut ends_ns = starts_ns + cost.service.draw(random);
                if cost.service_byte_ns > 0.0 {
                    ends_ns += (bytes as f64 * cost.service_byte_ns) as u64;
                }
                units.occupy(ends_ns);
                if cost.delay_byte_ns > 0.0 {
                    ends_ns += (bytes as f64 * cost.delay_byte_ns) as u64;
                }
                return ends_ns + cost.delay.draw(random);
            }
        }
        match &mut self.cache {
            Some(cache) => cache.write(at_ns, bytes),
            None => at_ns,
        }
    }

    /// When all that was written before `now_ns` is durable. One flush runs at a time; requests that arrive while it runs
    /// share the next one, as in the kernel (block/blk-flush.c).
    pub fn flush(&mut self, now_ns: u64, random: &mut Random) -> u64 {
        if now_ns >= self.flushing_ns {
            self.flushing_ns = self.next_flush_ns;
        }
        let drained_ns = self.cache.as_ref().map_or(now_ns, |cache| cache.empty_ns.max(now_ns));
        if now_ns < self.flushing_ns {
            if self.next_flush_ns <= self.flushing_ns {
                let starts_ns = after_stall(self.stall, self.flushing_ns.max(drained_ns));
                self.next_flush_ns = starts_ns + self.sync.draw(random);
            }
            return self.next_flush_ns;
        }
        self.flushing_ns = after_stall(self.stall, drained_ns) + self.sync.draw(random);
        self.next_flush_ns = self.flushing_ns;
        self.flushing_ns
    }

    /// If the arm is free, starts the waiting I/O that it reaches first: its part, and when it completes.
    pub fn start_arm(&mut self, now_ns: u64) -> Option<(u32, u64)> {
        let stall = self.stall;
        let arm = self.arm()?;
        if arm.busy || arm.waiting.is_empty() {
            return None;
        }
        Some(arm.begin(after_stall(stall, now_ns)))
    }

    /// The arm of a rotating disk.
    pub fn arm(&mut self) -> Option<&mut Arm> {
        match &mut self.mechanics {
            MechanicsState::Rotating(arm) => Some(arm),
            MechanicsState::Flash(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Rotating, Time};
    use stream::random::seeded;

    fn random() -> Random {
        seeded(1)
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn units_serve_so_many_at_once_and_the_others_wait() {
        let disk = Disk::flash(1 << 30, 3, Time::Fixed { ns: MS }, Time::Fixed { ns: 2 * MS });
        let (mut disk, mut random) = (DiskState::new(&disk), random());
        let mut done = |write| disk.serve(0, write, false, 4096, &mut random);
        assert_eq!([done(false), done(false), done(true)], [MS, MS, 2 * MS]);
        assert_eq!([done(false), done(false), done(false)], [2 * MS, 2 * MS, 3 * MS]);
    }

    #[test]
    fn stages_serve_one_after_the_other_and_all_at_once() {
        let mut disk = Disk::flash(1 << 30, 9, Time::Fixed { ns: 0 }, Time::default());
        if let Mechanics::Flash(flash) = &mut disk.mechanics {
            (flash.stages, flash.read.channel) = (3, Time::Fixed { ns: MS });
        }
        let (mut disk, mut random) = (DiskState::new(&disk), random());
        let done = [0, 0, 0, 9 * MS].map(|at| disk.serve(at, false, false, 4096, &mut random));
        assert_eq!(done, [3 * MS, 4 * MS, 5 * MS, 12 * MS]);
        assert_eq!(disk.serve(9 * MS, true, false, 4096, &mut random), 9 * MS, "writes do not take it");
    }

    #[test]
    fn a_cache_takes_writes_at_once_until_it_is_full_and_then_as_fast_as_it_drains() {
        let cache = WriteCache { bytes: 1_000_000, write_ns: 1_000, drain_bytes_per_s: 1e6 };
        let disk = Disk::flash(1 << 30, 1, Time::Fixed { ns: MS }, Time::Fixed { ns: MS });
        let (mut disk, mut random) = (DiskState::new(&Disk { cache: Some(cache), ..disk }), random());
        let done: Vec<u64> = (0..15).map(|_| disk.serve(0, true, false, 100_000, &mut random)).collect();
        assert!(done[..10].iter().all(|ns| *ns == 1_000), "{done:?}");
        assert_eq!((done[10], done[14]), (100 * MS + 1_000, 500 * MS + 1_000));
        assert_eq!(disk.serve(0, true, true, 4096, &mut random), MS, "through the cache");
        assert_eq!(disk.flush(0, &mut random), 1_500 * MS, "a flush waits for all of it");
    }

    #[test]
    fn flushes_that_come_while_one_runs_share_the_next() {
        let disk = Disk::flash(1 << 30, 1, Time::default(), Time::default());
        let (mut disk, mut random) =
            (DiskState::new(&Disk { sync: Time::Fixed { ns: MS }, ..disk }), random());
        let done = [0, 1, 2, 3].map(|at| disk.flush(at * MS / 10, &mut random));
        assert_eq!(done, [MS, 2 * MS, 2 * MS, 2 * MS]);
        assert_eq!(disk.flush(MS + 1, &mut random), 3 * MS, "the second runs: this is the third");
        assert_eq!(disk.flush(10 * MS, &mut random), 11 * MS);
    }

    #[test]
    fn nothing_begins_in_a_stall() {
        let stall = Some(Stall { every_ns: 100, length_ns: 20 });
        assert_eq!([0, 79, 80, 99, 100, 181].map(|at| after_stall(stall, at)), [0, 79, 100, 100, 100, 200]);
    }

    #[test]
    fn an_arm_takes_what_it_reaches_first_and_goes_on_where_it_is() {
        let arm =
            Rotating { rpm: 7200.0, seek_ns_min: MS, seek_ns_max: 16 * MS, bytes_per_s: 200e6, queue: 32 };
        let mut arm = Arm::new(&arm, 1 << 40);
        let mut random = random();
        for part in 0..20 {
            arm.wait(part, 0, u64::from(part + 1) << 35, 4096, &mut random);
        }
        arm.wait(99, 0, 0, 65_536, &mut random);
        let (first, ends_ns) = arm.begin(0);
        assert_eq!((first, ends_ns), (99, 327_680), "under the head: only its bytes");
        arm.busy = false;
        let (_, ends_ns) = arm.begin(ends_ns);
        assert!(ends_ns < 16 * MS, "of twenty, one is near in place and angle: {ends_ns}");
    }
}
