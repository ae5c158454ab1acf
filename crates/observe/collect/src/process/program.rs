//! The BPF programs: loads them for a selection, attaches them to their tracepoints, and reads their counters.
//!
//! ```text
//! hooks.rs     the kernel's events that they are attached to    calls.rs   system calls
//! object.rs    the compiled object, with its constants set from the selection
//! links.rs     the kernel's structures between a bio at a disk and its file
//! losses.rs    lost events by cause, and the figures that are wrong because of them
//! memory.rs    sizes of the tables by the memory that is left
//! refused.rs   why the kernel rejected them
//! ```

use super::casts;
use super::error::OpenError;
use super::hooks::{self, BLOCK, GUARD, Hooks, NO_MISSES};
use super::links;
use super::memory::{KernelTypes, TableSizes};
use super::object::{choose_files, choose_process, configured};
use super::places::Places;
use super::refused::{no_table, table_error};
use super::selection::{Coverage, Selection};
use super::tables::{CompactCounts, Key, Seen, Started};
use super::trace::filter::Filter;
use crate::diskstats::DiskLine;
use crate::error::SourceError;
use aya::maps::{HashMap as KernelMap, MapData, MapError, PerCpuArray, PerCpuValues};
use aya::programs::Program;
use aya::{Btf, Ebpf};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd};

/// The loaded programs. Dropping them unloads them.
pub(super) struct Programs {
    pub(super) ebpf: Ebpf,
    /// Number of keys that fit into the kernel's table of counters.
    pub(super) counters_max: usize,
    /// Number of possible CPUs, as per-CPU tables have them.
    pub(super) cpus: usize,
    /// `None` in a trace.
    pub(super) places: Option<Places>,
    /// Number of io_uring requests without a completion before their process ended.
    pub(super) left_behind: u64,
    /// The guard of block completions is attached.
    guarded: bool,
    /// Those for which the table of links is filled.
    modules: links::Modules,
    /// Notes on figures that are missing on this kernel.
    pub(super) missing: Vec<String>,
    /// Number of losses at the last snapshot, by the words of their note.
    pub(super) lost_before: RefCell<HashMap<String, u64>>,
}

/// The counts, summed over the CPUs.
pub(super) type Counted = FxHashMap<Key, CompactCounts>;

impl Programs {
    /// Loads the programs that count or, with a filter, those that trace.
    pub fn load(selection: &Selection, trace: Option<&Filter>) -> Result<Programs, OpenError> {
        if selection.coverage != Coverage::All && (!selection.pids.is_empty() || selection.cgroup.is_some()) {
            return Err(OpenError::BlockOfProcesses);
        }
        let types = KernelTypes::read()?;
        let btf = &types.btf;
        let cpus =
            aya::util::nr_cpus().map_err(|(path, error)| OpenError::System { path: path.into(), error })?;
        if let Some(cast) = casts::function_id(btf) {
            match Programs::load_for(selection, trace, btf, cpus, Some(cast)) {
                // The kernel has the function but does not allow these programs to call it.
                Err(OpenError::Refused { .. }) => {}
                done => return done,
            }
        }
        Programs::load_for(selection, trace, btf, cpus, None)
    }

    /// Loads the programs. `cast` is the id of the kernel function for cheap loads.
    fn load_for(
        selection: &Selection,
        trace: Option<&Filter>,
        btf: &Btf,
        cpus: usize,
        cast: Option<i32>,
    ) -> Result<Programs, OpenError> {
        let sizes = TableSizes::fitting(cpus, host::available_memory_bytes())?;
        let mut ebpf = configured(selection, trace, btf, sizes, cast)?;
        choose_files(&mut ebpf, selection)?;
        let hooks = Hooks { selection, trace: trace.is_some(), btf, cast: cast.is_some() };
        let mut missing = hooks.attach(&mut ebpf)?;
        missing.extend(sizes.note(cpus));
        for pid in &selection.pids {
            choose_process(&mut ebpf, *pid, None)?;
        }
        let places = if trace.is_none() { Some(places(&ebpf)?) } else { None };
        let mut programs = Programs {
            ebpf,
            places,
            counters_max: sizes.counters,
            cpus,
            left_behind: 0,
            guarded: false,
            modules: links::Modules::new(),
            missing,
            lost_before: RefCell::default(),
        };
        if trace.is_none() {
            programs
                .fill_links(links::modules())
                .map_err(|error| OpenError::Refused { program: "maps".into(), why: error.to_string() })?;
        }
        Ok(programs)
    }

    /// Learns how block I/O leads to files through modules that were loaded since. I/O that came through them until now
    /// is unattributed.
    pub fn follow_modules(&mut self) -> Result<(), SourceError> {
        let modules = links::modules();
        if modules == self.modules { Ok(()) } else { self.fill_links(modules) }
    }

    fn fill_links(&mut self, modules: links::Modules) -> Result<(), SourceError> {
        links::fill(&mut self.ebpf, &modules)?;
        self.modules = modules;
        Ok(())
    }

    /// Attaches the guard of block completions, if any were nested. Those before it are reported as lost.
    pub fn guard(&mut self) -> Result<(), SourceError> {
        let nested = self.ebpf.program(BLOCK).and_then(recursion_misses).unwrap_or(0);
        if nested > 0 && !self.guarded { self.attach_guard() } else { Ok(()) }
    }

    fn attach_guard(&mut self) -> Result<(), SourceError> {
        self.guarded = true;
        let Some(guard) = self.ebpf.program_mut(GUARD) else { return Ok(()) };
        Ok(hooks::attach(guard, GUARD)?)
    }

    /// The I/Os that the programs saw, of each of these devices.
    pub fn devices(&self, lines: &[DiskLine]) -> Result<HashMap<u32, Seen>, SourceError> {
        let table: PerCpuArray<&MapData, Seen> = self.table("devices")?;
        let mut found = Vec::new();
        for dev in lines.iter().filter_map(|line| line.number.kernel_form()) {
            for program in 0..Seen::PROGRAMS {
                for index in Seen::indexes(dev, program) {
                    let parts: PerCpuValues<Seen> = table.get(&index, 0).map_err(table_error)?;
                    found.extend(parts.iter().filter(|part| part.dev == u64::from(dev)));
                    // Each CPU takes the first entry that is free there.
                    if parts.iter().all(|part| part.dev == 0 || part.dev == u64::from(dev)) {
                        break;
                    }
                }
            }
        }
        Ok(Seen::by_device(found))
    }

    /// A process when it was first seen.
    pub fn process(&self, tgid: u32, started: u32) -> Option<Started> {
        let table: KernelMap<&MapData, u64, Started> = self.table("processes").ok()?;
        table.get(&(u64::from(tgid) << 32 | u64::from(started)), 0).ok()
    }

    /// Whether this kernel reports which reads missed the page cache.
    pub fn reports_misses(&self) -> bool {
        !self.missing.iter().any(|missing| missing.starts_with(NO_MISSES))
    }

    pub(super) fn table<'a, T: TryFrom<&'a aya::maps::Map, Error = MapError>>(
        &'a self,
        name: &str,
    ) -> Result<T, SourceError> {
        T::try_from(self.ebpf.map(name).ok_or_else(|| no_table(name))?).map_err(table_error)
    }
}

/// Maps the array of io_uring requests in flight.
fn places(ebpf: &Ebpf) -> Result<Places, OpenError> {
    let refused = |why: String| OpenError::Refused { program: "maps".into(), why };
    let Some(aya::maps::Map::Array(map)) = ebpf.map("places") else {
        return Err(refused("places is missing".into()));
    };
    Places::map(map.fd().as_fd()).map_err(|error| refused(error.to_string()))
}

/// Number of events that the kernel skipped because the program was already running on that CPU.
pub(super) fn recursion_misses(program: &Program) -> Option<u64> {
    let number = match program {
        Program::BtfTracePoint(program) => program.fd(),
        Program::FEntry(program) => program.fd(),
        Program::FExit(program) => program.fd(),
        _ => return None,
    };
    let number = number.ok()?.as_fd().as_raw_fd();
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("recursion_misses:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// No completions nest here: this tests that the second program can be attached next to the first, and does not count
    /// what the first one counts.
    #[test]
    fn the_guard_can_be_attached_later_and_counts_nothing_twice() {
        const WRITES: u64 = 256;
        let selection = Selection { coverage: Coverage::Block, ..Selection::default() };
        let mut programs = match Programs::load(&selection, None) {
            Ok(programs) => programs,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        programs.guard().unwrap();
        programs.attach_guard().unwrap();
        let device_writes = || {
            let lines = crate::diskstats::lines().unwrap();
            lines.into_iter().filter_map(|line| Some((line.number.kernel_form()?, line.counters.write.count)))
        };
        let seen = |programs: &Programs| -> u64 {
            programs
                .devices(&crate::diskstats::lines().unwrap())
                .unwrap()
                .values()
                .map(|seen| seen.count[1])
                .sum()
        };
        let before: HashMap<u32, u64> = device_writes().collect();
        let seen_before = seen(&programs);
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        for _ in 0..WRITES {
            file.write_all(&[7; 4096]).unwrap();
            file.sync_data().unwrap();
        }
        let seen = seen(&programs) - seen_before;
        let known = programs.devices(&crate::diskstats::lines().unwrap()).unwrap();
        let after = device_writes().filter(|(dev, _)| known.contains_key(dev));
        let counted: u64 = after.map(|(dev, writes)| writes - before.get(&dev).copied().unwrap_or(0)).sum();
        // Programs see a request before its device counts it: those in flight may be in only one of the counts.
        assert!(seen >= WRITES / 2 && seen <= counted + WRITES / 2, "seen {seen}, the devices {counted}");
    }

    /// Seconds of a processor that this thread took.
    fn processor_s() -> f64 {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
    }

    /// On a kernel without the function both variants are the same. The kernel's verifier delays each start of the source: on 6.18
    /// by some 0.6 s.
    #[test]
    fn the_programs_load_within_two_seconds_with_cheap_loads_and_without() {
        const LOADS_WITHIN_S: f64 = 2.0;
        let Ok(btf) = Btf::from_sys_fs() else {
            eprintln!("skipped: this kernel does not tell its types");
            return;
        };
        let cpus = aya::util::nr_cpus().unwrap();
        let cast = casts::function_id(&btf);
        let filter = Filter::default();
        for (cast, trace) in [(cast, None), (None, None), (cast, Some(&filter)), (None, Some(&filter))] {
            let before_s = processor_s();
            match Programs::load_for(&Selection::default(), trace, &btf, cpus, cast) {
                Ok(programs) => {
                    let took_s = processor_s() - before_s;
                    assert!(took_s < LOADS_WITHIN_S, "{cast:?} {}: {took_s} s", trace.is_some());
                    assert!(trace.is_some() || programs.devices(&[]).is_ok() && programs.counted().is_ok());
                }
                Err(OpenError::NotPermitted(error)) => eprintln!("skipped: {error}"),
                Err(error) => panic!("{cast:?} {}: {error}", trace.is_some()),
            }
        }
    }
}
