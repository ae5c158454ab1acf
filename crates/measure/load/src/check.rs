use crate::error::{LoadError, MemoryUse};
use crate::io_buffers::HugePages;
use crate::job::{Job, RunOptions, THREADS_MAX};
use crate::ledger::{BLOCK_BYTES, BLOCKS_MAX};
use crate::thread_plan::{BufferPool, ThreadPlan, choose_backend, count_threads, parts_max};
use storage::PARTS_MAX;
use stream::used_range;
use workload::{
    Access, Backend, Caching, Content, InvalidWorkload, Pool, Trace, TraceKind, Walk, Workload, format_bytes,
};

/// Most rows of a series.
const SLICES_MAX: u128 = 1_000_000;

fn invalid(what: impl Into<String>, remedy: &'static str) -> LoadError {
    LoadError::Workload(InvalidWorkload::Field { what: what.into(), remedy })
}

/// Refuses jobs and options that are out of range or contradict each other.
pub fn check(jobs: &[Job<'_>], options: &RunOptions) -> Result<(), LoadError> {
    jobs.iter().try_for_each(check_job)?;
    if options.slice.is_zero() || options.length.duration.as_nanos() / options.slice.as_nanos() > SLICES_MAX {
        let what = format!("a series with a row each {:?} of {:?}", options.slice, options.length.duration);
        return Err(invalid(what, "make the rows wider: a million of them is the most"));
    }
    if let Some(level) = options.priorities.iter().flatten().find(|level| **level > 7) {
        return Err(invalid(format!("I/O priority {level}"), "give 0 to 7"));
    }
    for (at, job) in jobs.iter().enumerate().filter(|(_, job)| job.workload.verify.is_some()) {
        let conflicts = |(index, other): (usize, &Job<'_>)| {
            index != at && (other.workload.shape.writes() || other.trace.is_some()) && overlap(job, other)
        };
        if jobs.iter().enumerate().any(conflicts) {
            let what = "a verified workload beside another that writes to the same blocks";
            return Err(invalid(what, "give each a part of its own, or a target"));
        }
    }
    options.pool.map_or(Ok(()), |pool| check_pool(jobs, options, pool))
}

fn check_pool(jobs: &[Job<'_>], options: &RunOptions, pool: Pool) -> Result<(), LoadError> {
    let priority = |job: usize| options.priorities.get(job).copied().flatten();
    if (1..jobs.len()).any(|job| priority(job) != priority(0)) {
        return Err(invalid("several I/O priorities in a pool", "give all workloads the same"));
    }
    if pool.threads == 0 || pool.threads > Workload::THREADS_MAX {
        return Err(LoadError::Workload(InvalidWorkload::Threads(pool.threads)));
    }
    if let Some(depth) = pool.outstanding.filter(|depth| *depth == 0 || *depth > Workload::OUTSTANDING_MAX) {
        return Err(LoadError::Workload(InvalidWorkload::Outstanding(depth)));
    }
    if jobs.iter().any(|job| job.weight == 0) {
        return Err(invalid("a weight of 0", "give at least 1"));
    }
    if jobs.iter().any(|job| choose_backend(job.workload, true) != Backend::IoUring) {
        return Err(invalid("a mapped or synced workload in a pool", "give it threads of its own"));
    }
    Ok(())
}

fn check_job(job: &Job<'_>) -> Result<(), LoadError> {
    let (region, workload) = (job.region, job.workload);
    workload.validate()?;
    let block_bytes = workload.shape.block_bytes;
    let (base, span) = used_range(workload, region.offset_bytes, region.bytes);
    if span < u64::from(block_bytes) {
        return Err(LoadError::TooSmall { path: region.name(), bytes: span, block_bytes });
    }
    let direct = region.direct && workload.shape.caching == Caching::Direct;
    let align = u64::from(if direct { region.align_bytes.max(1) } else { 1 });
    check_alignment(job, base, align)?;
    if let Some(volume) = region.volume.as_deref() {
        if workload.shape.caching == Caching::Mapped {
            return Err(invalid(
                "a layout through a memory mapping",
                "go through calls: leave caching=mapped out",
            ));
        }
        let parts = parts_max(volume, block_bytes);
        if parts > PARTS_MAX {
            let bytes = format_bytes(block_bytes.into());
            let what = format!("I/Os of {bytes} that {} cuts into {parts} parts", volume.layout);
            return Err(invalid(what, "a larger stripe unit, or smaller blocks: 64 parts are the most"));
        }
    }
    if workload.verify.is_some() {
        check_verified(job, span)?;
    }
    let recorded = matches!(workload.arrival, workload::Arrival::Recorded { .. });
    if recorded && job.trace.is_none() {
        return Err(invalid("recorded times", "give the trace that they are in"));
    }
    if job.trace.is_some() && ((workload.is_open_loop() && !recorded) || workload.sync.is_some()) {
        return Err(invalid("a trace beside a rate or syncs", "give the trace alone: it has its own"));
    }
    job.trace.map_or(Ok(()), |trace| check_trace(job, trace, align))
}

/// Block sizes and offsets that begin at `base` must be multiples of `align` bytes.
fn check_alignment(job: &Job<'_>, base: u64, align: u64) -> Result<(), LoadError> {
    let (region, workload, access) = (job.region, job.workload, &job.workload.access);
    let sizes = workload.sizes.iter().map(|size| size.block_bytes).chain([workload.shape.block_bytes]);
    if let Some(block_bytes) = sizes.into_iter().find(|bytes| !u64::from(*bytes).is_multiple_of(align)) {
        let align_bytes = region.align_bytes;
        return Err(LoadError::Unaligned { path: region.name(), block_bytes, align_bytes });
    }
    let offsets = [
        ("base offset", Some(base)),
        ("alignment", access.align_bytes),
        ("stride", access.stride_bytes),
        ("distance of threads", thread_distance(access)),
    ];
    for (name, bytes) in offsets {
        if let Some(unaligned) = bytes.filter(|bytes| !bytes.is_multiple_of(align)) {
            let what = format!("{name} {unaligned} of direct I/O on {}", region.name());
            return Err(invalid(
                what,
                "make it a multiple of the target's block size, or go through the page cache",
            ));
        }
    }
    Ok(())
}

/// Bytes between the starts of a walk's threads, where they are given.
fn thread_distance(access: &Access) -> Option<u64> {
    match access.walk {
        Walk::Apart(bytes) => Some(bytes),
        _ => None,
    }
}

/// Whether two jobs may use the same bytes.
fn overlap(a: &Job<'_>, b: &Job<'_>) -> bool {
    let range = |job: &Job<'_>| {
        let (base, span) = used_range(job.workload, job.region.offset_bytes, job.region.bytes);
        (base, base + span)
    };
    let ((a_base, a_end), (b_base, b_end)) = (range(a), range(b));
    let paths =
        |job: &Job<'_>| job.region.members().iter().map(|member| member.path.clone()).collect::<Vec<_>>();
    let (a_members, b_members) = (paths(a), paths(b));
    if a_members == b_members && a.region.volume.is_some() == b.region.volume.is_some() {
        return a_base < b_end && b_base < a_end;
    }
    // Of different layouts, a common member counts as an overlap.
    a_members.iter().any(|path| b_members.contains(path))
}

fn check_verified(job: &Job<'_>, span: u64) -> Result<(), LoadError> {
    let (workload, block) = (job.workload, u64::from(job.workload.shape.block_bytes));
    let access = &workload.access;
    let whole = |bytes: Option<u64>| bytes.is_none_or(|bytes| bytes.is_multiple_of(block));
    if !workload.sizes.is_empty()
        || job.trace.is_some()
        || !whole(access.align_bytes)
        || !whole(access.stride_bytes)
        || !whole(thread_distance(access))
    {
        return Err(invalid(
            "verified writes that overlap",
            "give one block size, and offsets that are multiples of it",
        ));
    }
    if span / block > BLOCKS_MAX {
        return Err(invalid(format!("{} verified blocks", span / block), "use a smaller part of the target"));
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

/// Refuses more threads than [`THREADS_MAX`], before they are planned: a plan of millions would itself not fit into memory.
pub fn check_threads(jobs: &[Job<'_>], options: &RunOptions, allow_ring: bool) -> Result<(), LoadError> {
    let threads = count_threads(jobs, options, allow_ring);
    if threads <= THREADS_MAX {
        return Ok(());
    }
    let blocking = jobs.iter().any(|job| choose_backend(job.workload, allow_ring) != Backend::IoUring);
    let why = if blocking { " (without io_uring, each outstanding I/O needs one)" } else { "" };
    Err(LoadError::Threads { threads, why })
}

/// Refuses more memory or huge pages than there are, before anything starts.
pub fn check_resources(
    jobs: &[Job<'_>],
    options: &RunOptions,
    threads: &[ThreadPlan],
) -> Result<(), LoadError> {
    // Reserved huge pages are not part of the available memory.
    let (huge, ordinary): (Vec<BufferPool<'_>>, Vec<_>) =
        BufferPool::plan(threads, jobs).into_iter().partition(|pool| pool.wants_huge_pages(options));
    let outstanding = threads.iter().map(|thread| u64::from(thread.slots())).sum();
    let block_bytes = jobs.iter().map(|job| job.workload.shape.block_bytes).max().unwrap_or(0);
    let verified = |job: &&Job<'_>| job.workload.verify.is_some() && job.workload.shape.writes();
    let ledgers = jobs.iter().filter(verified).map(ledger_bytes);
    let uses = [
        (MemoryUse::Outstanding { outstanding, block_bytes }, ordinary.iter().map(BufferPool::bytes).sum()),
        (MemoryUse::Ledger, ledgers.sum()),
        (MemoryUse::Content, content_bytes(jobs.iter().map(|job| job.workload))),
    ];
    check_memory(&uses, available_bytes())?;
    check_huge_pages(&huge)
}

/// Refuses more content of writes than there is memory for. To be called before test files for these workloads, which run at
/// the same time, are made.
///
/// # Errors
/// [`LoadError::Memory`].
pub fn check_content<'w>(workloads: impl Iterator<Item = &'w Workload>) -> Result<(), LoadError> {
    check_memory(&[(MemoryUse::Content, content_bytes(workloads))], available_bytes())
}

fn content_bytes<'w>(workloads: impl Iterator<Item = &'w Workload>) -> u64 {
    let bytes = workloads.map(|workload| match workload.content {
        Content::Buffer { bytes, .. } => bytes,
        _ => 0,
    });
    // Sizes that a user chose freely: their sum may be beyond 64 bits.
    bytes.fold(0, u64::saturating_add)
}

/// Unlimited where the kernel reports nothing.
fn available_bytes() -> u64 {
    host::available_memory_bytes().unwrap_or(u64::MAX)
}

/// Refuses the first use of memory for which the others leave too little.
fn check_memory(uses: &[(MemoryUse, u64)], mut available_bytes: u64) -> Result<(), LoadError> {
    for (used_by, needed_bytes) in uses.iter().copied() {
        available_bytes = available_bytes.checked_sub(needed_bytes).ok_or(LoadError::Memory {
            used_by,
            needed_bytes,
            available_bytes,
        })?;
    }
    Ok(())
}

/// Bytes of the ledger of a verified job.
fn ledger_bytes(job: &Job<'_>) -> u64 {
    let (_, span) = used_range(job.workload, job.region.offset_bytes, job.region.bytes);
    span / u64::from(job.workload.shape.block_bytes) * BLOCK_BYTES
}

fn check_huge_pages(pools: &[BufferPool<'_>]) -> Result<(), LoadError> {
    if pools.is_empty() {
        return Ok(());
    }
    let Some(pages) = HugePages::read() else {
        return Err(invalid("buffers in huge pages", "this kernel has none: take ordinary ones"));
    };
    let needed = pools.iter().map(|pool| pool.bytes().div_ceil(pages.page_bytes)).sum();
    if needed <= pages.free { Ok(()) } else { Err(LoadError::HugePages { needed, pages }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_use_of_memory_that_does_not_fit_beside_the_others_is_named() {
        let outstanding = MemoryUse::Outstanding { outstanding: 4, block_bytes: 8192 };
        let refused = |content: u64, available| {
            let checked = check_memory(&[(outstanding, 1 << 20), (MemoryUse::Content, content)], available);
            checked.err().map(|error| error.to_string())
        };
        assert_eq!(refused(1 << 20, 2 << 20), None);
        let text = refused(u64::MAX, 3 << 20).unwrap();
        assert!(
            text.contains("take their content from need 16777216 TiB") && text.contains("2 MiB are"),
            "{text}"
        );
        let text = refused(0, 512).unwrap();
        assert!(text.contains("buffers of 4 outstanding I/Os of up to 8 KiB need 1 MiB"), "{text}");
    }
}
