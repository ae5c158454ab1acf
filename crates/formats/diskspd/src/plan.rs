//! Conversion of a profile to a plan: each time span is a phase, each target a workload.
//!
//! The semantics are kept exactly where [`workload`] can express them: sequential threads overlap or start apart; limits are
//! per thread and target (a workload's limit is for all its threads, so it is multiplied); the threads of a target share a
//! burst. [`Extras`] has what a workload cannot express (affinity, priority, hints). A note reports any remaining difference.

use crate::profile::{
    CacheMode, Content, Distribution, Order, Precreate, Priority, Profile, SpanUnit, Target, Throughput,
    TimeSpan,
};
use crate::usage::UsageError;
use std::path::PathBuf;
use std::time::Duration;
use workload::{
    Access, Burst, Caching, Durability, Extent, Limit, Pattern, Phase, Placed, Plan, PlanTarget, Pool,
    RunLength, Shape, Walk, Workload, Zone,
};

/// A profile as a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// A phase for each time span, in each a workload for each target.
    pub plan: Plan,
    /// For each phase, the settings that workloads cannot express.
    pub extras: Vec<Extras>,
    /// Differences from diskspd, for the user.
    pub notes: Vec<String>,
}

/// The settings of a phase that workloads cannot express.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// The CPUs of its threads.
    pub affinity: Affinity,
    /// For each of the phase's workloads, in their order.
    pub targets: Vec<TargetExtras>,
}

/// CPUs that threads are bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Affinity {
    /// To none (`-n`).
    None,
    /// To all CPUs in turn.
    #[default]
    RoundRobin,
    /// To these in turn (`-a`).
    Cores(Vec<u32>),
}

/// The settings of a target that its workload cannot express.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetExtras {
    /// Priority of its I/Os (`ioprio`).
    pub priority: Priority,
    /// The hint to the kernel about its accesses (`posix_fadvise`); only with the page cache.
    pub advice: Option<Advice>,
    /// Its buffers are in huge pages (`-l`, `MAP_HUGETLB`).
    pub huge_pages: bool,
}

/// A hint to the kernel about accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// `POSIX_FADV_RANDOM` (`-fr`).
    Random,
    /// `POSIX_FADV_SEQUENTIAL` (`-fs`).
    Sequential,
}

impl Priority {
    /// The corresponding `IOPRIO_CLASS_BE` level, 0 to 7; 4 is Linux's default.
    pub fn best_effort_level(self) -> u8 {
        match self {
            Priority::VeryLow => 7,
            Priority::Low => 6,
            Priority::Normal => 4,
        }
    }
}

/// Converts a profile to a plan. The profile has passed [`crate::rules::check`], and unsupported settings are refused or
/// removed ([`crate::unsupported`]).
///
/// # Errors
/// A workload that cannot run: a block that is not a multiple of 512 bytes, more threads or outstanding I/Os than the
/// engine has.
pub fn to_plan(profile: &Profile) -> Result<Planned, UsageError> {
    let mut plan = Plan::default();
    let (mut extras, mut notes) = (Vec::new(), Vec::new());
    for (number, span) in (1..).zip(&profile.time_spans) {
        let phase = phase(number, span, &mut plan.targets, &mut notes)?;
        plan.phases.push(phase);
        extras.push(extras_of(span, &mut notes));
    }
    note_creation(profile, &mut notes);
    Ok(Planned { plan, extras, notes })
}

fn phase(
    number: usize,
    span: &TimeSpan,
    targets: &mut Vec<PlanTarget>,
    notes: &mut Vec<String>,
) -> Result<Phase, UsageError> {
    let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
    let length = RunLength {
        warm_up: seconds(span.warm_up_s),
        duration: seconds(span.duration_s),
        ios_max: None,
        cool_down: seconds(span.cool_down_s),
    };
    let pool = (span.threads_total > 0).then(|| Pool {
        threads: span.threads_total,
        outstanding: Some(span.outstanding_total).filter(|shared| *shared > 0),
    });
    let (mut workloads, mut first_thread) = (Vec::new(), 0_u32);
    for target in &span.targets {
        let workload = workload(span, target, first_thread, notes)?;
        workloads.push(Placed {
            target: place(target, targets),
            weight: target.weight,
            workload,
            replay: None,
        });
        first_thread = first_thread.wrapping_add(target.threads);
    }
    let slice =
        if span.iops_deviation { Duration::from_millis(u64::from(span.bucket_ms)) } else { Phase::SLICE };
    Ok(Phase { name: format!("timespan {number}"), length, slice, pool, workloads })
}

/// The index of a target in the plan: one for each path, as large as its largest use.
fn place(target: &Target, targets: &mut Vec<PlanTarget>) -> usize {
    let path = PathBuf::from(&target.path);
    let create_bytes = target.create_bytes.filter(|bytes| *bytes > 0);
    if let Some(index) = targets.iter().position(|placed| placed.path == path) {
        targets[index].create_bytes = targets[index].create_bytes.max(create_bytes);
        return index;
    }
    targets.push(PlanTarget { path, create_bytes, laid: None });
    targets.len() - 1
}

fn workload(
    span: &TimeSpan,
    target: &Target,
    first_thread: u32,
    notes: &mut Vec<String>,
) -> Result<Workload, UsageError> {
    let threads = span.threads_of(target);
    let random = matches!(target.order(), Order::Random | Order::Mixed);
    let shape = Shape {
        block_bytes: target.block_bytes,
        pattern: if random { Pattern::Random } else { Pattern::Sequential },
        write_percent: target.write_percent,
        caching: caching(target),
        durability: durability(target),
    };
    let workload = Workload {
        outstanding: outstanding(span, target),
        threads,
        // In diskspd the seed of a thread is the seed of the time span plus its number over all targets.
        seed: u64::from(span.seed) + u64::from(if span.threads_total > 0 { 0 } else { first_thread }),
        access: access(target, threads, random),
        limit: limit(target, threads),
        burst: burst(target, threads, notes),
        content: content(span, target),
        ..Workload::from(shape)
    };
    let place = format!("target '{}'", target.path);
    workload.validate().map_err(|error| UsageError::new(place, error.to_string(), ""))?;
    aligned(target)?;
    Ok(workload)
}

/// A copy from or to a mapping ends before the next begins, in diskspd too, whatever `-o` says; only `-p` gives each
/// outstanding I/O an offset of its own.
fn outstanding(span: &TimeSpan, target: &Target) -> u32 {
    match target.mapped && !target.same_offset {
        true => 1,
        false if span.shares_outstanding() => span.outstanding_total,
        false => target.outstanding,
    }
}

fn caching(target: &Target) -> Caching {
    match target.cache {
        _ if target.mapped => Caching::Mapped,
        CacheMode::Unbuffered => Caching::Direct,
        CacheMode::Cached | CacheMode::RemoteOnly => Caching::Buffered,
    }
}

/// Through a mapping, write-through and a flush are both an `msync` after the write.
fn durability(target: &Target) -> Durability {
    if target.write_through || (target.mapped && target.flush.is_some()) {
        Durability::WriteThrough
    } else {
        Durability::Cached
    }
}

fn access(target: &Target, threads: u32, random: bool) -> Access {
    let sequential = target.order() != Order::Random;
    let walk = match target.order() {
        // A single thread uses the whole target in either mode.
        _ if threads == 1 => Walk::default(),
        Order::Random => Walk::default(),
        Order::Interlocked => Walk::Shared,
        Order::Mixed | Order::Sequential | Order::SameOffset => Walk::Apart(target.thread_stride_bytes),
    };
    Access {
        base_bytes: target.base_bytes,
        length_bytes: target.end_bytes.map(|end| end.saturating_sub(target.base_bytes)),
        align_bytes: target.align_bytes.filter(|_| random),
        stride_bytes: target.align_bytes.filter(|_| sequential),
        distribution: target.distribution.as_ref().map(zones).unwrap_or_default(),
        walk,
        random_percent: (target.order() == Order::Mixed).then_some(target.random_percent),
        same_offset: target.same_offset,
    }
}

/// The last range of bytes may be open. It is omitted: the remaining I/Os go to the rest of the target anyway.
fn zones(distribution: &Distribution) -> workload::Distribution {
    let ranges = distribution.ranges.iter();
    let extent = |span: u64| match distribution.unit {
        SpanUnit::Percent => Extent::Percent(u8::try_from(span).unwrap_or(100)),
        SpanUnit::Bytes => Extent::Bytes(span),
    };
    let zones = ranges
        .filter(|range| range.span > 0)
        .map(|range| Zone { ios_percent: range.ios_percent, extent: extent(range.span) })
        .collect();
    workload::Distribution::Zones { zones }
}

/// diskspd limits each thread of a target; a workload limits all its threads together.
fn limit(target: &Target, threads: u32) -> Limit {
    let threads = u64::from(threads);
    match target.throughput {
        None => Limit::default(),
        Some(Throughput::BytesPerMs(bytes)) => {
            let bytes_per_s = u128::from(bytes) * 1000 * u128::from(threads);
            Limit { bytes_per_s: Some(bytes_per_s as f64), iops: None }
        }
        Some(Throughput::Iops(iops)) => {
            Limit { iops: Some((u64::from(iops) * threads) as f64), bytes_per_s: None }
        }
    }
}

/// The threads of a target share a burst, each with at least one I/O; a limit takes precedence over bursts.
fn burst(target: &Target, threads: u32, notes: &mut Vec<String>) -> Option<Burst> {
    if target.burst_ios == 0 || target.think_time_ms == 0 || target.throughput.is_some() {
        return None;
    }
    let ios = (target.burst_ios / threads.max(1)).max(1);
    if u64::from(ios) * u64::from(threads) != u64::from(target.burst_ios) {
        let bursts =
            format!("{} I/Os of a burst (-i) are {ios} for each of {threads} threads", target.burst_ios);
        note(notes, format!("'{}': {bursts}, as in diskspd", target.path));
    }
    Some(Burst { ios, pause: Duration::from_millis(u64::from(target.think_time_ms)) })
}

fn content(span: &TimeSpan, target: &Target) -> workload::Content {
    match &target.content {
        Content::Buffer { bytes, file } => {
            workload::Content::Buffer { bytes: *bytes, file: file.as_ref().map(PathBuf::from) }
        }
        Content::Zero => workload::Content::Zeros,
        Content::Counting if span.random_write_data => workload::Content::Fresh,
        Content::Counting => workload::Content::Counting,
    }
}

/// Direct I/O needs whole sectors: a workload whose first I/O would fail is refused before.
fn aligned(target: &Target) -> Result<(), UsageError> {
    const SECTOR_BYTES: u64 = 512;
    if target.cache != CacheMode::Unbuffered || target.mapped {
        return Ok(());
    }
    let align = if target.random_percent > 0 { "-r" } else { "-s" };
    let sizes = [(align, target.align()), ("-B", target.base_bytes), ("-T", target.thread_stride_bytes)];
    for (flag, bytes) in sizes {
        if !bytes.is_multiple_of(SECTOR_BYTES) {
            let what = format!("{flag}{bytes} with -Su, target '{}'", target.path);
            let why = "without software cache, I/O goes by sectors of 512 bytes or more";
            return Err(UsageError::new(what, why, "give a multiple of the target's sector size, or -Sb"));
        }
    }
    Ok(())
}

fn extras_of(span: &TimeSpan, notes: &mut Vec<String>) -> Extras {
    let affinity = match &span.affinity {
        _ if span.disable_affinity => Affinity::None,
        cpus if cpus.is_empty() => Affinity::RoundRobin,
        cpus => Affinity::Cores(cpus.iter().map(|cpu| cpu.processor).collect()),
    };
    let targets = span.targets.iter().map(|target| TargetExtras {
        priority: target.priority,
        advice: advice(target, notes),
        huge_pages: target.large_pages,
    });
    let targets = targets.collect();
    Extras { affinity, targets }
}

fn advice(target: &Target, notes: &mut Vec<String>) -> Option<Advice> {
    let advice = match (target.hint_random, target.hint_sequential) {
        (false, false) => return None,
        (true, false) => Advice::Random,
        (false, true) => Advice::Sequential,
        (true, true) => {
            note(
                notes,
                format!("'{}': the hints -fr and -fs contradict each other; neither is given", target.path),
            );
            return None;
        }
    };
    if caching(target) == Caching::Direct {
        let why = "it is about the software cache, which -Su leaves out";
        note(notes, format!("'{}': the hint -f has no effect: {why}", target.path));
        return None;
    }
    Some(advice)
}

/// diskspd creates the files again for each time span; here each is created once, before the first.
fn note_creation(profile: &Profile, notes: &mut Vec<String>) {
    let mut sizes: Vec<(&str, Option<u64>)> = Vec::new();
    for target in profile.time_spans.iter().flat_map(|span| &span.targets) {
        if target.create_bytes == Some(0) {
            note(
                notes,
                format!("'{}': -c0 makes no file, as in diskspd; what is there is used", target.path),
            );
        }
        sizes.push((&target.path, target.create_bytes.filter(|bytes| *bytes > 0)));
    }
    for (path, size) in &sizes {
        let mut others = sizes.iter().filter(|(other, _)| other == path);
        if size.is_some() && others.any(|(_, other)| other != size) {
            note(
                notes,
                format!("'{path}' is made once, as large as its largest use (PrecreateFiles UseMaxSize)"),
            );
        }
    }
    let made_anew = sizes.iter().any(|(_, size)| size.is_some());
    if profile.time_spans.len() > 1 && made_anew && profile.precreate == Precreate::None {
        note(notes, "files are made once, before the first time span, not again for each".into());
    }
}

/// Removes repeated notes.
fn note(notes: &mut Vec<String>, text: String) {
    if !notes.contains(&text) {
        notes.push(text);
    }
}

#[cfg(test)]
mod tests;
