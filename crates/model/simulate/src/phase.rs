use crate::client::Lane;
use crate::events::Events;
use crate::machine::{Job, TOOL};
use crate::store::{ARM, IO, Io, KIND, PART, SEAT, Step, Store};
use std::sync::Arc;
use stream::{Ask, Chooser, Record, Responses, Stream, Want, Window, weighted, whole};
use workload::{Backend, Phase, RunResult, ThreadShare, TraceKind};

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

/// A phase while it is simulated.
pub struct Run<'m, 'a> {
    store: &'m mut Store,
    events: Events,
    ios: Vec<Io>,
    lanes: Vec<Lane<'a>>,
    seat_of: Vec<u32>,
    seats: Vec<Seat>,
    records: Vec<Record>,
    /// When the last I/O of each job that counts was done, since the measured part began.
    last_ns: Vec<u64>,
    window: Window,
    end_ns: u64,
    /// Each thread's share is told apart.
    shares: bool,
    done: u64,
}

/// The watcher is asked after so many events.
const WATCH_EVENTS: u32 = 1 << 16;

impl<'m, 'a> Run<'m, 'a> {
    /// `window` is measured; the load goes on till `end_ns`.
    pub fn new(
        store: &'m mut Store,
        phase: &Phase,
        jobs: &[Job<'a>],
        window: Window,
        end_ns: u64,
    ) -> Run<'m, 'a> {
        let slice_ns = slice_ns(phase);
        let mut run = Run {
            store,
            events: Events::default(),
            ios: Vec::new(),
            lanes: Vec::new(),
            seat_of: Vec::new(),
            seats: Vec::new(),
            records: jobs.iter().map(|job| Record::new(slice_ns, job.workload.is_open_loop())).collect(),
            last_ns: vec![0; jobs.len()],
            window,
            end_ns,
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
                let stream = Stream::new(it.workload, chooser, (at, threads), it.trace, ios_max, ios.clone());
                run.seat_of.push(run.seats.len() as u32);
                run.lanes.push(Lane::new(job, it.workload, stream, ios));
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
    pub fn go(&mut self, start_ns: u64, watch: &mut dyn FnMut(f64, u64) -> bool) -> bool {
        for seat in 0..self.seats.len() {
            for lane in self.seats[seat].lanes.clone() {
                self.lanes[lane].stream.begin(start_ns);
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
            if now_ns >= self.end_ns {
                break;
            }
            let at = what as u32;
            match what & KIND {
                IO => self.step(at, now_ns),
                PART => self.store.part_granted(at, &mut self.ios, now_ns, &mut self.events),
                ARM => self.store.arm_done(at, &mut self.ios, now_ns, &mut self.events),
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
                let whole = self.end_ns.saturating_sub(start_ns).max(1);
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
        let counts = self.window.counts(now_ns);
        let latency_ns = now_ns - io.submitted_ns;
        if at == lane.sync_io {
            lane.stream.synced();
            if counts {
                self.records[lane.job].synced(latency_ns);
            }
            self.ask(seat, now_ns);
            return;
        }
        lane.stream.returned(at, io.kind == TraceKind::Read);
        self.seats[seat].in_flight -= 1;
        self.done += 1;
        if counts {
            let record = &mut self.records[lane.job];
            if io.kind == TraceKind::Sync {
                record.synced(latency_ns);
            } else {
                let write = io.kind == TraceKind::Write;
                lane.stream.counted += 1;
                let at_ns = now_ns - self.window.from_ns;
                record.at(at_ns);
                record.completed(write, io.bytes, latency_ns, 1);
                if let Some(responses) = &mut record.responses {
                    responses.record(write, now_ns - io.intended_ns);
                }
                self.last_ns[lane.job] = at_ns;
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
                let chosen = weighted(&weights, &mut self.lanes[lanes.start].stream.chooser);
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
        let io = &mut self.ios[ask.slot as usize];
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
            self.events.push(ends_ns, IO | u64::from(ask.slot));
            return;
        }
        self.store.submit(ask.slot, io, now_ns, &mut self.events);
    }

    /// The measured part is over: what of an open loop still waits?
    fn close(&mut self, now_ns: u64) {
        let until_ns = self.window.until_ns.min(now_ns);
        for lane in &mut self.lanes {
            if !lane.stream.pace.is_open() {
                continue;
            }
            let ios = (lane.first_io..lane.sync_io).map(|io| (io, self.ios[io as usize].intended_ns));
            let waiting = lane.stream.waiting(until_ns, ios);
            if let Some(responses) = &mut self.records[lane.job].responses {
                responses.wait(waiting);
            }
        }
    }

    /// A result for each job, and how many I/Os were done.
    pub fn finish(
        self,
        phase: &Phase,
        jobs: &[Job<'_>],
        start_ns: u64,
        interrupted: bool,
    ) -> (Vec<RunResult>, u64) {
        let (window, slice_ns) = (self.window, slice_ns(phase));
        let mut results = Vec::new();
        for (at, (job, mut record)) in jobs.iter().zip(self.records).enumerate() {
            let lanes = || self.lanes.iter().filter(|lane| lane.job == at);
            let over = lanes().all(|lane| lane.stream.is_finished());
            let elapsed_ns = window.elapsed_ns(over, self.last_ns[at]);
            record.close();
            let mut result = RunResult {
                replayed: job.trace.is_some(),
                backend: Backend::Foreign,
                tool: Some(TOOL.to_owned()),
                started_unix_ns: window.from_ns.max(start_ns),
                elapsed_ns,
                interrupted,
                target_bytes: job.bytes,
                slice_ns,
                pool: phase.pool,
                read: record.read,
                write: record.write,
                sync: record.sync,
                series: record.series,
                response: record.responses.map(Responses::told),
                ..RunResult::empty(job.workload.clone(), job.target.clone())
            };
            whole(&mut result.series, slice_ns, elapsed_ns);
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

/// Width of a row of the series.
fn slice_ns(phase: &Phase) -> u64 {
    (phase.slice.as_nanos() as u64).max(1_000_000)
}
