use crate::crew::{self, Crew, Seat, Stock};
use crate::ledger::PLACES_MAX;
use crate::live::Live;
use std::io;
use std::time::Duration;
use storage::{HugePages, Region};
use workload::{
    Backend, Caching, Durability, InvalidWorkload, Phase, Pool, RunLength, RunResult, Trace, TraceKind,
    Workload, format_bytes,
};

/// A workload and what it runs on.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The target.
    pub region: &'a Region,
    /// What is asked of it.
    pub workload: &'a Workload,
    /// Share in a pool with shared outstanding I/Os; at least 1.
    pub weight: u32,
    /// Asks for these I/Os instead of chosen ones: at their times where the workload's arrival says so, else
    /// as fast as a closed loop goes.
    pub trace: Option<&'a Trace>,
}

/// How several jobs run at once.
#[derive(Clone, Debug)]
pub struct Together {
    /// How long.
    pub length: RunLength,
    /// Width of a row of the results' series.
    pub slice: Duration,
    /// Each thread's own series is wanted as well.
    pub thread_series: bool,
    /// Threads that each serve all jobs, instead of threads for each job.
    pub pool: Option<Pool>,
    /// Where threads run.
    pub affinity: Affinity,
    /// For each job the best-effort I/O priority of its threads, 0 (first) to 7 (last); `None`, and a job that is
    /// not listed, keeps that of the program. In a pool all jobs have the same.
    pub priorities: Vec<Option<u8>>,
    /// For each job whether its buffers are to be in huge pages that were set aside; a job that is not listed has
    /// ordinary ones.
    pub huge_pages: Vec<bool>,
}

/// On which cores threads run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// Where the scheduler puts them.
    #[default]
    None,
    /// One core after the other of those that this program may use.
    RoundRobin,
    /// One after the other of these.
    Cores(Vec<u32>),
}

/// What the watcher wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Go on as planned.
    Continue,
    /// End warm-up now.
    Measure,
    /// End the run now, by the user's wish: the result is marked as interrupted.
    Interrupt,
    /// End the run now, because enough is known.
    Enough,
}

/// Most threads of all jobs together.
pub const THREADS_MAX: u64 = 8192;
/// An I/O is cut into no more parts: they are handed over together.
const PARTS_MAX: usize = 64;
/// Most rows of a series.
const SLICES_MAX: u128 = 1_000_000;

/// Why a run gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The workload is out of range.
    #[error("cannot run this workload: {0}")]
    Workload(#[from] InvalidWorkload),
    /// The region is smaller than one block.
    #[error("cannot load {path}: it has {bytes} bytes, less than one block of {block_bytes} bytes")]
    TooSmall {
        /// Target.
        path: String,
        /// Its bytes.
        bytes: u64,
        /// The block size.
        block_bytes: u32,
    },
    /// Direct I/O of that size is not possible on that target.
    #[error(
        "cannot load {path} directly: {block_bytes} bytes are no multiple of its {align_bytes} byte blocks"
    )]
    Unaligned {
        /// Target.
        path: String,
        /// The block size.
        block_bytes: u32,
        /// What it must be a multiple of.
        align_bytes: u32,
    },
    /// Memory, threads or a ring are not to be had.
    #[error("cannot start the load on {path}: {error}")]
    Start {
        /// Target.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// A trace that does not fit the target.
    #[error("cannot replay on {path}: I/O {at} of the trace {why}")]
    Trace {
        /// Target.
        path: String,
        /// Which of the trace's I/Os, from 1 on.
        at: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The buffers would not fit into memory.
    #[error(
        "cannot start the load: {outstanding} outstanding I/Os of up to {block} need {needed} of memory for their \
         buffers, and {available} are available",
        block = format_bytes(u64::from(*block_bytes)),
        needed = format_bytes(*needed_bytes),
        available = format_bytes(*available_bytes)
    )]
    Memory {
        /// Over all threads and workloads.
        outstanding: u64,
        /// The largest block.
        block_bytes: u32,
        /// What they need.
        needed_bytes: u64,
        /// What there is.
        available_bytes: u64,
    },
    /// The buffers were to be in huge pages.
    #[error(
        "cannot start the load: its buffers need {needed} huge pages of {page}, and {free} are free",
        page = format_bytes(pages.page_bytes),
        free = pages.free
    )]
    HugePages {
        /// Pages, over all threads.
        needed: u64,
        /// What there is.
        pages: HugePages,
    },
    /// Too many threads at once.
    #[error("cannot start the load: it needs {threads} threads, and {THREADS_MAX} is the most{why}")]
    Threads {
        /// Needed.
        threads: u64,
        /// Why so many.
        why: &'static str,
    },
    /// Threads that share what is outstanding need io_uring.
    #[error("cannot start the load: a pool that shares its outstanding I/Os needs io_uring: {error}")]
    Pool {
        /// What the kernel said to it.
        error: io::Error,
    },
    /// What to write cannot be read.
    #[error("cannot read {path}, which is to be written: {error}")]
    Source {
        /// The file.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// What was written cannot be checked.
    #[error("cannot verify {path}: {error}")]
    Verify {
        /// Target.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// Every I/O failed.
    #[error("every I/O on {path} failed, {count} times: {error}")]
    AllFailed {
        /// Target.
        path: String,
        /// Failed I/Os.
        count: u64,
        /// The most frequent error.
        error: io::Error,
    },
}

impl From<RunLength> for Together {
    /// A row a second, threads for each job, wherever the scheduler puts them.
    fn from(length: RunLength) -> Together {
        Together {
            length,
            slice: Phase::SLICE,
            thread_series: false,
            pool: None,
            affinity: Affinity::None,
            priorities: Vec::new(),
            huge_pages: Vec::new(),
        }
    }
}

/// Runs a workload on a region until its time, its count or the watcher ends it.
///
/// `watch` is called every 20 ms on the calling thread. Threads of the run block all signals, so that
/// Ctrl-C reaches the caller.
///
/// # Errors
/// See [`LoadError`]; failures of single I/Os are counted in the result instead.
pub fn run(
    region: &Region,
    workload: &Workload,
    length: &RunLength,
    watch: &mut dyn FnMut(&Live) -> Next,
) -> Result<RunResult, LoadError> {
    let job = Job { region, workload, weight: 1, trace: None };
    run_together(&[job], &Together::from(*length), watch).map(single)
}

/// [`run`] with that backend and no other.
///
/// # Errors
/// See [`LoadError`].
pub fn run_with(
    backend: Backend,
    region: &Region,
    workload: &Workload,
    length: &RunLength,
    watch: &mut dyn FnMut(&Live) -> Next,
) -> Result<RunResult, LoadError> {
    let job = Job { region, workload, weight: 1, trace: None };
    let how = Together::from(*length);
    check(&[job], &how)?;
    attempt(&[job], &how, backend == Backend::IoUring, watch).map(single)
}

fn single(mut results: Vec<RunResult>) -> RunResult {
    results.pop().expect("one result for one job")
}

/// Runs several jobs at once; one result for each, in their order. All begin together, after one warm-up,
/// and are measured over the same time.
///
/// # Errors
/// See [`LoadError`]; failures of single I/Os are counted in the results instead.
///
/// # Panics
/// If there is no job.
pub fn run_together(
    jobs: &[Job<'_>],
    how: &Together,
    watch: &mut dyn FnMut(&Live) -> Next,
) -> Result<Vec<RunResult>, LoadError> {
    assert!(!jobs.is_empty(), "a run needs a job");
    check(jobs, how)?;
    match attempt(jobs, how, true, watch) {
        // A thread that blocks in an I/O has no others outstanding to share.
        Err(LoadError::Start { error, .. })
            if is_refused(&error) && how.pool.is_some_and(|pool| pool.outstanding.is_some()) =>
        {
            Err(LoadError::Pool { error })
        }
        Err(LoadError::Start { error, .. }) if is_refused(&error) => attempt(jobs, how, false, watch),
        other => other,
    }
}

fn attempt(
    jobs: &[Job<'_>],
    how: &Together,
    may_ring: bool,
    watch: &mut dyn FnMut(&Live) -> Next,
) -> Result<Vec<RunResult>, LoadError> {
    let seats = crew::seats(jobs, how, may_ring);
    check_room(jobs, how, &seats)?;
    Crew::new(jobs, how, &seats)?.run(watch)
}

/// How a job's I/Os are done: a mapping and a sync after each write leave no choice.
pub fn backend_of(workload: &Workload, may_ring: bool) -> Backend {
    match (workload.shape.caching, workload.shape.durability) {
        (Caching::Mapped, _) => Backend::Mapped,
        (_, Durability::Synced) => Backend::Blocking,
        _ if may_ring => Backend::IoUring,
        _ => Backend::Blocking,
    }
}

/// io_uring is compiled out, too old, switched off by sysctl, filtered, or short of locked memory.
fn is_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM | libc::EACCES | libc::ENOMEM))
}

fn field(what: impl Into<String>, remedy: &'static str) -> LoadError {
    LoadError::Workload(InvalidWorkload::Field { what: what.into(), remedy })
}

fn check(jobs: &[Job<'_>], how: &Together) -> Result<(), LoadError> {
    jobs.iter().try_for_each(check_job)?;
    if how.slice.is_zero() || how.length.duration.as_nanos() / how.slice.as_nanos() > SLICES_MAX {
        let what = format!("a series with a row each {:?} of {:?}", how.slice, how.length.duration);
        return Err(field(what, "make the rows wider: a million of them is the most"));
    }
    if let Some(level) = how.priorities.iter().flatten().find(|level| **level > 7) {
        return Err(field(format!("I/O priority {level}"), "give 0 to 7"));
    }
    for (at, job) in jobs.iter().enumerate().filter(|(_, job)| job.workload.verify.is_some()) {
        let meets = |(other, its): (usize, &Job<'_>)| {
            other != at && (its.workload.shape.writes() || its.trace.is_some()) && overlap(job, its)
        };
        if jobs.iter().enumerate().any(meets) {
            let what = "a verified workload beside another that writes to the same blocks";
            return Err(field(what, "give each a part of its own, or a target"));
        }
    }
    let Some(pool) = how.pool else { return Ok(()) };
    let priority = |job: usize| how.priorities.get(job).copied().flatten();
    if (1..jobs.len()).any(|job| priority(job) != priority(0)) {
        return Err(field("several I/O priorities in a pool", "give all workloads the same"));
    }
    if pool.threads == 0 || pool.threads > Workload::THREADS_MAX {
        return Err(LoadError::Workload(InvalidWorkload::Threads(pool.threads)));
    }
    if let Some(depth) = pool.outstanding.filter(|depth| *depth == 0 || *depth > Workload::OUTSTANDING_MAX) {
        return Err(LoadError::Workload(InvalidWorkload::Outstanding(depth)));
    }
    if jobs.iter().any(|job| job.weight == 0) {
        return Err(field("a weight of 0", "give at least 1"));
    }
    if jobs.iter().any(|job| backend_of(job.workload, true) != Backend::IoUring) {
        return Err(field("a mapped or synced workload in a pool", "give it threads of its own"));
    }
    Ok(())
}

fn check_job(job: &Job<'_>) -> Result<(), LoadError> {
    let (region, workload) = (job.region, job.workload);
    workload.validate()?;
    let path = || region.name();
    let block_bytes = workload.shape.block_bytes;
    let (base, span) = stream::used(workload, region.offset_bytes, region.bytes);
    if span < u64::from(block_bytes) {
        return Err(LoadError::TooSmall { path: path(), bytes: span, block_bytes });
    }
    let direct = region.direct && workload.shape.caching == Caching::Direct;
    let align = u64::from(if direct { region.align_bytes.max(1) } else { 1 });
    let access = &workload.access;
    let apart = match access.walk {
        workload::Walk::Apart(apart) => Some(apart),
        _ => None,
    };
    if let Some(odd) = workload
        .sizes
        .iter()
        .map(|size| size.block_bytes)
        .chain([block_bytes])
        .find(|bytes| !u64::from(*bytes).is_multiple_of(align))
    {
        return Err(LoadError::Unaligned { path: path(), block_bytes: odd, align_bytes: region.align_bytes });
    }
    let places = [
        ("base offset", Some(base)),
        ("alignment", access.align_bytes),
        ("stride", access.stride_bytes),
        ("distance of threads", apart),
    ];
    for (name, bytes) in places {
        if let Some(odd) = bytes.filter(|bytes| !bytes.is_multiple_of(align)) {
            let what = format!("{name} {odd} of direct I/O on {}", path());
            return Err(field(
                what,
                "make it a multiple of the target's block size, or go through the page cache",
            ));
        }
    }
    if let Some(laid) = region.laid.as_deref() {
        if workload.shape.caching == Caching::Mapped {
            return Err(field("a layout through a memory mapping", "go through calls: leave --mapped out"));
        }
        let parts = crew::parts_max(laid, block_bytes);
        if parts > PARTS_MAX {
            let what = format!(
                "I/Os of {} that {} cuts into {parts} parts",
                format_bytes(block_bytes.into()),
                laid.layout
            );
            return Err(field(what, "a larger stripe unit, or smaller blocks: 64 parts are the most"));
        }
    }
    if workload.verify.is_some() {
        check_verified(job, span)?;
    }
    let recorded = matches!(workload.arrival, workload::Arrival::Recorded { .. });
    if recorded && job.trace.is_none() {
        return Err(field("recorded times", "give the trace that they are in"));
    }
    if job.trace.is_some() && ((workload.is_open_loop() && !recorded) || workload.sync.is_some()) {
        return Err(field("a trace beside a rate or syncs", "give the trace alone: it has its own"));
    }
    job.trace.map_or(Ok(()), |trace| check_trace(job, trace, align))
}

fn overlap(a: &Job<'_>, b: &Job<'_>) -> bool {
    let part = |job: &Job<'_>| {
        let (base, span) = stream::used(job.workload, job.region.offset_bytes, job.region.bytes);
        (base, base + span)
    };
    let ((a_base, a_end), (b_base, b_end)) = (part(a), part(b));
    let of =
        |job: &Job<'_>| job.region.members().iter().map(|member| member.path.clone()).collect::<Vec<_>>();
    let (a_members, b_members) = (of(a), of(b));
    if a_members == b_members && a.region.laid.is_some() == b.region.laid.is_some() {
        return a_base < b_end && b_base < a_end;
    }
    // Differently laid: what they have in common is taken for all of it.
    a_members.iter().any(|path| b_members.contains(path))
}

fn check_verified(job: &Job<'_>, span: u64) -> Result<(), LoadError> {
    let (workload, block) = (job.workload, u64::from(job.workload.shape.block_bytes));
    let access = &workload.access;
    let whole = |bytes: Option<u64>| bytes.is_none_or(|bytes| bytes.is_multiple_of(block));
    let apart = match access.walk {
        workload::Walk::Apart(apart) => Some(apart),
        _ => None,
    };
    if !workload.sizes.is_empty()
        || job.trace.is_some()
        || !whole(access.align_bytes)
        || !whole(access.stride_bytes)
        || !whole(apart)
    {
        return Err(field(
            "verified writes that overlap",
            "give one block size, and offsets that are multiples of it",
        ));
    }
    if span / block > PLACES_MAX {
        return Err(field(format!("{} verified blocks", span / block), "use a smaller part of the target"));
    }
    Ok(())
}

fn check_trace(job: &Job<'_>, trace: &Trace, align: u64) -> Result<(), LoadError> {
    let end = job.region.offset_bytes + job.region.bytes;
    let largest = job.workload.shape.block_bytes;
    for (at, io) in (1..).zip(&trace.ios) {
        let why = if io.kind == TraceKind::Sync {
            continue;
        } else if io.bytes == 0 || io.bytes > largest {
            format!(
                "has {} bytes: between 1 and the workload's block size, {largest}, are possible",
                io.bytes
            )
        } else if !io.offset_bytes.is_multiple_of(align) || !u64::from(io.bytes).is_multiple_of(align) {
            format!("is not aligned to the target's {align} byte blocks")
        } else if io.offset_bytes < job.region.offset_bytes {
            format!(
                "at offset {} lies before the target's begin, {}",
                io.offset_bytes, job.region.offset_bytes
            )
        } else if io.offset_bytes.checked_add(u64::from(io.bytes)).is_none_or(|last| last > end) {
            format!("at offset {} lies beyond the target's end, {end}", io.offset_bytes)
        } else {
            continue;
        };
        return Err(LoadError::Trace { path: job.region.name(), at, why });
    }
    Ok(())
}

/// Threads and memory have a bound that is looked at before anything starts.
fn check_room(jobs: &[Job<'_>], how: &Together, seats: &[Seat]) -> Result<(), LoadError> {
    if seats.len() as u64 > THREADS_MAX {
        let blocking = seats.iter().any(|seat| seat.backend != Backend::IoUring);
        let why = if blocking { " (without io_uring, each outstanding I/O needs one)" } else { "" };
        return Err(LoadError::Threads { threads: seats.len() as u64, why });
    }
    // Huge pages were set aside, and are not in what is available.
    let (huge, ordinary): (Vec<Stock<'_>>, Vec<_>) =
        Stock::all(seats, jobs).into_iter().partition(|stock| stock.wants_huge_pages(how));
    let needed_bytes: u64 = ordinary.iter().map(Stock::bytes).sum();
    let available_bytes = available_memory();
    if needed_bytes > available_bytes {
        let outstanding =
            seats.iter().flat_map(|seat| &seat.places).map(|place| u64::from(place.slots)).sum();
        let block_bytes = jobs.iter().map(|job| job.workload.shape.block_bytes).max().unwrap_or(0);
        return Err(LoadError::Memory { outstanding, block_bytes, needed_bytes, available_bytes });
    }
    check_huge_pages(&huge)
}

fn check_huge_pages(stocks: &[Stock<'_>]) -> Result<(), LoadError> {
    if stocks.is_empty() {
        return Ok(());
    }
    let Some(pages) = HugePages::read() else {
        return Err(field("buffers in huge pages", "this kernel has none: take ordinary ones"));
    };
    let needed = stocks.iter().map(|stock| stock.bytes().div_ceil(pages.page_bytes)).sum();
    if needed <= pages.free { Ok(()) } else { Err(LoadError::HugePages { needed, pages }) }
}

/// What the kernel says can be had without swapping; without a word from it, everything.
fn available_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib * 1024)
}
