use crate::bucket::{Bucket, take_all};
use crate::disk::DiskState;
use crate::events::Events;
use crate::model::Storage;
use serde::{Deserialize, Serialize};
use stream::random::{Random, seeded};
use workload::{LayoutMap, Part, TraceKind};

/// I/Os of one disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUse {
    /// Reads; each part of an I/O counts.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes of both.
    pub bytes: u64,
}

/// One I/O that can be outstanding.
#[derive(Clone, Copy, Debug, Default)]
pub struct Io {
    pub submitted_ns: u64,
    pub intended_ns: u64,
    /// Latest end of the parts so far.
    pub ends_ns: u64,
    pub offset: u64,
    pub bytes: u32,
    pub lane: u32,
    /// Parts in flight.
    pub parts: u32,
    pub kind: TraceKind,
    /// Meaning of its next event.
    pub step: Step,
    /// Written around the disk's cache.
    pub through: bool,
}

/// Meaning of the next event of an I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Step {
    /// The controller's limits let it pass.
    Granted,
    /// It is written and must be flushed.
    Written,
    /// It has completed.
    #[default]
    Done,
}

/// A part of an I/O that waits for its disk.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    io: u32,
    disk: u32,
    offset: u64,
    bytes: u64,
}

// The upper bits of an event are its kind, the lower ones an index. At the same time, events of I/Os come first.
pub const EVENT_IO: u64 = 0;
pub const EVENT_PART: u64 = 1 << 32;
pub const EVENT_ARM: u64 = 2 << 32;
pub const EVENT_THREAD: u64 = 3 << 32;
pub const EVENT_KIND: u64 = !0 << 32;

/// The disks of a storage: an I/O passes the controller's limits, the layout cuts it into parts, and each part passes its
/// disk's limits and is served by the disk.
#[derive(Debug)]
pub struct DiskArray {
    pub used: Vec<DiskUse>,
    disks: Vec<DiskState>,
    map: LayoutMap,
    buckets: Vec<Bucket>,
    waiting: Vec<Waiting>,
    waiting_free: Vec<u32>,
    random: Random,
}

impl DiskArray {
    /// Idle disks with empty caches.
    pub fn new(storage: &Storage) -> DiskArray {
        let sizes: Vec<u64> = storage.disks.iter().map(|disk| disk.size_bytes).collect();
        DiskArray {
            used: vec![DiskUse::default(); storage.disks.len()],
            disks: storage.disks.iter().map(DiskState::new).collect(),
            map: LayoutMap::new(storage.layout, &sizes),
            buckets: storage.limits.iter().map(Bucket::new).collect(),
            waiting: Vec::new(),
            waiting_free: Vec::new(),
            // Differs from the sequence of a workload with the same seed.
            random: seeded(storage.seed ^ 0x73_746f_7261_6765),
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
                events.push(granted_ns, EVENT_IO | u64::from(at));
                return;
            }
        }
        self.dispatch(at, io, now_ns, events);
    }

    /// Sends an I/O to the disks.
    #[inline]
    pub fn dispatch(&mut self, at: u32, io: &mut Io, now_ns: u64, events: &mut Events) {
        let (mut offset, mut left) = (io.offset, u64::from(io.bytes));
        io.ends_ns = now_ns;
        if self.disks.len() == 1 {
            io.parts = 1;
            let part = Part { member: 0, offset, bytes: left };
            self.send_part(at, io, part, now_ns, events);
            return;
        }
        // One is this loop's, so that no part is the last before all are sent.
        io.parts = 1;
        while left > 0
            && let Some(part) = self.map.first_part(offset, left)
        {
            io.parts += 1;
            self.send_part(at, io, part, now_ns, events);
            offset += part.bytes;
            left -= part.bytes;
        }
        part_done(at, io, now_ns, events);
    }

    #[inline]
    fn send_part(&mut self, at: u32, io: &mut Io, part: Part, now_ns: u64, events: &mut Events) {
        let Part { member: disk, offset, bytes } = part;
        let write = io.kind == TraceKind::Write;
        let used = &mut self.used[disk];
        *(if write { &mut used.writes } else { &mut used.reads }) += 1;
        used.bytes += bytes;
        let granted_ns = take_all(&mut self.disks[disk].buckets, now_ns, write, bytes);
        if granted_ns > now_ns {
            let waiting = self.wait(Waiting { io: at, disk: disk as u32, offset, bytes });
            events.push(granted_ns, EVENT_PART | u64::from(waiting));
        } else {
            self.serve(at, io, part, now_ns, events);
        }
    }

    #[inline]
    fn serve(&mut self, at: u32, io: &mut Io, part: Part, now_ns: u64, events: &mut Events) {
        let Part { member: disk, offset, bytes } = part;
        let write = io.kind == TraceKind::Write;
        let state = &mut self.disks[disk];
        if state.serves_in_order(write, io.through) {
            let ends_ns = state.serve(now_ns, write, io.through, bytes, &mut self.random);
            part_done(at, io, ends_ns, events);
            return;
        }
        let waiting = self.wait(Waiting { io: at, disk: disk as u32, offset, bytes });
        if let Some(arm) = self.disks[disk].arm() {
            arm.wait(waiting, now_ns, offset, bytes, &mut self.random);
        }
        self.start_arm(disk, now_ns, events);
    }

    /// Starts the next I/O of a disk's arm, if it is free.
    fn start_arm(&mut self, disk: usize, now_ns: u64, events: &mut Events) {
        if let Some((waiting, ends_ns)) = self.disks[disk].start_arm(now_ns) {
            events.push(ends_ns, EVENT_ARM | u64::from(waiting));
        }
    }

    /// Keeps a part that waits; its index.
    fn wait(&mut self, waiting: Waiting) -> u32 {
        if let Some(at) = self.waiting_free.pop() {
            self.waiting[at as usize] = waiting;
            return at;
        }
        self.waiting.push(waiting);
        self.waiting.len() as u32 - 1
    }

    /// When a flush of all disks that is requested at `now_ns` ends.
    pub fn flush(&mut self, now_ns: u64) -> u64 {
        let random = &mut self.random;
        self.disks.iter_mut().map(|disk| disk.flush(now_ns, random)).max().unwrap_or(now_ns)
    }

    /// Drops what is in progress, between two phases.
    pub fn clear_waiting(&mut self) {
        self.waiting.clear();
        self.waiting_free.clear();
        for arm in self.disks.iter_mut().filter_map(DiskState::arm) {
            arm.waiting.clear();
            arm.busy = false;
        }
    }

    /// A part that waited for its disk's limits passes them.
    pub fn part_granted(&mut self, at: u32, ios: &mut [Io], now_ns: u64, events: &mut Events) {
        let part = self.waiting[at as usize];
        self.waiting_free.push(at);
        let place = Part { member: part.disk as usize, offset: part.offset, bytes: part.bytes };
        self.serve(part.io, &mut ios[part.io as usize], place, now_ns, events);
    }

    /// An arm has served a part, and starts the next.
    pub fn arm_done(&mut self, at: u32, ios: &mut [Io], now_ns: u64, events: &mut Events) {
        let part = self.waiting[at as usize];
        self.waiting_free.push(at);
        if let Some(arm) = self.disks[part.disk as usize].arm() {
            arm.busy = false;
        }
        part_done(part.io, &mut ios[part.io as usize], now_ns, events);
        self.start_arm(part.disk as usize, now_ns, events);
    }
}

#[inline]
fn part_done(at: u32, io: &mut Io, ends_ns: u64, events: &mut Events) {
    io.ends_ns = io.ends_ns.max(ends_ns);
    io.parts -= 1;
    if io.parts == 0 {
        events.push(io.ends_ns, EVENT_IO | u64::from(at));
    }
}
