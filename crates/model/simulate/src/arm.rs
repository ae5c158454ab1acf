use crate::model::Rotating;
use stream::random::{Random, unit};

/// The arm of a rotating disk, and the parts that wait for it.
#[derive(Clone, Debug)]
pub struct Arm {
    rotation_ns: u64,
    track_bytes: u64,
    byte_ns: f64,
    seek_ns_min: f64,
    seek_ns_more: f64,
    size_bytes: f64,
    queue: usize,
    /// Offset behind the last I/O.
    head: u64,
    pub busy: bool,
    /// In order of arrival.
    pub waiting: Vec<Waiting>,
}

#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    part: u32,
    since_ns: u64,
    offset: u64,
    bytes: u64,
    /// Position on the track, in nanoseconds of a rotation.
    angle_ns: u64,
}

/// A part that has waited this long is served first, whatever its distance.
const PATIENCE_NS: u64 = 500_000_000;

impl Arm {
    pub fn new(arm: &Rotating, size_bytes: u64) -> Arm {
        let rotation_ns = 60e9 / arm.rpm;
        Arm {
            rotation_ns: (rotation_ns as u64).max(1),
            track_bytes: ((arm.bytes_per_s * rotation_ns / 1e9) as u64).max(512),
            byte_ns: 1e9 / arm.bytes_per_s,
            seek_ns_min: arm.seek_ns_min as f64,
            seek_ns_more: (arm.seek_ns_max - arm.seek_ns_min) as f64,
            size_bytes: size_bytes.max(1) as f64,
            queue: arm.queue as usize,
            head: 0,
            busy: false,
            waiting: Vec::new(),
        }
    }

    /// Adds a part that arrives at `now_ns`.
    pub fn wait(&mut self, part: u32, now_ns: u64, offset: u64, bytes: u64, random: &mut Random) {
        // The offset between tracks is unknown, so that the angle of a place is random, except where an I/O follows the
        // last one.
        let angle_ns = if offset == self.head || offset.is_multiple_of(self.track_bytes) {
            (offset % self.track_bytes) as f64 * self.byte_ns
        } else {
            unit(random) * self.rotation_ns as f64
        };
        let angle_ns = (angle_ns as u64) % self.rotation_ns;
        self.waiting.push(Waiting { part, since_ns: now_ns, offset, bytes, angle_ns });
    }

    /// Starts the waiting part that the head reaches first: its number, and when it completes.
    pub fn begin(&mut self, now_ns: u64) -> (u32, u64) {
        let now_angle_ns = now_ns % self.rotation_ns;
        let considered = &self.waiting[..self.waiting.len().min(self.queue)];
        let is_overdue = now_ns.saturating_sub(considered[0].since_ns) > PATIENCE_NS;
        let considered = if is_overdue { &considered[..1] } else { considered };
        let reach_ns = |part: &Waiting| self.reach_ns(now_angle_ns, part);
        let (at, reach_ns) = considered
            .iter()
            .map(reach_ns)
            .enumerate()
            .min_by_key(|(at, reach_ns)| (*reach_ns, *at))
            .unwrap_or((0, 0));
        let part = self.waiting.remove(at);
        self.busy = true;
        self.head = part.offset + part.bytes;
        (part.part, now_ns + reach_ns + (part.bytes as f64 * self.byte_ns) as u64)
    }

    /// Time until the head is over a part.
    #[inline]
    fn reach_ns(&self, now_angle_ns: u64, part: &Waiting) -> u64 {
        if part.offset == self.head {
            // It follows the last I/O: read-ahead has it in the disk's buffer, however late it arrives.
            return 0;
        }
        let distance = part.offset.abs_diff(self.head);
        let seek_ns = if distance < self.track_bytes {
            0
        } else {
            (self.seek_ns_min + self.seek_ns_more * (distance as f64 / self.size_bytes).sqrt()) as u64
        };
        let mut angle_ns = now_angle_ns + seek_ns;
        while angle_ns >= self.rotation_ns {
            angle_ns -= self.rotation_ns;
        }
        let rotation_ns = if part.angle_ns >= angle_ns { 0 } else { self.rotation_ns };
        seek_ns + rotation_ns + part.angle_ns - angle_ns
    }
}
