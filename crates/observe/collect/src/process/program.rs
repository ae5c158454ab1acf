//! The programs in the kernel: loaded for a selection, attached to their tracepoints, and what they counted.
//!
//! ```text
//! object.rs    the compiled object, with what was chosen filled in
//! losses.rs    what was lost, by cause, and which figures that makes wrong
//! refused.rs   why the kernel does not let them in
//! ```

use super::casts;
use super::error::OpenError;
use super::object::{COUNTERS_BYTES_MAX, KEYS_MAX, KEYS_MIN, choose_files, choose_processes, configured};
use super::places::Places;
use super::refused::{NO_TRACEPOINT, no_table, open_error, table_error};
use super::selection::Selection;
use super::tables::{Counts, Key, OfCpu, Seen, Started};
use super::trace::filter::Filter;
use crate::error::SourceError;
use aya::maps::{HashMap as KernelMap, MapData, MapError, PerCpuArray, PerCpuHashMap, PerCpuValues};
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, Ebpf};
use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd};

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
pub(super) const BLOCK: &str = "block_complete";
/// Works where the other is interrupted by one more of its events: attached once that happened, because each program of an
/// event costs, and on most machines it never does.
const GUARD: &str = "block_complete_2";
const ONLY_BLOCK: &str = "only the block layer is counted, as chosen: not what processes asked for";
const BLOCK_TRACEPOINT: &str = "block_rq_complete";
const NO_BLOCK: &str = "block I/O is not counted: its tracepoint cannot be used on this kernel";

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
    pub(super) missing: Vec<String>,
    /// What had been lost at the last look, by words.
    pub(super) lost_before: RefCell<HashMap<String, u64>>,
}

/// What was counted, summed over the CPUs.
/// Boxed: a growing table would move them all.
pub(super) type Counted = HashMap<Key, Box<Counts>>;

impl Programs {
    /// For who counts, or for a trace.
    pub fn load(selection: &Selection, trace: Option<&Filter>) -> Result<Programs, OpenError> {
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
        trace: Option<&Filter>,
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

    /// Whether this kernel tells which reads missed the page cache.
    pub fn tells_misses(&self) -> bool {
        !self.missing.iter().any(|missing| missing == NO_MISSES)
    }

    pub(super) fn table<'a, T: TryFrom<&'a aya::maps::Map, Error = MapError>>(
        &'a self,
        name: &str,
    ) -> Result<T, SourceError> {
        T::try_from(self.ebpf.map(name).ok_or_else(|| no_table(name))?).map_err(table_error)
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

/// Events that the kernel did not pass on because the program was at work on that CPU already.
pub(super) fn recursion_misses(program: &aya::programs::Program) -> Option<u64> {
    let aya::programs::Program::BtfTracePoint(program) = program else { return None };
    let number = program.fd().ok()?.as_fd().as_raw_fd();
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("recursion_misses:"))?;
    line.trim().parse().ok()
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
            lines.into_iter().filter_map(|line| Some((line.number.kernel_form()?, line.counters.write.count)))
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
        let filter = Filter::default();
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
