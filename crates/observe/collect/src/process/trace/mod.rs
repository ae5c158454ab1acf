//! Reports I/Os of processes one by one: the process source's hooks with another outcome (`bpf/trace.bpf.o`).
//!
//! ```text
//! bpf/tell.h   an I/O ended  ─ op, size, time, thread's name: not wanted ─> dropped in the kernel
//!                            ─ its file is not wanted ───────────────────> dropped in the kernel
//!                            ─ the ring buffer is full ──────────────────> lost, and counted
//!                            └> ring buffer ─> Tracer::next -> TracedIo
//!   filter.rs    which I/Os are wanted: constants of the programs, set before they are loaded
//!   pattern.rs   which files are wanted, by name: decided when a file is first seen, and passed to the kernel
//!   event.rs     the layout of events
//!   files.rs     (device, inode) -> name, and whether the file is wanted
//! ```
//!
//! Memory is bounded: the buffer by its size, names by their number. Main path: [`Tracer::open`], then repeatedly
//! [`Tracer::next`] until it is `None`, and [`Tracer::tidy`] periodically.

mod event;
mod files;
pub(super) mod filter;
mod pattern;

pub use filter::Filter;
pub use pattern::FilePattern;

use super::program::Programs;
use super::refused::{no_table, table_error};
use super::tables::{AioKey, FileId};
use super::target::running;
use super::{Coverage, OpenError, Selection};
use crate::error::SourceError;
use aya::maps::{HashMap as KernelMap, MapData, RingBuf};
use event::{Event, TracedIocb, TracedPending};
use files::Files;
use filestats::{TracedIo, TracedOp};
use std::collections::HashMap;
use std::rc::Rc;

/// Number of thread names that are kept.
const COMMS_MAX: usize = 4096;

/// The I/Os of processes, one by one, since this trace was opened.
pub struct Tracer {
    programs: Programs,
    events: RingBuf<MapData>,
    files: Files,
    comms: HashMap<[u8; 16], Rc<str>>,
    began_ns: u64,
    /// Whether this kernel reports which reads missed the page cache.
    reports_misses: bool,
}

impl Tracer {
    /// Starts to trace.
    ///
    /// # Errors
    /// [`SourceError::Process`]: not permitted, not supported by the kernel, or a chosen process or file does not exist.
    pub fn open(selection: &Selection, filter: &Filter) -> Result<Tracer, SourceError> {
        if selection.coverage != Coverage::All {
            return Err(OpenError::BlockTrace.into());
        }
        let mut programs = Programs::load(selection, Some(filter))?;
        let map = programs.ebpf.take_map("events").ok_or_else(|| no_table("events"))?;
        let events = RingBuf::try_from(map).map_err(table_error)?;
        let reports_misses = programs.reports_misses();
        let files = Files::new(filter.files.clone());
        Ok(Tracer {
            programs,
            events,
            files,
            comms: HashMap::new(),
            began_ns: host::monotonic_ns(),
            reports_misses,
        })
    }

    /// The next wanted I/O that ended, in the order of their ends; `None` where there is no further one yet.
    ///
    /// # Errors
    /// [`SourceError`] where the kernel's tables cannot be read.
    #[expect(clippy::should_implement_trait, reason = "it may fail, and None is not the end")]
    pub fn next(&mut self) -> Result<Option<TracedIo>, SourceError> {
        while let Some(event) = self.events.next().and_then(|bytes| Event::read(&bytes)) {
            let Some(file) = self.files.wanted(&mut self.programs, event.file, event.tgid)? else { continue };
            let comm = match self.comms.get(&event.comm) {
                Some(comm) => Rc::clone(comm),
                None => {
                    if self.comms.len() >= COMMS_MAX {
                        self.comms.clear();
                    }
                    let comm: Rc<str> = event.comm().into();
                    self.comms.insert(event.comm, Rc::clone(&comm));
                    comm
                }
            };
            let Some(op) = event.op() else { continue };
            let flags = event.io_flags();
            return Ok(Some(TracedIo {
                at_ns: event.start_ns.saturating_sub(self.began_ns),
                latency_ns: event.ns,
                pid: event.tgid,
                tid: event.tid,
                comm,
                op,
                file,
                offset_bytes: (event.offset != Event::NOWHERE).then_some(event.offset),
                bytes: if op == TracedOp::Sync { 0 } else { event.bytes },
                flags,
                served: event.served(op, flags, self.reports_misses),
                n: event.n.max(1),
            }));
        }
        Ok(None)
    }

    /// Number of I/Os that were lost because the buffer was full. They passed the filter, except that files whose name was
    /// not checked yet may not be wanted.
    ///
    /// # Errors
    /// [`SourceError`] where the kernel's tables cannot be read.
    pub fn lost(&self) -> Result<u64, SourceError> {
        self.programs.lost_events()
    }

    /// Notes on figures that are missing on this kernel, and on losses for other reasons.
    ///
    /// # Errors
    /// [`SourceError`] where the kernel's tables cannot be read.
    pub fn notes(&self) -> Result<Vec<String>, SourceError> {
        Ok(self.programs.losses()?.notes)
    }

    /// Nanoseconds since the trace began.
    pub fn elapsed_ns(&self) -> u64 {
        host::monotonic_ns().saturating_sub(self.began_ns)
    }

    /// Whether a chosen process still runs.
    ///
    /// # Errors
    /// [`SourceError`] where the kernel's tables cannot be read.
    pub fn any_chosen_running(&self) -> Result<bool, SourceError> {
        let chosen: Vec<(u32, u32)> = self.programs.entries("chosen_processes")?;
        let running = running()?;
        Ok(chosen.iter().any(|(pid, _)| running.contains(pid)))
    }

    /// Takes out of the kernel's tables entries that ended processes left behind, and recorded names.
    ///
    /// # Errors
    /// [`SourceError`] where the kernel's tables cannot be read.
    pub fn tidy(&mut self) -> Result<(), SourceError> {
        self.files.keep(self.programs.take_names()?);
        let pending: Vec<(u64, TracedPending)> = self.programs.entries("requests")?;
        let iocbs: Vec<(AioKey, TracedIocb)> = self.programs.entries("iocbs")?;
        // Read after the tables, so that a process that started meanwhile counts as running.
        let running = running()?;
        self.programs.remove_unless("requests", &pending, |(_, pending)| running.contains(&pending.tgid))?;
        self.programs.remove_unless("iocbs", &iocbs, |(_, iocb)| running.contains(&iocb.aio.key.tgid))?;
        Ok(())
    }
}

/// Makes the programs drop the I/Os of a file.
fn exclude(programs: &mut Programs, id: FileId) -> Result<(), SourceError> {
    let mut unwanted: KernelMap<&mut MapData, FileId, u8> = programs.table_mut("unwanted")?;
    unwanted.insert(id, 1, 0).map_err(table_error)
}
