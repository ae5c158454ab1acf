use crate::bucket::{Bucket, take_all};
use crate::client::{Ask, Lane, Want};
use crate::disk::DiskAtWork;
use crate::events::Events;
use crate::model::{Impossible, Storage};
use crate::record::Record;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use stream::{Chooser, Pace, used};
use workload::{
    Backend, LayoutMap, Phase, PhaseResult, Placed, Plan, RunResult, ThreadShare, Trace, TraceKind, Workload,
};

/// What a simulation gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// As a real run would tell it.
    pub phases: Vec<PhaseResult>,
    /// What each disk did, over all phases and their warm-ups.
    pub disks: Vec<DiskUse>,
    /// I/Os that were simulated, warm-up included.
    pub ios: u64,
}

/// What one disk of a layout did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUse {
    /// Reads, parts of larger ones each for itself.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes of both.
    pub bytes: u64,
}

/// How far a simulation is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Which phase, from 0.
    pub phase: usize,
    /// Share of its time, 0 to 1.
    pub share: f64,
    /// I/Os done by now.
    pub ios: u64,
}

/// Most I/Os that are outstanding at once.
pub const OUTSTANDING_MAX: u64 = 1 << 22;

/// What runs tell as their tool.
pub const TOOL: &str = "headroom simulate";

/// A storage in virtual time, with what was done to it: phases follow each other on it.
#[derive(Debug)]
pub struct Machine {
    storage: Storage,
    store: Store,
    size_bytes: u64,
    now_ns: u64,
    done: u64,
}

/// A region of the storage that a workload runs on, and its recorded I/Os if it has some.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// What is asked.
    pub workload: &'a Workload,
    /// For people.
    pub target: String,
    /// Where the region begins on the storage, bytes.
    pub offset: u64,
    /// How large it is.
    pub bytes: u64,
    /// Share in a pool.
    pub weight: u32,
    /// Asked in place of chosen I/Os.
    pub trace: Option<&'a Trace>,
}

/// One that can be outstanding.
#[derive(Clone, Copy, Debug)]
struct Io {
    submitted_ns: u64,
    intended_ns: u64,
    /// Latest end of its parts.
    ends_ns: u64,
    offset: u64,
    bytes: u32,
    lane: u32,
    /// Parts that are not done.
    parts: u32,
    kind: TraceKind,
    step: Step,
    through: bool,
}

/// What an event of an I/O means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
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
const IO: u64 = 0;
const PART: u64 = 1 << 32;
const ARM: u64 = 2 << 32;
const SEAT: u64 = 3 << 32;
const KIND: u64 = !0 << 32;

/// The storage's side.
#[derive(Debug)]
struct Store {
    disks: Vec<DiskAtWork>,
    used: Vec<DiskUse>,
    map: LayoutMap,
    buckets: Vec<Bucket>,
    waiting: Vec<Waiting>,
    waiting_free: Vec<u32>,
    random: Xoshiro256PlusPlus,
}

impl Store {
    /// An I/O reaches the controller.
    #[inline]
    fn submit(&mut self, at: u32, io: &mut Io, now_ns: u64, events: &mut Events) {
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
    fn dispatch(&mut self, at: u32, io: &mut Io, now_ns: u64, events: &mut Events) {
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

    fn flush(&mut self, now_ns: u64) -> u64 {
        let random = &mut self.random;
        self.disks.iter_mut().map(|disk| disk.flush(now_ns, random)).max().unwrap_or(now_ns)
    }

    fn forget_waiting(&mut self) {
        self.waiting.clear();
        self.waiting_free.clear();
        self.disks.iter_mut().for_each(DiskAtWork::forget_waiting);
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

/// One thread.
#[derive(Debug)]
struct Seat {
    /// Its lanes, and their weights.
    lanes: std::ops::Range<usize>,
    weights: Vec<u32>,
    /// Most in flight over all lanes, where they share it.
    shared_depth: Option<u32>,
    in_flight: u32,
    /// An event will wake it then.
    wakes_ns: u64,
}

/// The measured part of a phase.
#[derive(Clone, Copy, Debug)]
struct Window {
    from_ns: u64,
    until_ns: u64,
    end_ns: u64,
}

/// A phase while it is simulated.
struct Run<'m, 'a> {
    store: &'m mut Store,
    events: Events,
    ios: Vec<Io>,
    lanes: Vec<Lane<'a>>,
    seat_of: Vec<u32>,
    seats: Vec<Seat>,
    records: Vec<Record>,
    window: Window,
    /// Each thread's share is told apart.
    shares: bool,
    done: u64,
}

/// The watcher is asked after so many events.
const WATCH_EVENTS: u32 = 1 << 16;

impl Machine {
    /// Storage that nothing was done to.
    ///
    /// # Errors
    /// Where the model is out of range.
    pub fn new(storage: &Storage) -> Result<Machine, Impossible> {
        storage.validate()?;
        let sizes: Vec<u64> = storage.disks.iter().map(|disk| disk.size_bytes).collect();
        let map = LayoutMap::new(storage.layout, &sizes);
        let store = Store {
            disks: storage.disks.iter().map(DiskAtWork::new).collect(),
            used: vec![DiskUse::default(); storage.disks.len()],
            buckets: storage.limits.iter().map(Bucket::new).collect(),
            waiting: Vec::new(),
            waiting_free: Vec::new(),
            // Another sequence than any workload's of the same seed.
            random: Xoshiro256PlusPlus::seed_from_u64(storage.seed ^ 0x73_746f_7261_6765),
            map,
        };
        let size_bytes = store.map.size_bytes();
        Ok(Machine { storage: storage.clone(), store, size_bytes, now_ns: 0, done: 0 })
    }

    /// The model.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// Runs the jobs of a phase at once, as the load crate would; `watch` is told the share of its time that is done,
    /// and ends it by `false`.
    ///
    /// # Errors
    /// Where a workload cannot be run on this storage.
    pub fn run(
        &mut self,
        phase: &Phase,
        jobs: &[Job<'_>],
        watch: &mut dyn FnMut(f64, u64) -> bool,
    ) -> Result<Vec<RunResult>, Impossible> {
        self.check(phase, jobs)?;
        let (start_ns, length) = (self.now_ns, &phase.length);
        let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let from_ns = start_ns.saturating_add(ns(length.warm_up));
        let until_ns = from_ns.saturating_add(ns(length.duration));
        let window = Window { from_ns, until_ns, end_ns: until_ns.saturating_add(ns(length.cool_down)) };
        let mut run = Run::new(&mut self.store, phase, jobs, window);
        let interrupted = run.go(start_ns, watch);
        let (results, done) = run.finish(phase, jobs, start_ns, interrupted);
        self.done += done;
        self.now_ns = window.end_ns;
        self.store.forget_waiting();
        Ok(results)
    }

    fn check(&self, phase: &Phase, jobs: &[Job<'_>]) -> Result<(), Impossible> {
        let mut outstanding = 0_u64;
        for job in jobs {
            let workload = job.workload;
            workload
                .validate()
                .map_err(|invalid| Impossible::new(invalid.to_string(), "change the workload"))?;
            let threads = phase.pool.map_or(workload.threads, |pool| pool.threads);
            let each = phase.pool.and_then(|pool| pool.outstanding).unwrap_or(workload.outstanding);
            outstanding += u64::from(threads) * u64::from(each);
            if job.offset.checked_add(job.bytes).is_none_or(|end| end > self.size_bytes) {
                let what = format!("{} behind the storage's end, {} bytes", job.target, self.size_bytes);
                return Err(Impossible::new(what, "give a larger storage, or smaller targets"));
            }
            let (_, span) = used(workload, job.offset, job.bytes);
            if span < u64::from(workload.shape.block_bytes) {
                let what = format!("{span} bytes of {}", job.target);
                return Err(Impossible::new(what, "give a region that holds at least one block"));
            }
            if let Some(trace) = job.trace {
                let beyond = trace.ios.iter().find(|io| {
                    io.offset_bytes < job.offset
                        || io.offset_bytes.saturating_add(u64::from(io.bytes)) > job.offset + job.bytes
                });
                if let Some(io) = beyond {
                    let what = format!("a recorded I/O at {} of {}", io.offset_bytes, job.target);
                    return Err(Impossible::new(what, "give a larger storage"));
                }
            }
        }
        if outstanding > OUTSTANDING_MAX {
            return Err(Impossible::new(format!("{outstanding} outstanding I/Os"), "give at most 4194304"));
        }
        Ok(())
    }

    /// What each disk did by now.
    pub fn disks(&self) -> &[DiskUse] {
        &self.store.used
    }

    /// I/Os simulated by now.
    pub fn ios(&self) -> u64 {
        self.done
    }
}

impl<'m, 'a> Run<'m, 'a> {
    fn new(store: &'m mut Store, phase: &Phase, jobs: &[Job<'a>], window: Window) -> Run<'m, 'a> {
        let slice_ns = (phase.slice.as_nanos() as u64).max(1_000_000);
        let mut run = Run {
            store,
            events: Events::default(),
            ios: Vec::new(),
            lanes: Vec::new(),
            seat_of: Vec::new(),
            seats: Vec::new(),
            records: jobs.iter().map(|job| Record::new(slice_ns, job.workload.is_open_loop())).collect(),
            window,
            shares: phase.pool.is_some() || jobs.iter().any(|job| job.workload.threads > 1),
            done: 0,
        };
        let shared: Vec<Arc<_>> = jobs.iter().map(|_| Arc::default()).collect();
        let ios_max = phase.length.ios_max;
        let mut seat = |places: &[(usize, u32, u32, u32)], shared_depth| {
            let first = run.lanes.len();
            for (job, at, threads, slots) in places.iter().copied() {
                let it = &jobs[job];
                let ios = run.ios.len() as u32..run.ios.len() as u32 + slots;
                let empty = Io {
                    submitted_ns: 0,
                    intended_ns: 0,
                    ends_ns: 0,
                    offset: 0,
                    bytes: 0,
                    lane: run.lanes.len() as u32,
                    parts: 0,
                    kind: TraceKind::Read,
                    step: Step::Done,
                    through: false,
                };
                run.ios.resize(ios.end as usize, empty);
                // And the lane's sync.
                run.ios.push(Io { kind: TraceKind::Sync, ..empty });
                let chooser = Chooser::new(it.workload, it.offset, it.bytes, at, threads, &shared[job]);
                let most = ios_max.map(|most| {
                    most / u64::from(threads) + u64::from(u64::from(at) < most % u64::from(threads))
                });
                let trace = it.trace.map(|trace| (trace, threads as usize));
                let pace = Pace::new(it.workload, at, threads);
                run.seat_of.push(run.seats.len() as u32);
                run.lanes.push(Lane::new((job, at), it.workload, chooser, pace, trace, most, ios));
            }
            let weights = places.iter().map(|(job, ..)| jobs[*job].weight).collect();
            let lanes = first..run.lanes.len();
            run.seats.push(Seat { lanes, weights, shared_depth, in_flight: 0, wakes_ns: u64::MAX });
        };
        match phase.pool {
            Some(pool) => {
                for at in 0..pool.threads {
                    let slots = |job: &Job<'_>| pool.outstanding.unwrap_or(job.workload.outstanding);
                    let places: Vec<_> =
                        jobs.iter().enumerate().map(|(of, job)| (of, at, pool.threads, slots(job))).collect();
                    seat(&places, pool.outstanding);
                }
            }
            None => {
                for (of, job) in jobs.iter().enumerate() {
                    let threads = job.workload.threads;
                    (0..threads).for_each(|at| seat(&[(of, at, threads, job.workload.outstanding)], None));
                }
            }
        }
        run.events = Events::with_capacity(run.ios.len() + run.seats.len());
        run
    }

    /// Event after event; whether it was ended by the watcher.
    fn go(&mut self, start_ns: u64, watch: &mut dyn FnMut(f64, u64) -> bool) -> bool {
        for seat in 0..self.seats.len() {
            for lane in self.seats[seat].lanes.clone() {
                let lane = &mut self.lanes[lane];
                lane.pace.begin(start_ns, &mut lane.chooser.random);
            }
        }
        for seat in 0..self.seats.len() {
            self.ask(seat, start_ns);
        }
        let mut until_watched = WATCH_EVENTS;
        let (mut closed, mut interrupted) = (false, false);
        let mut last_ns = start_ns;
        while let Some((now_ns, what)) = self.events.pop() {
            if now_ns >= self.window.until_ns && !closed {
                closed = true;
                self.close(now_ns);
            }
            last_ns = now_ns;
            if now_ns >= self.window.end_ns {
                break;
            }
            let at = what as u32;
            match what & KIND {
                IO => self.step(at, now_ns),
                PART => {
                    let part = self.store.waiting[at as usize];
                    self.store.waiting_free.push(at);
                    let io = &mut self.ios[part.io as usize];
                    let place = (part.disk as usize, part.offset, part.bytes);
                    self.store.serve(part.io, io, place, now_ns, &mut self.events);
                }
                ARM => {
                    let part = self.store.waiting[at as usize];
                    self.store.waiting_free.push(at);
                    self.store.disks[part.disk as usize].arm_is_free();
                    part_done(part.io, &mut self.ios[part.io as usize], now_ns, &mut self.events);
                    self.store.turn(part.disk as usize, now_ns, &mut self.events);
                }
                _ => {
                    let seat = &mut self.seats[at as usize];
                    if seat.wakes_ns == now_ns {
                        seat.wakes_ns = u64::MAX;
                    }
                    self.ask(at as usize, now_ns);
                }
            }
            until_watched -= 1;
            if until_watched == 0 {
                until_watched = WATCH_EVENTS;
                let whole = self.window.end_ns.saturating_sub(start_ns).max(1);
                if !watch((now_ns - start_ns) as f64 / whole as f64, self.done) {
                    interrupted = true;
                    self.window.until_ns = now_ns.max(self.window.from_ns).min(self.window.until_ns);
                    break;
                }
            }
        }
        if !closed {
            self.close(last_ns);
        }
        interrupted
    }

    /// What an I/O's event means.
    #[inline]
    fn step(&mut self, at: u32, now_ns: u64) {
        let io = &mut self.ios[at as usize];
        match io.step {
            Step::Done => self.done(at, now_ns),
            Step::Granted => {
                let flushed = io.kind == TraceKind::Write && self.lanes[io.lane as usize].synced_each;
                io.step = if flushed { Step::Written } else { Step::Done };
                self.store.dispatch(at, io, now_ns, &mut self.events);
            }
            Step::Written => {
                io.step = Step::Done;
                let ends_ns = self.store.flush(now_ns);
                self.events.push(ends_ns, IO | u64::from(at));
            }
        }
    }

    /// An I/O or a sync is done.
    #[inline]
    fn done(&mut self, at: u32, now_ns: u64) {
        let io = self.ios[at as usize];
        let lane = &mut self.lanes[io.lane as usize];
        let seat = self.seat_of[io.lane as usize] as usize;
        let counts = now_ns >= self.window.from_ns && now_ns < self.window.until_ns;
        let latency_ns = now_ns - io.submitted_ns;
        if at == lane.sync_io {
            lane.synced();
            if counts {
                self.records[lane.job].synced(latency_ns);
            }
            self.ask(seat, now_ns);
            return;
        }
        lane.returned(at, io.kind == TraceKind::Read);
        self.seats[seat].in_flight -= 1;
        self.done += 1;
        if counts {
            let record = &mut self.records[lane.job];
            if io.kind == TraceKind::Sync {
                record.synced(latency_ns);
            } else {
                let write = io.kind == TraceKind::Write;
                lane.counted += 1;
                let at_ns = now_ns - self.window.from_ns;
                record.completed(at_ns, write, io.bytes, latency_ns, now_ns - io.intended_ns);
                if self.shares {
                    let tally = if write { &mut lane.write } else { &mut lane.read };
                    tally.record_n(latency_ns, u64::from(io.bytes), 1);
                }
            }
        }
        if lane.plain && self.seats[seat].shared_depth.is_none() {
            // Only this lane has room now.
            if let Some(ask) = lane.want_plain(now_ns) {
                self.submit(io.lane as usize, seat, ask, now_ns);
            }
        } else {
            self.ask(seat, now_ns);
        }
    }

    /// A thread asks for all that it may.
    fn ask(&mut self, seat: usize, now_ns: u64) {
        let mut due_ns = u64::MAX;
        if let Some(depth) = self.seats[seat].shared_depth {
            let mut weights = self.seats[seat].weights.clone();
            let lanes = self.seats[seat].lanes.clone();
            while self.seats[seat].in_flight < depth && weights.iter().any(|weight| *weight > 0) {
                let chosen = weighted(&weights, &mut self.lanes[lanes.start].chooser);
                match self.ask_lane(lanes.start + chosen, seat, now_ns) {
                    Want::Io(_) | Want::Sync => {}
                    Want::Later(at_ns) => {
                        due_ns = due_ns.min(at_ns);
                        weights[chosen] = 0;
                    }
                    Want::Completion | Want::Done => weights[chosen] = 0,
                }
            }
        } else {
            for lane in self.seats[seat].lanes.clone() {
                loop {
                    match self.ask_lane(lane, seat, now_ns) {
                        Want::Io(_) | Want::Sync => {}
                        Want::Later(at_ns) => {
                            due_ns = due_ns.min(at_ns);
                            break;
                        }
                        Want::Completion | Want::Done => break,
                    }
                }
            }
        }
        let seat_at = seat as u64;
        let seat = &mut self.seats[seat];
        if due_ns < seat.wakes_ns {
            seat.wakes_ns = due_ns;
            self.events.push(due_ns, SEAT | seat_at);
        }
    }

    #[inline]
    fn ask_lane(&mut self, lane: usize, seat: usize, now_ns: u64) -> Want {
        let it = &mut self.lanes[lane];
        let want =
            if it.plain { it.want_plain(now_ns).map_or(Want::Completion, Want::Io) } else { it.want(now_ns) };
        match want {
            Want::Io(ask) => self.submit(lane, seat, ask, now_ns),
            Want::Sync => {
                let at = it.sync_io;
                let io = &mut self.ios[at as usize];
                (io.submitted_ns, io.step) = (now_ns, Step::Done);
                let ends_ns = self.store.flush(now_ns);
                self.events.push(ends_ns, IO | u64::from(at));
            }
            _ => {}
        }
        want
    }

    #[inline]
    fn submit(&mut self, lane: usize, seat: usize, ask: Ask, now_ns: u64) {
        let it = &self.lanes[lane];
        self.seats[seat].in_flight += 1;
        let io = &mut self.ios[ask.io as usize];
        let flushed = it.synced_each && ask.kind == TraceKind::Write;
        *io = Io {
            submitted_ns: now_ns,
            intended_ns: ask.intended_ns,
            ends_ns: 0,
            offset: ask.offset,
            bytes: ask.bytes,
            lane: lane as u32,
            parts: 0,
            kind: ask.kind,
            step: if flushed { Step::Written } else { Step::Done },
            through: it.through,
        };
        if ask.kind == TraceKind::Sync {
            let ends_ns = self.store.flush(now_ns);
            self.events.push(ends_ns, IO | u64::from(ask.io));
            return;
        }
        self.store.submit(ask.io, io, now_ns, &mut self.events);
    }

    /// The measured part is over: what of an open loop still waits?
    fn close(&mut self, now_ns: u64) {
        let until_ns = self.window.until_ns.min(now_ns);
        for lane in &mut self.lanes {
            if !lane.pace.is_open() {
                continue;
            }
            let (mut waiting, mut oldest_ns) = lane.overdue(until_ns);
            let free: std::collections::HashSet<u32> = lane.free.iter().copied().collect();
            for io in lane.first_io..lane.sync_io {
                let it = &self.ios[io as usize];
                if !free.contains(&io) && it.intended_ns < until_ns {
                    waiting += 1;
                    oldest_ns = oldest_ns.min(it.intended_ns);
                }
            }
            let longest_ns = if waiting > 0 { until_ns.saturating_sub(oldest_ns) } else { 0 };
            self.records[lane.job].waiting(waiting, longest_ns);
        }
    }

    fn finish(
        self,
        phase: &Phase,
        jobs: &[Job<'_>],
        start_ns: u64,
        interrupted: bool,
    ) -> (Vec<RunResult>, u64) {
        let window = self.window;
        let mut results = Vec::new();
        for (at, (job, record)) in jobs.iter().zip(self.records).enumerate() {
            let lanes = || self.lanes.iter().filter(|lane| lane.job == at);
            let over = lanes().all(Lane::is_finished);
            let measured_ns = window.until_ns.saturating_sub(window.from_ns);
            let elapsed_ns = if over { record.last_ns.min(measured_ns) } else { measured_ns };
            let mut result = RunResult {
                backend: Backend::Foreign,
                tool: Some(TOOL.to_owned()),
                started_unix_ns: window.from_ns.max(start_ns),
                elapsed_ns,
                interrupted,
                target_bytes: job.bytes,
                slice_ns: (phase.slice.as_nanos() as u64).max(1_000_000),
                pool: phase.pool,
                ..RunResult::empty(job.workload.clone(), job.target.clone())
            };
            record.finish(&mut result);
            result.threads = lanes()
                .map(|lane| ThreadShare { read: lane.read, write: lane.write, ..ThreadShare::default() })
                .collect();
            if let ([one], false) = (&mut result.threads[..], self.shares) {
                for slice in &result.series {
                    one.read.merge(&slice.read);
                    one.write.merge(&slice.write);
                }
            }
            results.push(result);
        }
        (results, self.done)
    }
}

/// A lane by chance, in proportion to the weights, as the load crate draws it.
fn weighted(weights: &[u32], chooser: &mut Chooser) -> usize {
    let mut point = chooser.below(weights.iter().map(|weight| u64::from(*weight)).sum());
    let hit = |weight: &u32| match point.checked_sub(u64::from(*weight)) {
        None => true,
        Some(rest) => {
            point = rest;
            false
        }
    };
    weights.iter().position(hit).unwrap_or(0)
}

/// Simulates a plan: phase after phase on one storage. Targets that say their size lie one behind the other on it,
/// the others are all of it. `traces` are those of the workloads that replay one, by phase and workload.
///
/// # Errors
/// Where storage or plan cannot be simulated.
pub fn simulate<'t>(
    plan: &Plan,
    storage: &Storage,
    traces: &dyn Fn(&Placed) -> Option<&'t Trace>,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Simulated, Impossible> {
    let mut machine = Machine::new(storage)?;
    let size_bytes = machine.size_bytes;
    let mut next = 0_u64;
    let mut regions = Vec::new();
    for target in &plan.targets {
        regions.push(match target.create_bytes {
            Some(bytes) => (target.path.display().to_string(), next, bytes),
            None => (target.path.display().to_string(), 0, size_bytes),
        });
        next = next.saturating_add(target.create_bytes.unwrap_or(0));
    }
    if regions.is_empty() {
        regions.push(("simulated".to_owned(), 0, size_bytes));
    }
    let mut phases = Vec::new();
    for (at, phase) in plan.phases.iter().enumerate() {
        let jobs: Result<Vec<Job<'_>>, Impossible> = phase
            .workloads
            .iter()
            .map(|placed| {
                let region = regions.get(placed.target);
                let (target, offset, bytes) = region
                    .cloned()
                    .ok_or_else(|| Impossible::new("a target that is not there", "name it"))?;
                let trace = traces(placed);
                Ok(Job { workload: &placed.workload, target, offset, bytes, weight: placed.weight, trace })
            })
            .collect();
        let mut go_on = true;
        let before = machine.ios();
        let results = machine.run(phase, &jobs?, &mut |share, ios| {
            go_on = watch(Progress { phase: at, share, ios: before + ios });
            go_on
        })?;
        phases.push(PhaseResult { name: phase.name.clone(), results });
        if !go_on {
            break;
        }
    }
    Ok(Simulated { phases, disks: machine.disks().to_vec(), ios: machine.ios() })
}
