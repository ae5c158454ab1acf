use crate::accounting::Accounting;
use crate::blocking_loop::{BlockingFiles, BlockingLoop};
use crate::content::{self, Writer};
use crate::error::LoadError;
use crate::io_buffers::IoBuffers;
use crate::job::{Job, RunControl, RunOptions};
use crate::lane::Lane;
use crate::ledger::Ledger;
use crate::live::{LiveStats, Shared};
use crate::mapping::Mapping;
use crate::recorder::Recorder;
use crate::results::{Outcome, RunContext};
use crate::ring::Ring;
use crate::ring_loop::RingLoop;
use crate::start_gate::StartGate;
use crate::supervisor::{SupervisedRun, supervise};
use crate::thread_plan::{BufferPool, LanePlan, ThreadPlan, choose_backend, parts_max};
use crate::thread_setup::{SignalsBlocked, minimize_timer_slack, pin_to_core, set_io_priority};
use crate::verification::verify;
use host::StopMeter;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::ScopedJoinHandle;
use storage::{AlignedBuffer, Region, RegionState, Volume};
use stream::{Chooser, IoStream, ThreadIndex, used_range};
use workload::{Backend, Content, MemberShare, RunResult, Verify};

/// All threads of a run.
pub struct Workers<'a> {
    jobs: &'a [Job<'a>],
    options: &'a RunOptions,
    threads: &'a [ThreadPlan],
    shared_by_job: Vec<JobState>,
}

/// State shared by the threads of a job.
struct JobState {
    /// Next offset of a shared walk.
    next_offset: Arc<AtomicU64>,
    source: Option<Arc<AlignedBuffer>>,
    ledger: Option<Arc<Ledger>>,
    mapping: Option<Mapping>,
}

/// Loop that a thread runs.
enum Loop<'a> {
    Ring(Box<RingLoop<'a>>),
    Blocking(Box<BlockingLoop<'a>>),
}

impl<'a> Workers<'a> {
    pub fn new(
        jobs: &'a [Job<'a>],
        options: &'a RunOptions,
        threads: &'a [ThreadPlan],
    ) -> Result<Workers<'a>, LoadError> {
        let shared_by_job = jobs.iter().map(JobState::new).collect::<Result<Vec<JobState>, LoadError>>()?;
        Ok(Workers { jobs, options, threads, shared_by_job })
    }

    /// Starts the threads, supervises them to their end, merges what they measured, and verifies what was written.
    pub fn run(self, watch: &mut dyn FnMut(&LiveStats) -> RunControl) -> Result<Vec<RunResult>, LoadError> {
        let start_error = |error| LoadError::Start { path: self.jobs[0].region.name(), error };
        let pools = BufferPool::plan(self.threads, self.jobs);
        let buffers = pools.iter().map(|pool| pool.allocate(self.options)).collect::<io::Result<Vec<_>>>();
        let buffers = buffers.map_err(start_error)?.into_iter().flatten().collect();
        let shared = Shared::new(self.threads.len());
        let before: Vec<RegionState> = self.jobs.iter().map(|job| job.region.state()).collect();
        let (outcomes, run) = self.run_threads(buffers, &shared, watch).map_err(start_error)?;
        let changes =
            || self.jobs.iter().zip(&before).map(|(job, before)| job.changes_since(before)).collect();
        let context =
            RunContext { jobs: self.jobs, options: self.options, threads: self.threads, shared: &shared };
        let mut results = context.merge(&run, outcomes, changes())?;
        if !run.interrupted {
            self.verify(&mut results, watch)?;
            // Verifying takes its time too.
            results.iter_mut().zip(changes()).for_each(|(result, changes)| result.target_changes = changes);
        }
        Ok(results)
    }

    /// Runs the threads, each with its buffers, to their end.
    fn run_threads(
        &self,
        buffers: Vec<IoBuffers>,
        shared: &Shared,
        watch: &mut dyn FnMut(&LiveStats) -> RunControl,
    ) -> io::Result<(Vec<Outcome>, SupervisedRun)> {
        let gate = StartGate::default();
        let work = |at: usize, buffers: IoBuffers| self.run_thread(at, buffers, shared, &gate);
        let work = &work;
        let signals_blocked = SignalsBlocked::new();
        let meter = StopMeter::start();
        std::thread::scope(|scope| {
            let mut handles = Vec::new();
            let spawned = buffers.into_iter().enumerate().try_for_each(|(at, buffers)| {
                handles.push(std::thread::Builder::new().spawn_scoped(scope, move || work(at, buffers))?);
                Ok(())
            });
            drop(signals_blocked);
            let ready = gate.wait_for_all(handles.len()) && spawned.is_ok();
            let run = if ready {
                supervise(shared, &self.options.length, &meter, || gate.open(true), watch)
            } else {
                gate.open(false);
                SupervisedRun::default()
            };
            let join = |handle: ScopedJoinHandle<'_, io::Result<Vec<Outcome>>>| match handle.join() {
                Ok(outcomes) => outcomes,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            let outcomes = handles.into_iter().map(join).collect::<io::Result<Vec<Vec<Outcome>>>>();
            spawned.and(outcomes).map(|outcomes| (outcomes.into_iter().flatten().collect(), run))
        })
    }

    /// Runs thread `at`.
    fn run_thread(
        &self,
        at: usize,
        buffers: IoBuffers,
        shared: &Shared,
        gate: &StartGate,
    ) -> io::Result<Vec<Outcome>> {
        let plan = &self.threads[at];
        let progress = &shared.progress[at];
        let accounting = Accounting::new(shared, progress);
        let prepared = self.set_up_thread(at).and_then(|()| self.prepare(plan, buffers, accounting));
        // One thread that fails ends the attempt for all.
        let begin = gate.wait(prepared.is_ok());
        let outcomes = match prepared? {
            _ if !begin => Ok(Vec::new()),
            Loop::Ring(mut ring_loop) => {
                ring_loop.run().map(|cpu_ns| outcomes(ring_loop.into_lanes(), plan, cpu_ns))
            }
            Loop::Blocking(mut blocking_loop) => {
                let cpu_ns = blocking_loop.run();
                Ok(outcomes(vec![blocking_loop.lane], plan, cpu_ns))
            }
        };
        progress.end();
        outcomes
    }

    fn set_up_thread(&self, at: usize) -> io::Result<()> {
        let job = self.threads[at].lanes.first().map_or(0, |lane| lane.job);
        if let Some(level) = self.options.priorities.get(job).copied().flatten() {
            set_io_priority(level)?;
        }
        minimize_timer_slack();
        pin_to_core(&self.options.affinity, at);
        Ok(())
    }

    fn prepare<'b>(
        &'b self,
        plan: &ThreadPlan,
        mut buffers: IoBuffers,
        accounting: Accounting<'b>,
    ) -> io::Result<Loop<'b>> {
        let write_buffers = if plan.has_write_buffers(self.jobs) { plan.slots() } else { 0 };
        let mut first = 0;
        let mut lanes = Vec::new();
        for lane_plan in &plan.lanes {
            let slots = first..first + lane_plan.slots;
            first = slots.end;
            let lane = self.lane(lane_plan, slots.clone());
            let workload = self.jobs[lane_plan.job].workload;
            if workload.shape.writes() || self.jobs[lane_plan.job].trace.is_some() {
                for slot in slots {
                    let at = (slot + write_buffers) as usize;
                    let block = buffers.block_mut(at, workload.shape.block_bytes as usize);
                    let seed = workload.seed ^ (u64::from(lane_plan.thread) << 48);
                    lane.writer.prepare(block, seed, slot);
                }
            }
            lanes.push(lane);
        }
        if plan.backend == Backend::IoUring {
            return self.prepare_ring(plan, lanes, buffers, accounting);
        }
        let index = plan.lanes[0].job;
        let (job, shared) = (&self.jobs[index], &self.shared_by_job[index]);
        let files = BlockingFiles {
            region: job.region,
            mapping: shared.mapping.as_ref(),
            durability: job.workload.shape.durability,
        };
        let lane = lanes.pop().expect("a thread has a lane");
        Ok(Loop::Blocking(Box::new(BlockingLoop { lane, files, buffers, accounting, late_ns: None })))
    }

    /// Creates a thread's ring: its files, its buffers and its depth.
    fn prepare_ring<'b>(
        &'b self,
        plan: &ThreadPlan,
        mut lanes: Vec<Lane<'b>>,
        buffers: IoBuffers,
        accounting: Accounting<'b>,
    ) -> io::Result<Loop<'b>> {
        let mut files: Vec<&File> = Vec::new();
        for (lane, lane_plan) in lanes.iter_mut().zip(&plan.lanes) {
            lane.first_file = files.len() as u16;
            files.extend(self.jobs[lane_plan.job].region.members().iter().map(|member| &member.file));
        }
        // In flight at most: the I/Os of all slots and a sync of each lane, each in parts.
        let parts_max = lanes.iter().map(|lane| lane.parts_max as u32).max().unwrap_or(1);
        let ios_max = plan.shared_depth.unwrap_or(plan.slots()) + plan.lanes.len() as u32;
        let ring = Ring::new(&files, buffers, ios_max.saturating_mul(parts_max))?;
        let weights = plan.lanes.iter().map(|lane| self.jobs[lane.job].weight).collect();
        Ok(Loop::Ring(Box::new(RingLoop {
            ring,
            lanes,
            write_buffers: if plan.has_write_buffers(self.jobs) { plan.slots() } else { 0 },
            shared_depth: plan.shared_depth.map(|depth| (depth, weights)),
            direct: plan.lanes.iter().any(|lane| self.jobs[lane.job].region.direct),
            accounting,
        })))
    }

    fn lane(&self, plan: &LanePlan, slots: std::ops::Range<u32>) -> Lane<'_> {
        let (job, shared) = (&self.jobs[plan.job], &self.shared_by_job[plan.job]);
        let (workload, region) = (job.workload, job.region);
        let bytes = region.offset_bytes..region.offset_bytes + region.bytes;
        let thread = ThreadIndex { index: plan.thread, count: plan.threads };
        let chooser = Chooser::new(workload, bytes, thread, &shared.next_offset);
        let stream = IoStream::new(workload, chooser, job.trace, self.options.length.ios_max, slots);
        let (source, ledger) = (shared.source.as_ref(), shared.ledger.as_ref());
        let writer = Writer::new(workload, source, ledger, region.memory_align_bytes);
        let mut recorder = Recorder::new(self.options.slice.as_nanos() as u64, workload.is_open_loop());
        let volume = region.volume.as_deref();
        recorder.members = volume.map(member_shares).unwrap_or_default();
        let mut lane = Lane::new(workload, stream, writer, recorder, shared.ledger.clone());
        lane.volume = volume;
        lane.parts_max = volume.map_or(1, |volume| parts_max(volume, workload.shape.block_bytes));
        lane
    }

    /// Reads and checks what was written, for jobs that are verified.
    fn verify(
        &self,
        results: &mut [RunResult],
        watch: &mut dyn FnMut(&LiveStats) -> RunControl,
    ) -> Result<(), LoadError> {
        for (at, result) in results.iter_mut().enumerate() {
            let Some(ledger) = self.shared_by_job[at].ledger.as_deref() else { continue };
            if result.workload.shape.writes() {
                let region = self.jobs[at].region;
                result.verification = verify(region, ledger, result.workload.shape.block_bytes, watch)
                    .map_err(|error| LoadError::Verify { path: region.name(), error })?;
            }
        }
        Ok(())
    }
}

fn outcomes(lanes: Vec<Lane<'_>>, plan: &ThreadPlan, cpu_ns: u64) -> Vec<Outcome> {
    let all: u64 = lanes.iter().map(|lane| lane.stream.counted).sum();
    let outcome = |(mut lane, plan): (Lane<'_>, &LanePlan)| {
        let cpu_ns = u128::from(cpu_ns) * u128::from(lane.stream.counted) / u128::from(all.max(1));
        let finished = lane.is_over();
        lane.end();
        Outcome {
            job: plan.job,
            thread: plan.thread,
            share: lane.recorder.finish(cpu_ns as u64),
            finished,
            checked: lane.checked,
            recorder: lane.recorder,
        }
    };
    lanes.into_iter().zip(&plan.lanes).map(outcome).collect()
}

fn member_shares(volume: &Volume) -> Vec<MemberShare> {
    let share = |(at, member): (usize, &Region)| MemberShare {
        path: member.path.display().to_string(),
        bytes: volume.map.member_bytes(at),
        ..MemberShare::default()
    };
    volume.members.iter().enumerate().map(share).collect()
}

impl JobState {
    fn new(job: &Job<'_>) -> Result<JobState, LoadError> {
        let (workload, region) = (job.workload, job.region);
        let source = match &workload.content {
            Content::Buffer { bytes, file } => {
                let source = content::source(*bytes, file.as_deref(), workload.seed);
                let path = || file.as_ref().map_or("random bytes".into(), |file| file.display().to_string());
                Some(Arc::new(source.map_err(|error| LoadError::Source { path: path(), error })?))
            }
            _ => None,
        };
        let ledger = workload.verify.map(|how: Verify| {
            let (base, span) = used_range(workload, region.offset_bytes, region.bytes);
            let block_bytes = workload.shape.block_bytes;
            let blocks = if workload.shape.writes() { span / u64::from(block_bytes) } else { 0 };
            Arc::new(Ledger::new(how, workload.seed, base, block_bytes, blocks))
        });
        let mapping = match choose_backend(workload, true) {
            Backend::Mapped => {
                let path = region.path.display().to_string();
                Some(Mapping::new(region, job.writes()).map_err(|error| LoadError::Start { path, error })?)
            }
            _ => None,
        };
        Ok(JobState { next_offset: Arc::default(), source, ledger, mapping })
    }
}
