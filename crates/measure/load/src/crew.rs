use crate::blocking_loop::BlockingLoop;
use crate::content::{Source, Writer};
use crate::course::{Course, supervise};
use crate::gather::gather;
use crate::lane::Lane;
use crate::ledger::Ledger;
use crate::live::{Live, Progress, Shared};
use crate::mapped::Mapping;
use crate::recorder::Recorder;
use crate::ring_loop::RingLoop;
use crate::run::{Affinity, Job, LoadError, Next, Together, backend_of};
use crate::verification::verify;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use storage::ring::Ring;
use storage::{IoBuffers, Laid, Region};
use stream::{Chooser, Stream, used};
use workload::{Backend, Content, Layout, MemberShare, RunResult, ThreadShare, Trace, Verification, Verify};

/// One thread of a run, and the workloads that it serves.
#[derive(Clone, Debug)]
pub struct Seat {
    pub backend: Backend,
    pub places: Vec<Place>,
    /// Outstanding I/Os over all its workloads, where they share them.
    pub shared_depth: Option<u32>,
}

/// One workload's place in a thread.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub job: usize,
    /// Which of the job's threads, and how many there are.
    pub at: u32,
    pub threads: u32,
    /// Outstanding I/Os here.
    pub slots: u32,
}

/// What one thread did for one of its workloads.
pub struct Outcome {
    pub job: usize,
    pub at: u32,
    pub share: ThreadShare,
    pub recorder: Recorder,
    pub checked: Verification,
    /// The lane ended on its own: its count was done, its trace at an end, or only failures came back.
    pub over: bool,
}

/// What the threads of a job have in common.
struct Common {
    next: Arc<AtomicU64>,
    source: Option<Arc<Source>>,
    ledger: Option<Arc<Ledger>>,
    mapping: Option<Mapping>,
}

/// All threads of a run.
pub struct Crew<'a> {
    jobs: &'a [Job<'a>],
    how: &'a Together,
    seats: &'a [Seat],
    common: Vec<Common>,
}

/// The threads that the jobs need.
pub fn seats(jobs: &[Job<'_>], how: &Together, may_ring: bool) -> Vec<Seat> {
    if let Some(pool) = how.pool.filter(|_| may_ring) {
        let places = |at| {
            let place = |(job, of): (usize, &Job<'_>)| {
                let slots = pool.outstanding.unwrap_or(of.workload.outstanding);
                Place { job, at, threads: pool.threads, slots }
            };
            jobs.iter().enumerate().map(place).collect()
        };
        let seat =
            |at| Seat { backend: Backend::IoUring, places: places(at), shared_depth: pool.outstanding };
        return (0..pool.threads).map(seat).collect();
    }
    let mut seats = Vec::new();
    for (job, of) in jobs.iter().enumerate() {
        let backend = backend_of(of.workload, may_ring);
        let threads = how.pool.map_or(of.workload.threads, |pool| pool.threads);
        // Blocking: one thread for each outstanding I/O. Sequential parts are then smaller, but all is walked.
        let (threads, slots) = match backend {
            Backend::IoUring => (threads, of.workload.outstanding),
            _ => (threads.saturating_mul(of.workload.outstanding), 1),
        };
        let place = |at| Place { job, at, threads, slots };
        seats.extend((0..threads).map(|at| Seat { backend, places: vec![place(at)], shared_depth: None }));
    }
    seats
}

impl Seat {
    fn block_bytes(&self, jobs: &[Job<'_>]) -> u32 {
        self.places.iter().map(|place| jobs[place.job].workload.shape.block_bytes).max().unwrap_or(0)
    }

    fn slots(&self) -> u32 {
        self.places.iter().map(|place| place.slots).sum()
    }

    /// A slot that both reads and writes has a buffer for each: what is read must not be what is written next.
    fn doubled(&self, jobs: &[Job<'_>]) -> bool {
        self.backend != Backend::IoUring
            || self.places.iter().any(|place| {
                let job = &jobs[place.job];
                job.trace.is_some() || (1..100).contains(&job.workload.shape.write_percent)
            })
    }

    fn buffers(&self, jobs: &[Job<'_>]) -> u64 {
        u64::from(self.slots()) * if self.doubled(jobs) { 2 } else { 1 }
    }
}

/// The buffers of some seats: a ring's own, or what the blocking threads of a workload share, who may be many.
pub struct Stock<'a> {
    seats: &'a [Seat],
    each: u64,
    block_bytes: u32,
}

impl<'a> Stock<'a> {
    /// Those of all seats, in order.
    pub fn all(seats: &'a [Seat], jobs: &[Job<'_>]) -> Vec<Stock<'a>> {
        let blocks = |seat: &Seat| seat.backend != Backend::IoUring;
        let shared = |a: &Seat, b: &Seat| blocks(a) && blocks(b) && a.places[0].job == b.places[0].job;
        let stock = |seats: &'a [Seat]| {
            let (each, block_bytes) = (seats[0].buffers(jobs), seats[0].block_bytes(jobs));
            Stock { seats, each, block_bytes }
        };
        seats.chunk_by(shared).map(stock).collect()
    }

    fn count(&self) -> u64 {
        self.each * self.seats.len() as u64
    }

    /// Whether any of its workloads asks for huge pages that were set aside.
    pub fn wants_huge_pages(&self, how: &Together) -> bool {
        let places = &self.seats[0].places;
        places.iter().any(|place| how.huge_pages.get(place.job).copied().unwrap_or(false))
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> u64 {
        IoBuffers::bytes_of(self.count(), self.block_bytes.into())
    }

    /// For each seat its own.
    fn take(&self, how: &Together) -> io::Result<Vec<IoBuffers>> {
        let take = if self.wants_huge_pages(how) { IoBuffers::in_huge_pages } else { IoBuffers::new };
        Ok(take(self.count() as usize, self.block_bytes as usize)?
            .share(self.seats.len(), self.each as usize))
    }
}

/// Most parts that an I/O of that size, or a sync, is cut into.
pub fn parts_max(laid: &Laid, block_bytes: u32) -> usize {
    let members = laid.members.len();
    let parts = match laid.layout {
        Layout::Stripe { unit_bytes } => u64::from(block_bytes).div_ceil(unit_bytes) as usize + 1,
        // Small members may lie within one I/O.
        Layout::Span => members,
    };
    parts.max(members)
}

fn shares(laid: &Laid) -> Vec<MemberShare> {
    let share = |(at, member): (usize, &Region)| MemberShare {
        path: member.path.display().to_string(),
        bytes: laid.map.member_bytes(at),
        ..MemberShare::default()
    };
    laid.members.iter().enumerate().map(share).collect()
}

impl<'a> Crew<'a> {
    pub fn new(jobs: &'a [Job<'a>], how: &'a Together, seats: &'a [Seat]) -> Result<Crew<'a>, LoadError> {
        let common = jobs.iter().map(common).collect::<Result<Vec<Common>, LoadError>>()?;
        Ok(Crew { jobs, how, seats, common })
    }

    /// Starts the threads, watches them to their end, and gathers what they measured.
    pub fn run(self, watch: &mut dyn FnMut(&Live) -> Next) -> Result<Vec<RunResult>, LoadError> {
        let path = |job: usize| self.jobs[job].region.name();
        let stocks = Stock::all(self.seats, self.jobs);
        let buffers = stocks.iter().map(|stock| stock.take(self.how)).collect::<io::Result<Vec<_>>>();
        let buffers = buffers.map_err(|error| LoadError::Start { path: path(0), error })?;
        let shared = Shared::new(self.seats.len());
        let gate = Gate::default();
        let work = |at: usize, buffers: IoBuffers| self.work(at, buffers, &shared, &gate);
        let work = &work;
        let before = SignalsBlocked::new();
        let (outcomes, course) = std::thread::scope(|scope| {
            let mut handles = Vec::new();
            let mut spawned = Ok(());
            for (at, buffers) in buffers.into_iter().flatten().enumerate() {
                match std::thread::Builder::new().spawn_scoped(scope, move || work(at, buffers)) {
                    Ok(handle) => handles.push(handle),
                    Err(error) => {
                        spawned = Err(error);
                        break;
                    }
                }
            }
            drop(before);
            let ready = gate.all_ready(handles.len()) && spawned.is_ok();
            let course = if ready {
                supervise(&shared, &self.how.length, || gate.open(true), watch)
            } else {
                gate.open(false);
                Course::default()
            };
            let join =
                |handle: std::thread::ScopedJoinHandle<'_, io::Result<Vec<Outcome>>>| match handle.join() {
                    Ok(outcome) => outcome,
                    Err(panic) => std::panic::resume_unwind(panic),
                };
            let outcomes = handles.into_iter().map(join).collect::<io::Result<Vec<Vec<Outcome>>>>();
            (spawned.and(outcomes), course)
        });
        let outcomes = outcomes.map_err(|error| LoadError::Start { path: path(0), error })?;
        let outcomes = outcomes.into_iter().flatten().collect();
        let mut results = gather(self.jobs, self.how, self.seats, &shared, &course, outcomes)?;
        for (at, result) in results.iter_mut().enumerate() {
            let Some(ledger) = self.common[at].ledger.as_ref().filter(|_| result.workload.shape.writes())
            else {
                continue;
            };
            if !course.interrupted {
                let block_bytes = result.workload.shape.block_bytes;
                let verified = verify(self.jobs[at].region, ledger, block_bytes, watch);
                result.verification =
                    verified.map_err(|error| LoadError::Verify { path: path(at), error })?;
            }
        }
        Ok(results)
    }

    /// What one thread does.
    fn work(&self, at: usize, buffers: IoBuffers, shared: &Shared, gate: &Gate) -> io::Result<Vec<Outcome>> {
        let seat = &self.seats[at];
        let settled = self.settle(at);
        let prepared = settled.and_then(|()| self.prepare(seat, buffers, shared, &shared.progress[at]));
        // One thread that cannot ends the attempt for all.
        let open = gate.wait(prepared.is_ok());
        let worked = match prepared? {
            _ if !open => Ok(Vec::new()),
            Loop::Ring(mut ring_loop) => {
                ring_loop.run().map(|cpu_ns| self.outcomes(ring_loop.lanes, seat, cpu_ns))
            }
            Loop::Blocking(mut blocking_loop) => {
                let cpu_ns = blocking_loop.run();
                Ok(self.outcomes(vec![blocking_loop.lane], seat, cpu_ns))
            }
        };
        shared.progress[at].end();
        worked
    }

    fn prepare<'b>(
        &'b self,
        seat: &Seat,
        buffers: IoBuffers,
        shared: &'b Shared,
        progress: &'b Progress,
    ) -> io::Result<Loop<'b>> {
        let write_buffers = if seat.doubled(self.jobs) { seat.slots() } else { 0 };
        let mut first = 0;
        let mut lanes = Vec::new();
        for place in &seat.places {
            let slots = first..first + place.slots;
            first = slots.end;
            let lane = self.lane(place, slots.clone());
            let workload = self.jobs[place.job].workload;
            if workload.shape.writes() || self.jobs[place.job].trace.is_some() {
                for slot in slots {
                    // SAFETY: a buffer of the largest block, and nothing is in flight yet.
                    let buffer = unsafe {
                        let start = buffers.pointer((slot + write_buffers) as usize);
                        std::slice::from_raw_parts_mut(start, workload.shape.block_bytes as usize)
                    };
                    let seed = workload.seed ^ (u64::from(place.at) << 48);
                    lane.writer.prepare(buffer, seed, slot);
                }
            }
            lanes.push(lane);
        }
        let job = &self.jobs[seat.places[0].job];
        if seat.backend != Backend::IoUring {
            return Ok(Loop::Blocking(Box::new(BlockingLoop {
                lane: lanes.pop().expect("a seat has a place"),
                region: job.region,
                mapping: self.common[seat.places[0].job].mapping.as_ref(),
                durability: job.workload.shape.durability,
                buffers,
                shared,
                progress,
                late_ns: None,
            })));
        }
        let mut files: Vec<&std::fs::File> = Vec::new();
        for (lane, place) in lanes.iter_mut().zip(&seat.places) {
            lane.first_file = files.len() as u16;
            files.extend(self.jobs[place.job].region.members().iter().map(|member| &member.file));
        }
        // What can be in flight: a sync of each lane beside its I/Os, each in parts.
        let parts_max = lanes.iter().map(|lane| lane.parts_max as u32).max().unwrap_or(1);
        let depth = seat.shared_depth.unwrap_or(seat.slots()) + seat.places.len() as u32;
        let depth = depth.saturating_mul(parts_max);
        let ring = Ring::new(&files, buffers, depth)?;
        let weights = seat.places.iter().map(|place| self.jobs[place.job].weight).collect();
        Ok(Loop::Ring(Box::new(RingLoop {
            ring,
            lanes,
            write_buffers,
            shared_depth: seat.shared_depth.map(|depth| (depth, weights)),
            direct: seat.places.iter().any(|place| self.jobs[place.job].region.direct),
            shared,
            progress,
        })))
    }

    fn lane(&self, place: &Place, slots: std::ops::Range<u32>) -> Lane<'_> {
        let Place { job: index, at, threads, .. } = *place;
        let (job, common) = (&self.jobs[index], &self.common[index]);
        let workload = job.workload;
        let region = job.region;
        let chooser = Chooser::new(workload, region.offset_bytes, region.bytes, at, threads, &common.next);
        let stream = Stream::new(workload, chooser, (at, threads), job.trace, self.how.length.ios_max, slots);
        let writer =
            Writer::new(workload, common.source.as_ref(), common.ledger.as_ref(), region.memory_align_bytes);
        let mut recorder = Recorder::new(self.how.slice.as_nanos() as u64, workload.is_open_loop());
        if let Some(laid) = region.laid.as_deref() {
            recorder.members = shares(laid);
        }
        let mut lane = Lane::new(index, workload, stream, writer, recorder, common.ledger.clone());
        if let Some(laid) = region.laid.as_deref() {
            lane.laid = Some(laid);
            lane.parts_max = parts_max(laid, workload.shape.block_bytes);
        }
        lane
    }

    fn outcomes(&self, lanes: Vec<Lane<'_>>, seat: &Seat, cpu_ns: u64) -> Vec<Outcome> {
        let all: u64 = lanes.iter().map(|lane| lane.stream.counted).sum();
        let outcome = |(mut lane, place): (Lane<'_>, &Place)| {
            let part = u128::from(cpu_ns) * u128::from(lane.stream.counted) / u128::from(all.max(1));
            let over = lane.gave_up() || lane.stream.is_finished();
            lane.end();
            let share = lane.recorder.finish(part as u64);
            Outcome {
                job: lane.job,
                at: place.at,
                share,
                over,
                checked: lane.checked,
                recorder: lane.recorder,
            }
        };
        lanes.into_iter().zip(&seat.places).map(outcome).collect()
    }

    /// Gives this thread its I/O priority, puts it on its core, and makes its timers as exact as they can be.
    fn settle(&self, at: usize) -> io::Result<()> {
        let job = self.seats[at].places.first().map_or(0, |place| place.job);
        if let Some(level) = self.how.priorities.get(job).copied().flatten() {
            set_priority(level)?;
        }
        // SAFETY: sets this thread's timer slack, nothing else.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        let cores = match &self.how.affinity {
            Affinity::None => return Ok(()),
            Affinity::Cores(cores) => cores.clone(),
            Affinity::RoundRobin => allowed_cores(),
        };
        if let Some(core) = cores.get(at % cores.len().max(1)) {
            // SAFETY: a set on the stack; a core that does not exist makes the call fail, and nothing changes.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                if (*core as usize) < libc::CPU_SETSIZE as usize {
                    libc::CPU_SET(*core as usize, &mut set);
                    libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
                }
            }
        }
        Ok(())
    }
}

/// What a thread runs.
enum Loop<'a> {
    Ring(Box<RingLoop<'a>>),
    Blocking(Box<BlockingLoop<'a>>),
}

fn common(job: &Job<'_>) -> Result<Common, LoadError> {
    let (workload, region) = (job.workload, job.region);
    let source = match &workload.content {
        Content::Buffer { bytes, file } => {
            let source = Source::new(*bytes, file.as_deref(), workload.seed);
            let path = || file.as_ref().map_or("random bytes".into(), |file| file.display().to_string());
            Some(Arc::new(source.map_err(|error| LoadError::Source { path: path(), error })?))
        }
        _ => None,
    };
    let ledger = workload.verify.map(|how: Verify| {
        let (base, span) = used(workload, region.offset_bytes, region.bytes);
        let block_bytes = workload.shape.block_bytes;
        let places = if workload.shape.writes() { span / u64::from(block_bytes) } else { 0 };
        Arc::new(Ledger::new(how, workload.seed, base, block_bytes, places))
    });
    let mapping = match backend_of(workload, true) {
        Backend::Mapped => {
            let writes = job.trace.map_or(workload.shape.writes(), Trace::writes);
            let path = region.path.display().to_string();
            Some(Mapping::new(region, writes).map_err(|error| LoadError::Start { path, error })?)
        }
        _ => None,
    };
    Ok(Common { next: Arc::default(), source, ledger, mapping })
}

/// Gives this thread's I/Os, those of its ring included, that best-effort level (`ioprio_set(2)`).
fn set_priority(level: u8) -> io::Result<()> {
    const WHO_PROCESS: libc::c_long = 1;
    const BEST_EFFORT: libc::c_long = 2 << 13;
    // SAFETY: sets a number of this thread (0), nothing else.
    let set = unsafe {
        libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, BEST_EFFORT | libc::c_long::from(level))
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn allowed_cores() -> Vec<u32> {
    // SAFETY: a set on the stack that the call fills.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return Vec::new();
        }
        (0..libc::CPU_SETSIZE as u32).filter(|core| libc::CPU_ISSET(*core as usize, &set)).collect()
    }
}

/// Lets all threads begin together, or none of them if one could not get ready.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    waiting: usize,
    unready: bool,
    opened: Option<bool>,
}

impl Gate {
    /// A thread got ready, or failed to; whether it may begin.
    fn wait(&self, ready: bool) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        state.unready |= !ready;
        self.changed.notify_all();
        loop {
            match state.opened {
                Some(begin) => return begin,
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Waits for that many threads; whether all of them got ready.
    fn all_ready(&self, threads: usize) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.waiting < threads {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.unready
    }

    /// Lets them begin, or end at once.
    fn open(&self, begin: bool) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).opened = Some(begin);
        self.changed.notify_all();
    }
}

/// While it lives, threads that are started inherit a mask with all signals blocked but those of faults.
struct SignalsBlocked(libc::sigset_t);

impl SignalsBlocked {
    fn new() -> SignalsBlocked {
        // SAFETY: both sets are plain memory that the calls fill.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut all);
            // A fault while its signal is blocked would end the program at once.
            for fault in [libc::SIGBUS, libc::SIGSEGV, libc::SIGFPE, libc::SIGILL] {
                libc::sigdelset(&mut all, fault);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            SignalsBlocked(before)
        }
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: restores the mask that `new` saved.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}
