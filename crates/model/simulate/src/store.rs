use crate::DiskUse;
use crate::bucket::{Bucket, take_all};
use crate::disk::DiskAtWork;
use crate::events::Events;
use crate::model::Storage;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use workload::{LayoutMap, TraceKind};

/// One I/O that can be outstanding.
#[derive(Clone, Copy, Debug)]
pub struct Io {
    pub submitted_ns: u64,
    pub intended_ns: u64,
    /// Latest end of its parts.
    pub ends_ns: u64,
    pub offset: u64,
    pub bytes: u32,
    pub lane: u32,
    /// Parts that are not done.
    pub parts: u32,
    pub kind: TraceKind,
    pub step: Step,
    pub through: bool,
}

/// What an event of an I/O means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The controller lets it go on.
    Granted,
    /// Written, to be flushed.
    Written,
    Done,
}

/// A part that waits for its disk.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    io: u32,
    disk: u32,
    offset: u64,
    bytes: u64,
}

// What an event is about, in its upper bits; of the same time, I/Os that are done come first.
pub const IO: u64 = 0;
pub const PART: u64 = 1 << 32;
pub const ARM: u64 = 2 << 32;
pub const SEAT: u64 = 3 << 32;
pub const KIND: u64 = !0 << 32;

/// The storage's side: an I/O goes through the controller's limits, is cut by the layout, and each part goes through
/// its disk's limits to its disk.
#[derive(Debug)]
pub struct Store {
    pub used: Vec<DiskUse>,
    disks: Vec<DiskAtWork>,
    map: LayoutMap,
    buckets: Vec<Bucket>,
    waiting: Vec<Waiting>,
    waiting_free: Vec<u32>,
    random: Xoshiro256PlusPlus,
}

impl Store {
    /// One that nothing was done to.
    pub fn new(storage: &Storage) -> Store {
        let sizes: Vec<u64> = storage.disks.iter().map(|disk| disk.size_bytes).collect();
        Store {
            used: vec![DiskUse::default(); storage.disks.len()],
            disks: storage.disks.iter().map(DiskAtWork::new).collect(),
            map: LayoutMap::new(storage.layout, &sizes),
            buckets: storage.limits.iter().map(Bucket::new).collect(),
            waiting: Vec::new(),
            waiting_free: Vec::new(),
            // Another sequence than any workload's of the same seed.
            random: Xoshiro256PlusPlus::seed_from_u64(storage.seed ^ 0x73_746f_7261_6765),
        }
    }

    /// Bytes of all disks that the layout uses.
    pub fn size_bytes(&self) -> u64 {
        self.map.size_bytes()
    }

    /// An I/O reaches the controller.
    #[inline]
    pub fn submit(&mut self, at: u32, io: &mut Io, now_ns: u64, events: &mut Events) {
        if !self.buckets.is_empty() {
            let write = io.kind == TraceKind::Write;
            let granted_ns = take_all(&mut self.buckets, now_ns, write, u64::from(io.bytes));
            if granted_ns > now_ns {
                io.step = Step::Granted;
                events.push(granted_ns, IO | u64::from(at));
                return;
            }
        }
        self.dispatch(at, io, now_ns, events);
    }

    /// It goes to the disks.
    #[inline]
    pub fn dispatch(&mut self, at: u32, io: &mut Io, now_ns: u64, events: &mut Events) {
        let (mut offset, mut left) = (io.offset, u64::from(io.bytes));
        io.ends_ns = now_ns;
        if self.disks.len() == 1 {
            io.parts = 1;
            self.part(at, io, (0, offset, left), now_ns, events);
            return;
        }
        // One for this loop, so that no part is the last before all are on their way.
        io.parts = 1;
        while left > 0
            && let Some(part) = self.map.first_part(offset, left)
        {
            io.parts += 1;
            self.part(at, io, (part.member, part.offset, part.bytes), now_ns, events);
            offset += part.bytes;
            left -= part.bytes;
        }
        part_done(at, io, now_ns, events);
    }

    #[inline]
    fn part(
        &mut self,
        at: u32,
        io: &mut Io,
        (disk, offset, bytes): (usize, u64, u64),
        now_ns: u64,
        events: &mut Events,
    ) {
        let write = io.kind == TraceKind::Write;
        let used = &mut self.used[disk];
        *(if write { &mut used.writes } else { &mut used.reads }) += 1;
        used.bytes += bytes;
        let granted_ns = take_all(&mut self.disks[disk].buckets, now_ns, write, bytes);
        if granted_ns > now_ns {
            let waiting = self.wait(Waiting { io: at, disk: disk as u32, offset, bytes });
            events.push(granted_ns, PART | u64::from(waiting));
        } else {
            self.serve(at, io, (disk, offset, bytes), now_ns, events);
        }
    }

    #[inline]
    fn serve(
        &mut self,
        at: u32,
        io: &mut Io,
        (disk, offset, bytes): (usize, u64, u64),
        now_ns: u64,
        events: &mut Events,
    ) {
        let write = io.kind == TraceKind::Write;
        let it = &mut self.disks[disk];
        if it.goes_straight(write, io.through) {
            let ends_ns = it.serve(now_ns, write, io.through, bytes, &mut self.random);
            part_done(at, io, ends_ns, events);
            return;
        }
        let waiting = self.wait(Waiting { io: at, disk: disk as u32, offset, bytes });
        self.disks[disk].wait_for_arm(waiting, now_ns, offset, bytes, &mut self.random);
        self.turn(disk, now_ns, events);
    }

    fn turn(&mut self, disk: usize, now_ns: u64, events: &mut Events) {
        if let Some((waiting, ends_ns)) = self.disks[disk].next_of_arm(now_ns) {
            events.push(ends_ns, ARM | u64::from(waiting));
        }
    }

    fn wait(&mut self, waiting: Waiting) -> u32 {
        if let Some(at) = self.waiting_free.pop() {
            self.waiting[at as usize] = waiting;
            return at;
        }
        self.waiting.push(waiting);
        self.waiting.len() as u32 - 1
    }

    pub fn flush(&mut self, now_ns: u64) -> u64 {
        let random = &mut self.random;
        self.disks.iter_mut().map(|disk| disk.flush(now_ns, random)).max().unwrap_or(now_ns)
    }

    pub fn forget_waiting(&mut self) {
        self.waiting.clear();
        self.waiting_free.clear();
        self.disks.iter_mut().for_each(DiskAtWork::forget_waiting);
    }

    /// A part that waited for its disk's limits goes on.
    pub fn part_granted(&mut self, at: u32, ios: &mut [Io], now_ns: u64, events: &mut Events) {
        let part = self.waiting[at as usize];
        self.waiting_free.push(at);
        let place = (part.disk as usize, part.offset, part.bytes);
        self.serve(part.io, &mut ios[part.io as usize], place, now_ns, events);
    }

    /// An arm has done a part, and begins the next.
    pub fn arm_done(&mut self, at: u32, ios: &mut [Io], now_ns: u64, events: &mut Events) {
        let part = self.waiting[at as usize];
        self.waiting_free.push(at);
        self.disks[part.disk as usize].arm_is_free();
        part_done(part.io, &mut ios[part.io as usize], now_ns, events);
        self.turn(part.disk as usize, now_ns, events);
    }
}

#[inline]
fn part_done(at: u32, io: &mut Io, ends_ns: u64, events: &mut Events) {
    io.ends_ns = io.ends_ns.max(ends_ns);
    io.parts -= 1;
    if io.parts == 0 {
        events.push(io.ends_ns, IO | u64::from(at));
    }
}
