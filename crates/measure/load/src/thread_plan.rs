//! Threads of a run, the jobs that each serves, and the buffers they need.

use crate::io_buffers::IoBuffers;
use crate::job::{Job, RunOptions};
use std::io;
use storage::Volume;
use workload::{Backend, Caching, Durability, Layout, Workload};

/// One thread of a run, and the jobs that it serves.
#[derive(Clone, Debug)]
pub struct ThreadPlan {
    pub backend: Backend,
    pub lanes: Vec<LanePlan>,
    /// Outstanding I/Os of all lanes, where they share them.
    pub shared_depth: Option<u32>,
}

/// One job in one thread.
#[derive(Clone, Copy, Debug)]
pub struct LanePlan {
    /// Index of the job.
    pub job: usize,
    /// Number of this thread among the job's threads.
    pub thread: u32,
    /// Threads of the job.
    pub threads: u32,
    /// Outstanding I/Os of the job in this thread.
    pub slots: u32,
}

/// Number of threads that the jobs need.
pub fn count_threads(jobs: &[Job<'_>], options: &RunOptions, allow_ring: bool) -> u64 {
    match options.pool.filter(|_| allow_ring) {
        Some(pool) => pool.threads.into(),
        None => {
            jobs.iter().map(|job| u64::from(threads_and_slots(job.workload, options, allow_ring).0)).sum()
        }
    }
}

/// The threads of a job without a shared ring, and the outstanding I/Os of each.
fn threads_and_slots(workload: &Workload, options: &RunOptions, allow_ring: bool) -> (u32, u32) {
    let threads = options.pool.map_or(workload.threads, |pool| pool.threads);
    match choose_backend(workload, allow_ring) {
        Backend::IoUring => (threads, workload.outstanding),
        // Blocking: one thread for each outstanding I/O. Sequential parts are then smaller, but all is walked.
        _ => (threads.saturating_mul(workload.outstanding), 1),
    }
}

/// The threads that the jobs need.
pub fn plan_threads(jobs: &[Job<'_>], options: &RunOptions, allow_ring: bool) -> Vec<ThreadPlan> {
    if let Some(pool) = options.pool.filter(|_| allow_ring) {
        let lanes = |thread| {
            let lane = |(job, of): (usize, &Job<'_>)| {
                let slots = pool.outstanding.unwrap_or(of.workload.outstanding);
                LanePlan { job, thread, threads: pool.threads, slots }
            };
            jobs.iter().enumerate().map(lane).collect()
        };
        let thread = |thread| ThreadPlan {
            backend: Backend::IoUring,
            lanes: lanes(thread),
            shared_depth: pool.outstanding,
        };
        return (0..pool.threads).map(thread).collect();
    }
    let mut plans = Vec::new();
    for (job, of) in jobs.iter().enumerate() {
        let backend = choose_backend(of.workload, allow_ring);
        let (threads, slots) = threads_and_slots(of.workload, options, allow_ring);
        plans.extend((0..threads).map(|thread| ThreadPlan {
            backend,
            lanes: vec![LanePlan { job, thread, threads, slots }],
            shared_depth: None,
        }));
    }
    plans
}

/// How a workload's I/Os are executed: a mapping, and a sync after each write, exclude io_uring.
pub fn choose_backend(workload: &Workload, allow_ring: bool) -> Backend {
    match (workload.shape.caching, workload.shape.durability) {
        (Caching::Mapped, _) => Backend::Mapped,
        (_, Durability::Synced) => Backend::Blocking,
        _ if allow_ring => Backend::IoUring,
        _ => Backend::Blocking,
    }
}

impl ThreadPlan {
    fn block_bytes(&self, jobs: &[Job<'_>]) -> u32 {
        self.lanes.iter().map(|lane| jobs[lane.job].workload.shape.block_bytes).max().unwrap_or(0)
    }

    /// Outstanding I/Os of all lanes.
    pub fn slots(&self) -> u32 {
        self.lanes.iter().map(|lane| lane.slots).sum()
    }

    /// Whether each slot has a buffer for reads and one for writes: a write must not contain what was read.
    pub fn has_write_buffers(&self, jobs: &[Job<'_>]) -> bool {
        self.backend != Backend::IoUring
            || self.lanes.iter().any(|lane| {
                let job = &jobs[lane.job];
                job.trace.is_some() || (1..100).contains(&job.workload.shape.write_percent)
            })
    }

    fn buffers(&self, jobs: &[Job<'_>]) -> u64 {
        u64::from(self.slots()) * if self.has_write_buffers(jobs) { 2 } else { 1 }
    }
}

/// One allocation of buffers: those of a ring's thread, or of all blocking threads of a job, which may be thousands.
pub struct BufferPool<'a> {
    threads: &'a [ThreadPlan],
    buffers_per_thread: u64,
    block_bytes: u32,
}

impl<'a> BufferPool<'a> {
    /// The pools of all threads, in their order.
    pub fn plan(threads: &'a [ThreadPlan], jobs: &[Job<'_>]) -> Vec<BufferPool<'a>> {
        let blocks = |thread: &ThreadPlan| thread.backend != Backend::IoUring;
        let shared =
            |a: &ThreadPlan, b: &ThreadPlan| blocks(a) && blocks(b) && a.lanes[0].job == b.lanes[0].job;
        let pool = |threads: &'a [ThreadPlan]| BufferPool {
            threads,
            buffers_per_thread: threads[0].buffers(jobs),
            block_bytes: threads[0].block_bytes(jobs),
        };
        threads.chunk_by(shared).map(pool).collect()
    }

    fn count(&self) -> u64 {
        self.buffers_per_thread * self.threads.len() as u64
    }

    /// Whether a job of the pool is to have its buffers in reserved huge pages.
    pub fn wants_huge_pages(&self, options: &RunOptions) -> bool {
        let lanes = &self.threads[0].lanes;
        lanes.iter().any(|lane| options.huge_pages.get(lane.job).copied().unwrap_or(false))
    }

    /// Bytes of its memory.
    pub fn bytes(&self) -> u64 {
        IoBuffers::allocated_bytes(self.count(), self.block_bytes.into())
    }

    /// Allocates it: the buffers of each of its threads.
    pub fn allocate(&self, options: &RunOptions) -> io::Result<Vec<IoBuffers>> {
        let allocate = if self.wants_huge_pages(options) { IoBuffers::in_huge_pages } else { IoBuffers::new };
        let buffers = allocate(self.count() as usize, self.block_bytes as usize)?;
        Ok(buffers.split(self.threads.len(), self.buffers_per_thread as usize))
    }
}

/// Most parts that an I/O of `block_bytes`, or a sync, has on a volume.
pub fn parts_max(volume: &Volume, block_bytes: u32) -> usize {
    let members = volume.members.len();
    let parts = match volume.layout {
        Layout::Stripe { unit_bytes } => u64::from(block_bytes).div_ceil(unit_bytes) as usize + 1,
        // Several small members may lie within one I/O.
        Layout::Span => members,
    };
    parts.max(members)
}
