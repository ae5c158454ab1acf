use crate::bucket::Bucket;
use crate::model::{Cost, Disk, Mechanics, Rotating, Stall, WriteCache};
use crate::time::Sampler;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::RngCore;

/// A disk at work. Where I/Os are served in the order of their coming, all of an I/O's times follow when it comes:
/// when the channel and the first of the units become free is known (Kiefer and Wolfowitz 1955).
#[derive(Clone, Debug)]
pub struct DiskAtWork {
    pub buckets: Vec<Bucket>,
    pub mechanics: AtWork,
    cache: Option<CacheAtWork>,
    stall: Option<Stall>,
    sync: Sampler,
    /// Until when a flush runs, and the one behind it that all take which come meanwhile.
    flushing_ns: u64,
    next_flush_ns: u64,
}

#[derive(Clone, Debug)]
pub enum AtWork {
    Flash(Box<FlashAtWork>),
    Rotating(Arm),
}

#[derive(Clone, Debug)]
pub struct FlashAtWork {
    /// When each stage becomes free; of writes too, unless they have their own.
    channel: Vec<u64>,
    write_channel: Option<Vec<u64>>,
    /// Of writes too, unless they have their own.
    units: Units,
    write_units: Option<Units>,
    read: CostAtWork,
    write: CostAtWork,
}

#[derive(Clone, Debug)]
struct CostAtWork {
    has_channel: bool,
    channel: Sampler,
    channel_byte_ns: f64,
    service: Sampler,
    service_byte_ns: f64,
    delay: Sampler,
    delay_byte_ns: f64,
}

/// When each of the units becomes free: a heap, the first to be free on top.
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

    /// The first to be free is busy until then.
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
struct CacheAtWork {
    bytes: f64,
    write_ns: u64,
    drain_byte_ns: f64,
    /// When it will have drained all that is in it or waits for it.
    empty_ns: u64,
}

impl CacheAtWork {
    fn new(cache: &WriteCache) -> CacheAtWork {
        CacheAtWork {
            bytes: cache.bytes as f64,
            write_ns: cache.write_ns,
            drain_byte_ns: 1e9 / cache.drain_bytes_per_s,
            empty_ns: 0,
        }
    }

    /// When a write that comes at `now_ns` is in.
    fn write(&mut self, now_ns: u64, bytes: u64) -> u64 {
        self.empty_ns = self.empty_ns.max(now_ns) + (bytes as f64 * self.drain_byte_ns) as u64;
        // What takes longer to drain than a full cache does has no room yet.
        let room_ns = self.empty_ns.saturating_sub((self.bytes * self.drain_byte_ns) as u64);
        room_ns.max(now_ns) + self.write_ns
    }
}

impl CostAtWork {
    fn new(cost: &Cost) -> CostAtWork {
        CostAtWork {
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

/// Not before the end of a stall that `at_ns` lies in.
#[inline]
fn after_stall(stall: Option<Stall>, at_ns: u64) -> u64 {
    let Some(stall) = stall else { return at_ns };
    let within = at_ns % stall.every_ns;
    let begins = stall.every_ns - stall.length_ns;
    if within < begins { at_ns } else { at_ns + (stall.every_ns - within) }
}

impl DiskAtWork {
    pub fn new(disk: &Disk) -> DiskAtWork {
        let mechanics = match &disk.mechanics {
            Mechanics::Flash(flash) => AtWork::Flash(Box::new(FlashAtWork {
                channel: vec![0; flash.stages as usize],
                write_channel: flash.duplex.then(|| vec![0; flash.stages as usize]),
                units: Units::new(flash.units),
                write_units: flash.duplex.then(|| Units::new(flash.units)),
                read: CostAtWork::new(&flash.read),
                write: CostAtWork::new(&flash.write),
            })),
            Mechanics::Rotating(arm) => AtWork::Rotating(Arm::new(arm, disk.size_bytes)),
        };
        DiskAtWork {
            buckets: disk.limits.iter().map(Bucket::new).collect(),
            mechanics,
            cache: disk.cache.as_ref().map(CacheAtWork::new),
            stall: disk.stall,
            sync: Sampler::new(&disk.sync),
            flushing_ns: 0,
            next_flush_ns: 0,
        }
    }

    /// Whether its I/Os do not wait in a queue of which the disk chooses; else they go to the [`Arm`].
    #[inline]
    pub fn goes_straight(&self, write: bool, through: bool) -> bool {
        matches!(self.mechanics, AtWork::Flash(_)) || self.is_cached(write, through)
    }

    #[inline]
    fn is_cached(&self, write: bool, through: bool) -> bool {
        write && !through && self.cache.is_some()
    }

    /// When an I/O that comes at `now_ns` will be done. I/Os come in the order of time.
    #[inline]
    pub fn serve(
        &mut self,
        now_ns: u64,
        write: bool,
        through: bool,
        bytes: u64,
        random: &mut Xoshiro256PlusPlus,
    ) -> u64 {
        let mut at_ns = after_stall(self.stall, now_ns);
        let cached = self.is_cached(write, through);
        if let AtWork::Flash(flash) = &mut self.mechanics {
            let cost = if write { &flash.write } else { &flash.read };
            if cost.has_channel {
                let stages = match &mut flash.write_channel {
                    Some(own) if write => own,
                    _ => &mut flash.channel,
                };
                // Each gives I/Os on in the order of their coming.
                let byte_ns = (bytes as f64 * cost.channel_byte_ns) as u64;
                for free_ns in stages {
                    at_ns = at_ns.max(*free_ns) + cost.channel.draw(random) + byte_ns;
                    *free_ns = at_ns;
                }
            }
            if !cached {
                let units = match &mut flash.write_units {
                    Some(own) if write => own,
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

    /// When all that is written by now is durable. One flush runs at a time; those that come while it runs share the
    /// next one, as the kernel has it (block/blk-flush.c).
    pub fn flush(&mut self, now_ns: u64, random: &mut Xoshiro256PlusPlus) -> u64 {
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

    /// Begins the I/O of those that wait which the arm reaches first, if it has none: which, and when it ends.
    pub fn next_of_arm(&mut self, now_ns: u64) -> Option<(u32, u64)> {
        let AtWork::Rotating(arm) = &mut self.mechanics else { return None };
        if arm.busy || arm.waiting.is_empty() {
            return None;
        }
        let starts_ns = after_stall(self.stall, now_ns);
        Some(arm.begin(starts_ns))
    }

    /// The arm has done what it did.
    pub fn arm_is_free(&mut self) {
        if let AtWork::Rotating(arm) = &mut self.mechanics {
            arm.busy = false;
        }
    }

    /// An I/O waits for the arm.
    pub fn wait_for_arm(
        &mut self,
        part: u32,
        now_ns: u64,
        offset: u64,
        bytes: u64,
        random: &mut Xoshiro256PlusPlus,
    ) {
        if let AtWork::Rotating(arm) = &mut self.mechanics {
            arm.wait(part, now_ns, offset, bytes, random);
        }
    }

    /// What was under way is no more: between two phases.
    pub fn forget_waiting(&mut self) {
        if let AtWork::Rotating(arm) = &mut self.mechanics {
            arm.waiting.clear();
            arm.busy = false;
        }
    }
}

/// The arm of a turning disk, and who waits for it.
#[derive(Clone, Debug)]
pub struct Arm {
    turn_ns: u64,
    track_bytes: u64,
    byte_ns: f64,
    seek_ns_min: f64,
    seek_ns_more: f64,
    bytes: f64,
    queue: usize,
    /// Where the head ended, in bytes.
    head: u64,
    busy: bool,
    /// In the order of their coming.
    waiting: Vec<Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    part: u32,
    since_ns: u64,
    offset: u64,
    bytes: u64,
    /// Where on the track, in nanoseconds of a turn.
    angle_ns: u64,
}

/// Who has waited that long goes first, however far it is.
const PATIENCE_NS: u64 = 500_000_000;

impl Arm {
    fn new(arm: &Rotating, size_bytes: u64) -> Arm {
        let turn_ns = 60e9 / arm.rpm;
        Arm {
            turn_ns: (turn_ns as u64).max(1),
            track_bytes: ((arm.bytes_per_s * turn_ns / 1e9) as u64).max(512),
            byte_ns: 1e9 / arm.bytes_per_s,
            seek_ns_min: arm.seek_ns_min as f64,
            seek_ns_more: (arm.seek_ns_max - arm.seek_ns_min) as f64,
            bytes: size_bytes.max(1) as f64,
            queue: arm.queue as usize,
            head: 0,
            busy: false,
            waiting: Vec::new(),
        }
    }

    fn wait(&mut self, part: u32, now_ns: u64, offset: u64, bytes: u64, random: &mut Xoshiro256PlusPlus) {
        // Tracks are set off against each other by nobody knows what: the angle of a place is any, and the same again
        // only for what follows the head.
        let angle_ns = if offset == self.head || offset.is_multiple_of(self.track_bytes) {
            (offset % self.track_bytes) as f64 * self.byte_ns
        } else {
            (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 * self.turn_ns as f64
        };
        let angle_ns = (angle_ns as u64) % self.turn_ns;
        self.waiting.push(Waiting { part, since_ns: now_ns, offset, bytes, angle_ns });
    }

    fn begin(&mut self, now_ns: u64) -> (u32, u64) {
        let now_angle_ns = now_ns % self.turn_ns;
        let considered = &self.waiting[..self.waiting.len().min(self.queue)];
        let patient = now_ns.saturating_sub(considered[0].since_ns) > PATIENCE_NS;
        let considered = if patient { &considered[..1] } else { considered };
        let reach_ns = |it: &Waiting| self.reach_ns(now_angle_ns, it);
        let (at, reach_ns) = considered
            .iter()
            .map(reach_ns)
            .enumerate()
            .min_by_key(|(at, reach_ns)| (*reach_ns, *at))
            .unwrap_or((0, 0));
        let it = self.waiting.remove(at);
        self.busy = true;
        self.head = it.offset + it.bytes;
        (it.part, now_ns + reach_ns + (it.bytes as f64 * self.byte_ns) as u64)
    }

    #[inline]
    fn reach_ns(&self, now_angle_ns: u64, it: &Waiting) -> u64 {
        if it.offset == self.head {
            // The head is there: reading ahead has it in the disk's buffer, however long it was not asked for.
            return 0;
        }
        let far = it.offset.abs_diff(self.head);
        let seek_ns = if far < self.track_bytes {
            0
        } else {
            (self.seek_ns_min + self.seek_ns_more * (far as f64 / self.bytes).sqrt()) as u64
        };
        let mut there_ns = now_angle_ns + seek_ns;
        while there_ns >= self.turn_ns {
            there_ns -= self.turn_ns;
        }
        let turn_ns = if it.angle_ns >= there_ns { 0 } else { self.turn_ns };
        seek_ns + turn_ns + it.angle_ns - there_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Time;
    use rand_xoshiro::rand_core::SeedableRng;

    fn random() -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(1)
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn units_serve_so_many_at_once_and_the_others_wait() {
        let disk = Disk::flash(1 << 30, 3, Time::Fixed { ns: MS }, Time::Fixed { ns: 2 * MS });
        let (mut disk, mut random) = (DiskAtWork::new(&disk), random());
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
        let (mut disk, mut random) = (DiskAtWork::new(&disk), random());
        let done = [0, 0, 0, 9 * MS].map(|at| disk.serve(at, false, false, 4096, &mut random));
        assert_eq!(done, [3 * MS, 4 * MS, 5 * MS, 12 * MS]);
        assert_eq!(disk.serve(9 * MS, true, false, 4096, &mut random), 9 * MS, "writes do not take it");
    }

    #[test]
    fn a_cache_takes_writes_at_once_until_it_is_full_and_then_as_fast_as_it_drains() {
        let cache = WriteCache { bytes: 1_000_000, write_ns: 1_000, drain_bytes_per_s: 1e6 };
        let disk = Disk::flash(1 << 30, 1, Time::Fixed { ns: MS }, Time::Fixed { ns: MS });
        let (mut disk, mut random) = (DiskAtWork::new(&Disk { cache: Some(cache), ..disk }), random());
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
            (DiskAtWork::new(&Disk { sync: Time::Fixed { ns: MS }, ..disk }), random());
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
