use crate::disk_array::{DiskArray, EVENT_ARM, EVENT_IO, EVENT_KIND, EVENT_PART, EVENT_THREAD, Io, Step};
use crate::events::Events;
use crate::job::Job;
use crate::lane::Lane;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use stream::{
    Chooser, IoRecord, IoRequest, IoStream, MeasuredWindow, NextStep, Responses, ThreadIndex,
    choose_weighted, complete_series,
};
use workload::{Backend, Phase, RunResult, ThreadShare, TraceKind};

/// The tool that results name.
pub const TOOL: &str = "headroom simulate";

/// One thread.
#[derive(Debug)]
struct Thread {
    /// Its lanes, and their weights.
    lanes: Range<usize>,
    weights: Vec<u32>,
    /// Most in flight over all lanes, where they share it.
    shared_depth: Option<u32>,
    in_flight: u32,
    /// When its next event is due.
    wakes_ns: u64,
}

/// One job in one thread.
#[derive(Clone, Copy)]
struct LanePlan {
    job: usize,
    thread: ThreadIndex,
    slots: u32,
}

/// A phase while it is simulated.
pub struct PhaseRun<'m, 'a> {
    disks: &'m mut DiskArray,
    events: Events,
    ios: Vec<Io>,
    lanes: Vec<Lane<'a>>,
    /// The thread of each lane.
    thread_of: Vec<u32>,
    threads: Vec<Thread>,
    /// Of each job.
    records: Vec<IoRecord>,
    /// When the last I/O of each job that counts completed, since the measured part began.
    last_ns: Vec<u64>,
    window: MeasuredWindow,
    end_ns: u64,
    /// Whether results list the share of each thread.
    thread_shares: bool,
    completed: u64,
}

/// Events between two calls of the watcher.
const WATCH_EVENTS: u32 = 1 << 16;

impl<'m, 'a> PhaseRun<'m, 'a> {
    /// `window` is measured; the load continues until `end_ns`.
    pub fn new(
        disks: &'m mut DiskArray,
        phase: &Phase,
        jobs: &[Job<'a>],
        window: MeasuredWindow,
        end_ns: u64,
    ) -> PhaseRun<'m, 'a> {
        let slice_ns = slice_ns(phase);
        let mut run = PhaseRun {
            disks,
            events: Events::default(),
            ios: Vec::new(),
            lanes: Vec::new(),
            thread_of: Vec::new(),
            threads: Vec::new(),
            records: jobs.iter().map(|job| IoRecord::new(slice_ns, job.workload.is_open_loop())).collect(),
            last_ns: vec![0; jobs.len()],
            window,
            end_ns,
            thread_shares: phase.pool.is_some() || jobs.iter().any(|job| job.workload.threads > 1),
            completed: 0,
        };
        run.add_threads(phase, jobs);
        run.events = Events::with_capacity(run.ios.len() + run.threads.len());
        run
    }

    fn add_threads(&mut self, phase: &Phase, jobs: &[Job<'a>]) {
        let next_offsets: Vec<Arc<AtomicU64>> = jobs.iter().map(|_| Arc::default()).collect();
        let mut add = |lanes: &[LanePlan], shared_depth| {
            let first = self.lanes.len();
            for lane in lanes {
                let job = &jobs[lane.job];
                self.add_lane(*lane, job, phase.length.ios_max, &next_offsets[lane.job]);
            }
            let weights = lanes.iter().map(|lane| jobs[lane.job].weight).collect();
            let lanes = first..self.lanes.len();
            self.threads.push(Thread { lanes, weights, shared_depth, in_flight: 0, wakes_ns: u64::MAX });
        };
        let Some(pool) = phase.pool else {
            for (job, of) in jobs.iter().enumerate() {
                let (count, slots) = (of.workload.threads, of.workload.outstanding);
                for index in 0..count {
                    add(&[LanePlan { job, thread: ThreadIndex { index, count }, slots }], None);
                }
            }
            return;
        };
        for index in 0..pool.threads {
            let lane = |(job, of): (usize, &Job<'_>)| LanePlan {
                job,
                thread: ThreadIndex { index, count: pool.threads },
                slots: pool.outstanding.unwrap_or(of.workload.outstanding),
            };
            let lanes: Vec<LanePlan> = jobs.iter().enumerate().map(lane).collect();
            add(&lanes, pool.outstanding);
        }
    }

    fn add_lane(
        &mut self,
        plan: LanePlan,
        job: &Job<'a>,
        ios_max: Option<u64>,
        next_offset: &Arc<AtomicU64>,
    ) {
        let ios = self.ios.len() as u32..self.ios.len() as u32 + plan.slots;
        let empty = Io { lane: self.lanes.len() as u32, ..Io::default() };
        self.ios.resize(ios.end as usize, empty);
        // And the lane's sync.
        self.ios.push(Io { kind: TraceKind::Sync, ..empty });
        let bytes = job.offset..job.offset + job.bytes;
        let chooser = Chooser::new(job.workload, bytes, plan.thread, next_offset);
        let stream = IoStream::new(job.workload, chooser, job.trace, ios_max, ios.clone());
        self.thread_of.push(self.threads.len() as u32);
        self.lanes.push(Lane::new(plan.job, job.workload, stream, ios));
    }

    /// Processes all events; whether the watcher ended the phase.
    pub fn process_events(&mut self, start_ns: u64, watch: &mut dyn FnMut(f64, u64) -> bool) -> bool {
        self.lanes.iter_mut().for_each(|lane| lane.stream.begin(start_ns));
        for thread in 0..self.threads.len() {
            self.submit_next(thread, start_ns);
        }
        let mut until_watched = WATCH_EVENTS;
        let (mut closed, mut interrupted) = (false, false);
        let mut last_ns = start_ns;
        while let Some((now_ns, event)) = self.events.pop() {
            if now_ns >= self.window.until_ns && !closed {
                closed = true;
                self.close(now_ns);
            }
            last_ns = now_ns;
            if now_ns >= self.end_ns {
                break;
            }
            let at = event as u32;
            match event & EVENT_KIND {
                EVENT_IO => self.advance(at, now_ns),
                EVENT_PART => self.disks.part_granted(at, &mut self.ios, now_ns, &mut self.events),
                EVENT_ARM => self.disks.arm_done(at, &mut self.ios, now_ns, &mut self.events),
                _ => {
                    let thread = &mut self.threads[at as usize];
                    if thread.wakes_ns == now_ns {
                        thread.wakes_ns = u64::MAX;
                    }
                    self.submit_next(at as usize, now_ns);
                }
            }
            until_watched -= 1;
            if until_watched == 0 {
                until_watched = WATCH_EVENTS;
                let whole = self.end_ns.saturating_sub(start_ns).max(1);
                if !watch((now_ns - start_ns) as f64 / whole as f64, self.completed) {
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

    /// Processes the event of an I/O.
    #[inline]
    fn advance(&mut self, at: u32, now_ns: u64) {
        let io = &mut self.ios[at as usize];
        match io.step {
            Step::Done => self.complete(at, now_ns),
            Step::Granted => {
                let flushed = io.kind == TraceKind::Write && self.lanes[io.lane as usize].synced_each;
                io.step = if flushed { Step::Written } else { Step::Done };
                self.disks.dispatch(at, io, now_ns, &mut self.events);
            }
            Step::Written => {
                io.step = Step::Done;
                let ends_ns = self.disks.flush(now_ns);
                self.events.push(ends_ns, EVENT_IO | u64::from(at));
            }
        }
    }

    /// Accounts for an I/O or sync that has completed, and submits what can follow.
    #[inline]
    fn complete(&mut self, at: u32, now_ns: u64) {
        let io = self.ios[at as usize];
        let lane = &mut self.lanes[io.lane as usize];
        let thread = self.thread_of[io.lane as usize] as usize;
        let counts = self.window.contains(now_ns);
        let latency_ns = now_ns - io.submitted_ns;
        if at == lane.sync_io {
            lane.stream.synced();
            if counts {
                self.records[lane.job].synced(latency_ns);
            }
            self.submit_next(thread, now_ns);
            return;
        }
        lane.stream.completed(at, io.kind == TraceKind::Read);
        self.threads[thread].in_flight -= 1;
        self.completed += 1;
        if counts {
            let record = &mut self.records[lane.job];
            if io.kind == TraceKind::Sync {
                record.synced(latency_ns);
            } else {
                let write = io.kind == TraceKind::Write;
                lane.stream.counted += 1;
                let at_ns = now_ns - self.window.from_ns;
                record.advance_to(at_ns);
                record.completed(write, io.bytes, latency_ns, 1);
                if let Some(responses) = &mut record.responses {
                    responses.record(write, now_ns - io.intended_ns);
                }
                self.last_ns[lane.job] = at_ns;
                if self.thread_shares {
                    let tally = if write { &mut lane.write } else { &mut lane.read };
                    tally.record_n(latency_ns, u64::from(io.bytes), 1);
                }
            }
        }
        if lane.plain && self.threads[thread].shared_depth.is_none() {
            // Only this lane has a free slot now.
            if let Some(request) = lane.next_plain(now_ns) {
                self.submit(io.lane as usize, thread, request, now_ns);
            }
        } else {
            self.submit_next(thread, now_ns);
        }
    }

    /// Submits all that a thread can, and schedules its next event.
    fn submit_next(&mut self, thread: usize, now_ns: u64) {
        let mut due_ns = u64::MAX;
        if let Some(depth) = self.threads[thread].shared_depth {
            let mut weights = self.threads[thread].weights.clone();
            let lanes = self.threads[thread].lanes.clone();
            while self.threads[thread].in_flight < depth && weights.iter().any(|weight| *weight > 0) {
                let chosen = choose_weighted(&weights, &mut self.lanes[lanes.start].stream.chooser);
                match self.execute_next(lanes.start + chosen, thread, now_ns) {
                    NextStep::Io(_) | NextStep::Sync => {}
                    NextStep::Later(at_ns) => {
                        due_ns = due_ns.min(at_ns);
                        weights[chosen] = 0;
                    }
                    NextStep::Completion | NextStep::Done => weights[chosen] = 0,
                }
            }
        } else {
            for lane in self.threads[thread].lanes.clone() {
                loop {
                    match self.execute_next(lane, thread, now_ns) {
                        NextStep::Io(_) | NextStep::Sync => {}
                        NextStep::Later(at_ns) => {
                            due_ns = due_ns.min(at_ns);
                            break;
                        }
                        NextStep::Completion | NextStep::Done => break,
                    }
                }
            }
        }
        let event = EVENT_THREAD | thread as u64;
        let thread = &mut self.threads[thread];
        if due_ns < thread.wakes_ns {
            thread.wakes_ns = due_ns;
            self.events.push(due_ns, event);
        }
    }

    /// Executes the next step of a lane, and returns it.
    #[inline]
    fn execute_next(&mut self, lane: usize, thread: usize, now_ns: u64) -> NextStep {
        let step = self.lanes[lane].next(now_ns);
        match step {
            NextStep::Io(request) => self.submit(lane, thread, request, now_ns),
            NextStep::Sync => {
                let at = self.lanes[lane].sync_io;
                let io = &mut self.ios[at as usize];
                (io.submitted_ns, io.step) = (now_ns, Step::Done);
                let ends_ns = self.disks.flush(now_ns);
                self.events.push(ends_ns, EVENT_IO | u64::from(at));
            }
            _ => {}
        }
        step
    }

    #[inline]
    fn submit(&mut self, lane_index: usize, thread: usize, request: IoRequest, now_ns: u64) {
        let lane = &self.lanes[lane_index];
        self.threads[thread].in_flight += 1;
        let io = &mut self.ios[request.slot as usize];
        let flushed = lane.synced_each && request.kind == TraceKind::Write;
        *io = Io {
            submitted_ns: now_ns,
            intended_ns: request.intended_ns,
            offset: request.offset,
            bytes: request.bytes,
            lane: lane_index as u32,
            kind: request.kind,
            step: if flushed { Step::Written } else { Step::Done },
            through: lane.through,
            ..Io::default()
        };
        if request.kind == TraceKind::Sync {
            let ends_ns = self.disks.flush(now_ns);
            self.events.push(ends_ns, EVENT_IO | u64::from(request.slot));
            return;
        }
        self.disks.submit(request.slot, io, now_ns, &mut self.events);
    }

    /// Ends the measured part: records which I/Os of open loops still wait.
    fn close(&mut self, now_ns: u64) {
        let until_ns = self.window.until_ns.min(now_ns);
        for lane in &mut self.lanes {
            if !lane.stream.pace.is_open() {
                continue;
            }
            let ios = (lane.first_io..lane.sync_io).map(|io| (io, self.ios[io as usize].intended_ns));
            let waiting = lane.stream.waiting(until_ns, ios);
            if let Some(responses) = &mut self.records[lane.job].responses {
                responses.add_waiting(waiting);
            }
        }
    }

    /// A result for each job, and the number of I/Os.
    pub fn into_results(
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
            let finished = lanes().all(|lane| lane.stream.is_finished());
            let elapsed_ns = window.elapsed_ns(finished, self.last_ns[at]);
            record.close_slice();
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
                response: record.responses.map(Responses::into_response),
                ..RunResult::empty(job.workload.clone(), job.target.clone())
            };
            complete_series(&mut result.series, slice_ns, elapsed_ns);
            result.threads = lanes()
                .map(|lane| ThreadShare { read: lane.read, write: lane.write, ..ThreadShare::default() })
                .collect();
            if let ([only], false) = (&mut result.threads[..], self.thread_shares) {
                for slice in &result.series {
                    only.read.merge(&slice.read);
                    only.write.merge(&slice.write);
                }
            }
            results.push(result);
        }
        (results, self.completed)
    }
}

/// Width of a row of the series.
fn slice_ns(phase: &Phase) -> u64 {
    (phase.slice.as_nanos() as u64).max(1_000_000)
}
