//! The programs in the kernel: loaded for a selection, and what they counted.

use super::places::Places;
use super::tables::{Counts, Key, Nested, OfCpu, Seen, Started};
use super::{OpenError, Selection, casts, cgroup, target, trace};
use crate::SourceError;
use crate::mounts::Mounts;
use aya::maps::{HashMap as KernelMap, MapData, MapError, PerCpuArray, PerCpuHashMap, PerCpuValues};
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, BtfError, Ebpf, EbpfError, EbpfLoader};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Compiled by scripts/bpf, and committed: whoever builds Headroom needs no clang.
pub(super) static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../../bpf/process.bpf.o");

/// The same, with another outcome: I/Os are told one by one.
pub(super) static TRACE_OBJECT: &[u8] = aya::include_bytes_aligned!("../../../../bpf/trace.bpf.o");

/// Each program, the tracepoint that it hangs on, and what cannot be told on a kernel without it; `None`: nothing
/// can.
const PROGRAMS: &[(&str, &str, Option<&str>)] = &[
    ("sys_enter", "sys_enter", None),
    ("sys_exit", "sys_exit", None),
    ("fork", "sched_process_fork", None),
    (EXEC, "sched_process_exec", None),
    ("ring_submit", "io_uring_submit_req", Some(NO_RING)),
    ("ring_complete", "io_uring_complete", Some(NO_RING)),
    ("direct_complete", "iomap_dio_complete", Some(NO_DIRECT_AIO)),
    ("read_missed", "page_cache_sync_ra", Some(NO_MISSES)),
    ("fault_begin", "mm_filemap_fault", Some(NO_FAULTS)),
    ("page_added", "mm_filemap_add_to_page_cache", Some(NO_FAULTS)),
    ("fault_end", "rss_stat", Some(NO_FAULTS)),
    (BLOCK, BLOCK_TRACEPOINT, Some(NO_BLOCK)),
    (GUARD, BLOCK_TRACEPOINT, Some(NO_BLOCK)),
];
const NO_MISSES: &str = "page-cache misses are not told: this kernel has no tracepoint of them";
const NO_RING: &str = "io_uring I/O is not counted: this kernel does not tell of it";
const NO_DIRECT_AIO: &str =
    "direct libaio I/O is timed until its result is fetched: this kernel does not tell when it completes";
const NO_FAULTS: &str =
    "reads of mapped files are not counted: this kernel does not tell of their page faults";
const EXEC: &str = "exec";
const BLOCK: &str = "block_complete";
/// Works where the other is interrupted by one more of its events: attached once that happened, because each program of an
/// event costs, and on most machines it never does.
const GUARD: &str = "block_complete_2";
const ONLY_BLOCK: &str = "only the block layer is counted, as chosen: not what processes asked for";
const BLOCK_TRACEPOINT: &str = "block_rq_complete";
const NO_TRACEPOINT: &str = "this kernel does not have its tracepoint";
const NO_BLOCK: &str = "block I/O is not counted: its tracepoint cannot be used on this kernel";

/// Programs that no interrupt calls: they cannot come one within the other, and it is told if they do.
const OF_TASKS: [&str; 4] = ["sys_enter", "sys_exit", "ring_submit", "ring_complete"];

/// Functions of the kernel by which programs tell whose I/O a completion is: names of bpf/aio.h and block.h.
const FUNCTIONS: [&str; 6] = [
    "aio_complete_rw",
    "iomap_dio_bio_end_io",
    "blkdev_bio_end_io",
    "blkdev_bio_end_io_simple",
    "blkdev_bio_end_io_async",
    "bio_chain_endio",
];

/// Memory for counters, of all CPUs together; each file of each process takes 912 bytes a CPU for reads, writes and
/// syncs each.
const COUNTERS_BYTES_MAX: usize = 64 << 20;
const KEYS_MIN: usize = 2048;
const KEYS_MAX: usize = 32_768;

/// What a system call number means to the programs: `enum call` of thread.h.
const CALLS: &[(libc::c_long, u8)] = &[
    (libc::SYS_read, 1),
    (libc::SYS_pread64, 1),
    (libc::SYS_readv, 1),
    (libc::SYS_preadv, 1),
    (libc::SYS_preadv2, 1),
    (libc::SYS_write, 2),
    (libc::SYS_pwrite64, 2),
    (libc::SYS_writev, 2),
    (libc::SYS_pwritev, 2),
    (libc::SYS_pwritev2, 2),
    (libc::SYS_fsync, 3),
    (libc::SYS_fdatasync, 3),
    (libc::SYS_sync_file_range, 3),
    (libc::SYS_msync, 4),
    (libc::SYS_copy_file_range, 5),
    (libc::SYS_splice, 5),
    (libc::SYS_sendfile, 6),
    (libc::SYS_io_submit, 7),
    (libc::SYS_io_getevents, 8),
    (SYS_IO_PGETEVENTS, 8),
];
const SYSCALLS: usize = 512;
/// Which libc does not name.
const SYS_IO_PGETEVENTS: libc::c_long = if cfg!(target_arch = "x86_64") { 333 } else { 292 };

/// `enum lost` of counters.h, for people.
const LOST: [&str; 12] = [
    "files, because the table of counters was full: some files are missing here; choose fewer processes",
    "names of files, because their table was full or busy",
    "asynchronous I/Os, because the table of those under way was full",
    "I/Os of threads that the kernel had no memory to follow",
    "calls of io_submit with more than 1024 I/Os",
    "libaio I/Os whose iocb was submitted again before their result was fetched",
    "io_uring I/Os that ended without a completion that the kernel tells of",
    "parts of block requests made of more I/Os than are looked at",
    "I/Os whose counters the kernel could not make or find at that moment",
    "names of processes, because their table was full or busy",
    "children of chosen processes, because the table of those chosen was full or busy",
    "I/Os that were to be told, because the buffer was full",
];
const LOST_FILES_FULL: usize = 0;
const LOST_NAMES_FULL: usize = 1;
/// Requests that ended with their process, or began before the programs were loaded: the others' figures stand.
const LOST_URING_UNSEEN: usize = 6;
const LOST_BIOS: usize = 7;
const LOST_COUNTERS: usize = 8;
const LOST_PROCESSES: usize = 9;
const LOST_TOLD: usize = 11;

/// The loaded programs. Dropping them takes them out of the kernel.
pub(super) struct Programs {
    pub(super) ebpf: Ebpf,
    /// How many counters fit into the kernel's table.
    pub(super) counters_max: usize,
    /// That may be, as tables of each CPU's parts have them.
    pub(super) cpus: usize,
    /// `None` of a trace.
    pub(super) places: Option<Places>,
    /// I/Os of rings of which no completion was seen before their process ended.
    pub(super) left_behind: u64,
    /// The guard of block completions is attached.
    guarded: bool,
    /// What cannot be told on this kernel.
    missing: Vec<String>,
    /// What had been lost at the last look, by words.
    lost_before: RefCell<HashMap<String, u64>>,
}

/// What is wrong in the figures of this interval, because events were lost in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    /// In words, with what the kernel cannot tell.
    pub notes: Vec<String>,
    /// Files may be missing.
    pub files: bool,
    /// Requests of processes may be missing, of which files is not known.
    pub requests: bool,
    /// Block I/O may be missing.
    pub block: bool,
}

/// What was counted, summed over the CPUs.
/// Boxed: a growing table would move them all.
pub(super) type Counted = HashMap<Key, Box<Counts>>;

impl Programs {
    /// For who counts, or for a trace.
    pub fn load(selection: &Selection, trace: Option<&trace::Filter>) -> Result<Programs, OpenError> {
        if selection.block_only && (!selection.pids.is_empty() || selection.cgroup.is_some()) {
            return Err(OpenError::BlockOfProcesses);
        }
        let btf = Btf::from_sys_fs().map_err(|error| OpenError::NoBtf(error.to_string()))?;
        let cpus =
            aya::util::nr_cpus().map_err(|(path, error)| OpenError::System { path: path.into(), error })?;
        if let Some(cast) = casts::number(&btf) {
            match Programs::load_for(selection, trace, &btf, cpus, Some(cast)) {
                // A kernel that has the function and does not let these programs call it.
                Err(OpenError::Refused { .. }) => {}
                done => return done,
            }
        }
        Programs::load_for(selection, trace, &btf, cpus, None)
    }

    /// With the number of the kernel's function that makes loads cheap.
    fn load_for(
        selection: &Selection,
        trace: Option<&trace::Filter>,
        btf: &Btf,
        cpus: usize,
        cast: Option<i32>,
    ) -> Result<Programs, OpenError> {
        let counters_max = (COUNTERS_BYTES_MAX / (size_of::<OfCpu>() * cpus)).clamp(KEYS_MIN, KEYS_MAX);
        let mut ebpf = configured(selection, trace, btf, counters_max, cast)?;
        choose_files(&mut ebpf, selection)?;
        let mut missing = Vec::new();
        if selection.block_only {
            missing.push(ONLY_BLOCK.to_owned());
        }
        let wanted = |name: &str, tracepoint: &str| match trace {
            // Names and the block layer are of who counts.
            Some(_) => name != EXEC && tracepoint != BLOCK_TRACEPOINT,
            None => !selection.block_only || tracepoint == BLOCK_TRACEPOINT,
        };
        let programs = PROGRAMS.iter().filter(|(name, tracepoint, _)| wanted(name, tracepoint));
        for (name, tracepoint, without) in programs {
            let loaded = load(&mut ebpf, name, tracepoint, btf);
            let done =
                if *name == GUARD { loaded.map(drop) } else { loaded.and_then(|one| attach(one, name)) };
            match (done, without) {
                (Ok(()), _) => {}
                // Not for want of its tracepoint: without the function it may be let in.
                (Err(OpenError::Refused { program, why }), _) if cast.is_some() && why != NO_TRACEPOINT => {
                    return Err(OpenError::Refused { program, why });
                }
                (Err(_), Some(without)) => missing.push((*without).to_owned()),
                (Err(error), None) => return Err(error),
            }
        }
        choose_processes(&mut ebpf, selection)?;
        let places = if trace.is_none() { Some(places(&ebpf)?) } else { None };
        Ok(Programs {
            ebpf,
            places,
            counters_max,
            cpus,
            left_behind: 0,
            guarded: false,
            missing,
            lost_before: RefCell::default(),
        })
    }

    /// Attaches the guard of block completions, if any came within another. Those before it are told as lost.
    pub fn guard(&mut self) -> Result<(), SourceError> {
        let nested = self.ebpf.program(BLOCK).and_then(recursion_misses).unwrap_or(0);
        if nested > 0 && !self.guarded { self.attach_guard() } else { Ok(()) }
    }

    fn attach_guard(&mut self) -> Result<(), SourceError> {
        self.guarded = true;
        let Some(aya::programs::Program::BtfTracePoint(guard)) = self.ebpf.program_mut(GUARD) else {
            return Ok(());
        };
        Ok(attach(guard, GUARD)?)
    }

    /// The counters of all files and processes.
    pub fn counted(&self) -> Result<Counted, SourceError> {
        let table: PerCpuHashMap<&MapData, Key, OfCpu> = self.table("files")?;
        let mut counted = Counted::new();
        for entry in table.iter() {
            let (key, parts) = entry.map_err(table_error)?;
            counted.insert(key, Box::new(Counts::sum(parts.iter())));
        }
        Ok(counted)
    }

    /// What the programs saw of each device.
    pub fn devices(&self) -> Result<HashMap<u32, Seen>, SourceError> {
        let table: PerCpuArray<&MapData, Seen> = self.table("devices")?;
        let parts: Vec<PerCpuValues<Seen>> = table.iter().collect::<Result<_, _>>().map_err(table_error)?;
        Ok(Seen::of_devices(parts.iter().flat_map(|parts| parts.iter().copied())))
    }

    /// A process when it was first seen.
    pub fn process(&self, tgid: u32, started: u32) -> Option<Started> {
        let table: KernelMap<&MapData, u64, Started> = self.table("processes").ok()?;
        table.get(&(u64::from(tgid) << 32 | u64::from(started)), 0).ok()
    }

    /// Keeps how much was lost of something; whether it is more than at the last look.
    fn note_loss(&self, losses: &mut Losses, lost: u64, words: &str) -> bool {
        let before = self.lost_before.borrow_mut().insert(words.to_owned(), lost).unwrap_or(0);
        let new = lost.saturating_sub(before);
        if lost > 0 {
            losses.notes.push(format!("lost {lost} {words}, {new} of them since the last look"));
        }
        new > 0
    }

    /// I/Os of a trace that found its buffer full.
    pub fn lost_events(&self) -> Result<u64, SourceError> {
        let table: PerCpuArray<&MapData, u64> = self.table("lost")?;
        Ok(table.get(&(LOST_TOLD as u32), 0).map_err(table_error)?.iter().sum())
    }

    /// Whether this kernel tells which reads missed the page cache.
    pub fn tells_misses(&self) -> bool {
        !self.missing.iter().any(|missing| missing == NO_MISSES)
    }

    /// What was lost since the programs were loaded, and in which figures it shows since the last look.
    pub fn losses(&self) -> Result<Losses, SourceError> {
        let table: PerCpuArray<&MapData, u64> = self.table("lost")?;
        let mut losses = Losses { notes: self.missing.clone(), ..Losses::default() };
        losses.notes.dedup();
        for (cause, words) in LOST.iter().enumerate() {
            let in_kernel: u64 = table.get(&(cause as u32), 0).map_err(table_error)?.iter().sum();
            let lost = in_kernel
                + match cause {
                    LOST_URING_UNSEEN => self.left_behind,
                    _ => 0,
                };
            // The trace itself tells these.
            if cause == LOST_TOLD {
                continue;
            }
            // A file that found no place stays out: what shows later did not begin at zero.
            losses.files |= cause == LOST_FILES_FULL && lost > 0;
            if self.note_loss(&mut losses, lost, words) {
                match cause {
                    LOST_FILES_FULL | LOST_NAMES_FULL | LOST_PROCESSES | LOST_URING_UNSEEN => {}
                    LOST_BIOS => losses.block = true,
                    LOST_COUNTERS => (losses.requests, losses.block) = (true, true),
                    _ => losses.requests = true,
                }
            }
        }
        let nested: PerCpuArray<&MapData, Nested> = self.table("nested")?;
        let in_others: u64 = nested.get(&0, 0).map_err(table_error)?.iter().map(|cpu| cpu.done).sum();
        let missed =
            self.ebpf.program(BLOCK).and_then(recursion_misses).unwrap_or(0).saturating_sub(in_others);
        let words = "completions of block I/O that came one within the other";
        losses.block |= self.note_loss(&mut losses, missed, words);
        for (name, program) in self.ebpf.programs().filter(|(name, _)| OF_TASKS.contains(name)) {
            let missed = recursion_misses(program).unwrap_or(0);
            let words = format!("events of {name} that came one within the other");
            losses.requests |= self.note_loss(&mut losses, missed, &words);
        }
        Ok(losses)
    }

    fn table<'a, T: TryFrom<&'a aya::maps::Map, Error = MapError>>(
        &'a self,
        name: &str,
    ) -> Result<T, SourceError> {
        T::try_from(self.ebpf.map(name).ok_or_else(|| no_table(name))?).map_err(table_error)
    }
}

/// Events that the kernel did not pass on because the program was at work on that CPU already.
fn recursion_misses(program: &aya::programs::Program) -> Option<u64> {
    let aya::programs::Program::BtfTracePoint(program) = program else { return None };
    let number = program.fd().ok()?.as_fd().as_raw_fd();
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("recursion_misses:"))?;
    line.trim().parse().ok()
}

/// The addresses of functions of the kernel; 0 of those that it does not have or does not tell.
fn addresses<const N: usize>(names: [&str; N]) -> [u64; N] {
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let mut addresses = [0; N];
    for line in symbols.lines() {
        let mut words = line.split_ascii_whitespace();
        let (address, name) = (words.next(), words.nth(1));
        if let Some(at) = names.iter().position(|wanted| Some(*wanted) == name) {
            addresses[at] = address.and_then(|text| u64::from_str_radix(text, 16).ok()).unwrap_or(0);
        }
    }
    addresses
}

/// The object with what was chosen filled in, its maps made, nothing running yet.
fn configured(
    selection: &Selection,
    trace: Option<&trace::Filter>,
    btf: &Btf,
    counters_max: usize,
    cast: Option<i32>,
) -> Result<Ebpf, OpenError> {
    let mut calls = [0_u8; SYSCALLS];
    for (number, call) in CALLS {
        if let Some(slot) = usize::try_from(*number).ok().and_then(|number| calls.get_mut(number)) {
            *slot = *call;
        }
    }
    let group = selection.cgroup.as_deref().map(cgroup::Group::of).transpose()?;
    let only_chosen = u8::from(!selection.pids.is_empty() || group.is_some());
    let only_files = u8::from(!selection.files.is_empty());
    let own = std::process::id();
    let (id, level, hierarchy) = group.map_or((0, 0, 0), |group| (group.id, group.level, group.hierarchy));
    let functions = addresses(FUNCTIONS);
    let object = if trace.is_some() { TRACE_OBJECT } else { OBJECT };
    let object = cast.map_or_else(|| object.to_vec(), |number| casts::put_in(object, number));
    let casts = u8::from(cast.is_some());
    let direct = libc::O_DIRECT as u32;
    // SAFETY: sysconf only reads.
    let page_bytes = u32::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let filling = trace.map(trace::Filling::of);
    let mut loader = EbpfLoader::new();
    for (name, address) in FUNCTIONS.iter().zip(&functions) {
        // A trace knows no block I/O.
        loader.override_global(name, address, trace.is_none());
    }
    if let Some(filling) = &filling {
        filling.put_in(&mut loader);
    }
    let counters_max = if trace.is_some() { 1 } else { counters_max };
    loader
        .btf(Some(btf))
        .allow_unsupported_maps()
        .map_max_entries("files", counters_max as u32)
        .override_global("casts", &casts, true)
        .override_global("calls", calls.as_slice(), true)
        .override_global("only_chosen", &only_chosen, true)
        .override_global("only_files", &only_files, true)
        .override_global("own_tgid", &own, true)
        .override_global("o_direct", &direct, true)
        .override_global("page_bytes", &page_bytes, true)
        .override_global("cgroup_id", &id, true)
        .override_global("cgroup_level", &level, true)
        .override_global("cgroup_hierarchy", &hierarchy, true)
        .load(&object)
        .map_err(|error| open_error("maps", &error))
}

/// Writes down the chosen files, before any program runs.
fn choose_files(ebpf: &mut Ebpf, selection: &Selection) -> Result<(), OpenError> {
    let mut files: KernelMap<_, super::tables::WantedFile, u8> = table_to_fill(ebpf, "chosen_files")?;
    let mounts = Mounts::now();
    for path in &selection.files {
        files.insert(target::file(path, &mounts)?, 1, 0).map_err(not_filled)?;
    }
    Ok(())
}

/// Writes down the chosen processes, once the program is there that adds the children which they get from then on. Those
/// that were born while we looked are found by looking again.
fn choose_processes(ebpf: &mut Ebpf, selection: &Selection) -> Result<(), OpenError> {
    let mut processes: KernelMap<_, u32, u8> = table_to_fill(ebpf, "chosen_processes")?;
    let mut chosen = target::processes(&selection.pids)?;
    loop {
        chosen = target::with_descendants(chosen)?;
        let known = |pid: &u32| processes.get(pid, 0).is_ok();
        let new: Vec<u32> = chosen.iter().copied().filter(|pid| !known(pid)).collect();
        if new.is_empty() {
            return Ok(());
        }
        for pid in new {
            processes.insert(pid, 1, 0).map_err(not_filled)?;
        }
    }
}

/// Asynchronous I/Os under way, which are looked at in the kernel's own memory.
fn places(ebpf: &Ebpf) -> Result<Places, OpenError> {
    let refused = |why: String| OpenError::Refused { program: "maps".into(), why };
    let Some(aya::maps::Map::Array(map)) = ebpf.map("places") else {
        return Err(refused("places is missing".into()));
    };
    Places::of(map.fd().as_fd()).map_err(|error| refused(error.to_string()))
}

fn table_to_fill<'a, T: TryFrom<&'a mut aya::maps::Map, Error = MapError>>(
    ebpf: &'a mut Ebpf,
    name: &str,
) -> Result<T, OpenError> {
    let missing = || OpenError::Refused { program: "maps".into(), why: format!("{name} is missing") };
    T::try_from(ebpf.map_mut(name).ok_or_else(missing)?).map_err(not_filled)
}

fn not_filled(error: MapError) -> OpenError {
    open_error("maps", &error.into())
}

fn load<'a>(
    ebpf: &'a mut Ebpf,
    name: &str,
    tracepoint: &str,
    btf: &Btf,
) -> Result<&'a mut BtfTracePoint, OpenError> {
    let failed = |error: ProgramError| open_error(name, &error.into());
    let missing = || OpenError::Refused { program: name.into(), why: "it is not in the object".into() };
    let program = ebpf.program_mut(name).ok_or_else(missing)?;
    let program: &mut BtfTracePoint = program.try_into().map_err(failed)?;
    program.load(tracepoint, btf).map_err(failed)?;
    Ok(program)
}

fn attach(program: &mut BtfTracePoint, name: &str) -> Result<(), OpenError> {
    program.attach().map(drop).map_err(|error| open_error(name, &error.into()))
}

/// The case that a person can act on: not permitted, or refused for another reason.
fn open_error(program: &str, error: &EbpfError) -> OpenError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut why = error.to_string();
    while let Some(one) = cause {
        why = one.to_string();
        if let Some(system) = one.downcast_ref::<io::Error>()
            && matches!(system.raw_os_error(), Some(libc::EPERM | libc::EACCES))
            && !why_is_the_verifier(error)
        {
            return OpenError::NotPermitted(io::Error::from_raw_os_error(
                system.raw_os_error().unwrap_or(libc::EPERM),
            ));
        }
        if let Some(BtfError::UnknownBtfTypeName { .. }) = one.downcast_ref::<BtfError>() {
            why = NO_TRACEPOINT.into();
        }
        cause = one.source();
    }
    OpenError::Refused { program: program.into(), why }
}

/// The verifier refuses with EACCES too; then it gives its reasons.
fn why_is_the_verifier(error: &EbpfError) -> bool {
    matches!(error, EbpfError::ProgramError(ProgramError::LoadError { verifier_log, .. })
        if !verifier_log.to_string().trim().is_empty())
}

pub(super) fn no_table(name: &str) -> SourceError {
    table_error(MapError::InvalidName { name: name.into() })
}

pub(super) fn table_error(error: MapError) -> SourceError {
    SourceError::System { path: "the tables of the BPF programs".into(), error: io::Error::other(error) }
}

impl std::fmt::Debug for Programs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Programs").field("missing", &self.missing).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Nothing comes within another here: what is asked for is that the second program is let in beside the first one, and
    /// leaves alone what that one counts.
    #[test]
    fn the_guard_can_be_attached_later_and_counts_nothing_twice() {
        const WRITES: u64 = 256;
        let selection = Selection { block_only: true, ..Selection::default() };
        let mut programs = match Programs::load(&selection, None) {
            Ok(programs) => programs,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        programs.guard().unwrap();
        programs.attach_guard().unwrap();
        let of_devices = || {
            let lines = crate::diskstats::lines().unwrap();
            lines.into_iter().filter_map(|line| Some((line.kernel_number()?, line.counters.write.count)))
        };
        let seen = |programs: &Programs| -> u64 {
            programs.devices().unwrap().values().map(|seen| seen.count[1]).sum()
        };
        let before: HashMap<u32, u64> = of_devices().collect();
        let seen_before = seen(&programs);
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        for _ in 0..WRITES {
            file.write_all(&[7; 4096]).unwrap();
            file.sync_data().unwrap();
        }
        let seen = seen(&programs) - seen_before;
        let known = programs.devices().unwrap();
        let after = of_devices().filter(|(dev, _)| known.contains_key(dev));
        let counted: u64 = after.map(|(dev, writes)| writes - before.get(&dev).copied().unwrap_or(0)).sum();
        // A request is told of before the device counts it: those under way may be in one of both.
        assert!(seen >= WRITES / 2 && seen <= counted + WRITES / 2, "seen {seen}, the devices {counted}");
    }

    /// Of a kernel that has the function; on others the first is the second.
    #[test]
    fn the_programs_are_let_in_with_cheap_loads_and_without() {
        let Ok(btf) = Btf::from_sys_fs() else {
            eprintln!("skipped: this kernel does not tell its types");
            return;
        };
        let cpus = aya::util::nr_cpus().unwrap();
        let cast = casts::number(&btf);
        let filter = trace::Filter::default();
        for (cast, trace) in [(cast, None), (None, None), (cast, Some(&filter)), (None, Some(&filter))] {
            match Programs::load_for(&Selection::default(), trace, &btf, cpus, cast) {
                Ok(programs) => {
                    assert!(trace.is_some() || programs.devices().is_ok() && programs.counted().is_ok());
                }
                Err(OpenError::NotPermitted(error)) => eprintln!("skipped: {error}"),
                Err(error) => panic!("{cast:?} {}: {error}", trace.is_some()),
            }
        }
    }
}
