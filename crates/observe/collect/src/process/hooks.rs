//! The events of the kernel that the programs are attached to, and which of them a selection needs.

use super::calls::{self, Calls};
use super::error::OpenError;
use super::kernel_types::{KERNEL_BTF, Types};
use super::refused::{absent, is_absent, open_error, reason};
use super::selection::{Coverage, Selection};
use aya::programs::{Program, ProgramError};
use aya::{Btf, Ebpf};

/// An event of the kernel that the programs need.
struct Hook {
    /// The programs for it, of which the first that the kernel accepts is used: the verifier compares a program with what the
    /// kernel's BTF says of the event's arguments.
    candidates: &'static [Candidate],
    /// Figures that are missing on a kernel that accepts none of them; `None`: the hook is required.
    without: Option<&'static str>,
}

/// A program and the place that it is attached to.
struct Candidate {
    program: &'static str,
    event: Event,
}

/// Where a program can be attached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Tracepoint(&'static str),
    /// The entry of a function, for kernels that have no tracepoint in it.
    Entry(&'static str),
    /// Its exit.
    Exit(&'static str),
}

const HOOKS: &[Hook] = &[
    required(&[at(SYS_ENTER, "sys_enter")]),
    required(&[at(SYS_EXIT, "sys_exit")]),
    required(&[at("fork", "sched_process_fork")]),
    required(&[at(EXEC, "sched_process_exec")]),
    optional(&[at("ring_submit", "io_uring_submit_req"), at("ring_submit", "io_uring_submit_sqe")], NO_RING),
    optional(
        &[at("ring_complete", "io_uring_complete"), at("ring_complete_by_value", "io_uring_complete")],
        NO_RING,
    ),
    optional(
        &[at("direct_complete", "iomap_dio_complete"), entry("direct_completing", "iomap_dio_complete")],
        NO_DIRECT_AIO,
    ),
    optional(
        &[at("read_missed", "page_cache_sync_ra"), entry("read_missing", "page_cache_sync_ra")],
        NO_MISSES,
    ),
    optional(&[at("fault_begin", "mm_filemap_fault"), entry("fault_beginning", "filemap_fault")], NO_FAULTS),
    optional(&[at("page_added", "mm_filemap_add_to_page_cache")], NO_FAULTS),
    optional(&[exit("fault_ending", "filemap_fault"), at("fault_end", PAGE_MAPPED)], NO_FAULTS),
    optional(&[at(BLOCK, BLOCK_TRACEPOINT)], NO_BLOCK),
    optional(&[at(GUARD, BLOCK_TRACEPOINT)], NO_BLOCK),
];

const fn required(candidates: &'static [Candidate]) -> Hook {
    Hook { candidates, without: None }
}

const fn optional(candidates: &'static [Candidate], without: &'static str) -> Hook {
    Hook { candidates, without: Some(without) }
}

const fn at(program: &'static str, tracepoint: &'static str) -> Candidate {
    Candidate { program, event: Event::Tracepoint(tracepoint) }
}

const fn entry(program: &'static str, function: &'static str) -> Candidate {
    Candidate { program, event: Event::Entry(function) }
}

const fn exit(program: &'static str, function: &'static str) -> Candidate {
    Candidate { program, event: Event::Exit(function) }
}

pub(super) const NO_MISSES: &str = "page-cache misses are not counted";
const NO_RING: &str = "io_uring I/O is not counted";
const NO_DIRECT_AIO: &str = "direct libaio I/O is timed until its result is fetched";
const NO_FAULTS: &str = "reads of mapped files are not counted";
const NO_BLOCK: &str = "block I/O is not counted";
const EXEC: &str = "exec";
const SYS_ENTER: &str = "sys_enter";
const SYS_EXIT: &str = "sys_exit";
pub(super) const BLOCK: &str = "block_complete";
/// Counts completions that interrupt [`BLOCK`]. It is attached once that has happened: each program of an event costs
/// time, and on most machines completions never nest.
pub(super) const GUARD: &str = "block_complete_2";
const ONLY_BLOCK: &str = "only the block layer is counted, as chosen: not what processes issued";
const ONLY_STORAGE: &str = "only what reached storage is counted, as chosen: block I/O and system calls that sync, not reads and writes of programs";
const NO_SYNCS: &str = "syncs are not counted";
const PAGE_MAPPED: &str = "rss_stat";
const BLOCK_TRACEPOINT: &str = "block_rq_complete";
/// Makes `process:` use the tracepoints of all system calls though the kernel permits programs at functions.
const TRACEPOINTS_VARIABLE: &str = "HEADROOM_SYSTEM_CALLS";

/// Settings that decide which events are needed.
pub(super) struct Hooks<'a> {
    pub selection: &'a Selection,
    pub trace: bool,
    pub btf: &'a Btf,
    /// The programs use the kernel's function for cheap loads.
    pub cast: bool,
}

impl Hooks<'_> {
    /// Loads and attaches all that are needed. Returns notes on I/Os that are not counted.
    ///
    /// # Errors
    /// The kernel refuses a required program, or one because of the cheap loads.
    pub fn attach(&self, ebpf: &mut Ebpf) -> Result<Vec<String>, OpenError> {
        let mut missing = Vec::new();
        let at_functions = self.attach_calls(ebpf, &mut missing);
        for hook in HOOKS.iter().filter(|hook| self.needs(hook, at_functions)) {
            match (first_accepted(ebpf, hook.candidates, self.btf), hook.without) {
                (Ok(()), _) => {}
                // The event exists: without the function the kernel may accept the program.
                (Err(error @ OpenError::Refused { .. }), _) if self.cast && !is_absent(&error) => {
                    return Err(error);
                }
                (Err(_), Some(without)) if missing.iter().any(|note| note.starts_with(without)) => {}
                (Err(error), Some(without)) => missing.push(format!("{without}: {}", reason(&error))),
                (Err(error), None) => return Err(error),
            }
        }
        Ok(missing)
    }

    /// Attaches programs to the functions of the system calls. Returns whether those of all calls are.
    fn attach_calls(&self, ebpf: &mut Ebpf, missing: &mut Vec<String>) -> bool {
        match self.selection.coverage {
            _ if self.trace => false,
            Coverage::All
                if std::env::var_os(TRACEPOINTS_VARIABLE).is_some_and(|way| way == "tracepoints") =>
            {
                false
            }
            Coverage::All => calls::attach_to_functions(ebpf, Calls::All, self.btf).is_ok(),
            Coverage::Storage => {
                missing.push(ONLY_STORAGE.to_owned());
                if let Err(error) = calls::attach_to_functions(ebpf, Calls::Syncs, self.btf) {
                    missing.push(format!("{NO_SYNCS}: {}", reason(&error)));
                }
                false
            }
            Coverage::Block => {
                missing.push(ONLY_BLOCK.to_owned());
                false
            }
        }
    }

    /// A trace needs neither names of processes nor the block layer; the block layer alone needs only its own event.
    fn needs(&self, hook: &Hook, at_functions: bool) -> bool {
        let first = &hook.candidates[0];
        let of_block = first.event == Event::Tracepoint(BLOCK_TRACEPOINT);
        match self.selection.coverage {
            _ if self.trace => first.program != EXEC && !of_block,
            Coverage::All => !(at_functions && [SYS_ENTER, SYS_EXIT].contains(&first.program)),
            // Processes have names where they sync.
            Coverage::Storage => of_block || first.program == EXEC,
            Coverage::Block => of_block,
        }
    }
}

/// Loads and attaches the first of the programs that the kernel accepts.
///
/// # Errors
/// Why it refused the last one whose event it has; that it has none of the events.
fn first_accepted(ebpf: &mut Ebpf, candidates: &[Candidate], btf: &Btf) -> Result<(), OpenError> {
    let mut refused: Option<OpenError> = None;
    for candidate in candidates {
        match load(ebpf, candidate, btf) {
            Ok(()) => return Ok(()),
            Err(error) if refused.is_some() && is_absent(&error) => {}
            Err(error) => refused = Some(error),
        }
    }
    refused.map_or(Ok(()), Err)
}

/// Before Linux 6.2 a thread adds up its mapped pages: the tracepoint comes once in 64 faults.
fn counts_pages_by_thread() -> bool {
    let btf = std::fs::read(KERNEL_BTF).unwrap_or_default();
    Types::of_kernel(&btf).is_some_and(|types| types.member_offset("task_struct", "rss_stat").is_some())
}

/// Loads a program, and attaches all but the guard.
fn load(ebpf: &mut Ebpf, candidate: &Candidate, btf: &Btf) -> Result<(), OpenError> {
    let name = candidate.program;
    let failed = |error: ProgramError| open_error(name, &error.into());
    let missing = || OpenError::Refused { program: name.into(), why: "it is not in the object".into() };
    if candidate.event == Event::Tracepoint(PAGE_MAPPED) && counts_pages_by_thread() {
        return Err(absent(name));
    }
    let program = ebpf.program_mut(name).ok_or_else(missing)?;
    match (candidate.event, &mut *program) {
        (Event::Tracepoint(tracepoint), Program::BtfTracePoint(program)) => program.load(tracepoint, btf),
        (Event::Entry(function), Program::FEntry(program)) => program.load(function, btf),
        (Event::Exit(function), Program::FExit(program)) => program.load(function, btf),
        _ => return Err(missing()),
    }
    .map_err(failed)?;
    if name == GUARD { Ok(()) } else { attach(program, name) }
}

pub(super) fn attach(program: &mut Program, name: &str) -> Result<(), OpenError> {
    let attached = match program {
        Program::BtfTracePoint(program) => program.attach().map(drop),
        Program::FEntry(program) => program.attach().map(drop),
        Program::FExit(program) => program.attach().map(drop),
        _ => Ok(()),
    };
    attached.map_err(|error| open_error(name, &error.into()))
}
