//! Writes the rest of a checkpoint at full speed: while some pages are written, the next are redone from the log.
//!
//! ```text
//! captured ──▶ gather a batch ──▶ its parts ──▶ write ──▶ done      two writers, each half of the writes in flight:
//!                   ▲                             │                 while one comes to the end of a part, the other
//!                   └──────── free memory ◀───────┘                 goes on
//! ```
//! The larger a batch, the more of its pages are neighbours, and the fewer times the log with its records is read.
//! So a batch takes all free memory, and at least half of the total except for the last. If that would not save
//! writes, the total is smaller, since nothing is written while the first batch is gathered.

use super::CheckpointPage;
use super::batch::{self, Gathered};
use crate::disk::aligned::AlignedBuffer;
use crate::engine::cache::Captured;
use crate::engine::inner::Inner;
use crate::engine::redo::Windows;
use crate::error::Result;
use crate::sync::{Classes, EventCount, Mutex, lock, run_on_threads};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use std::vec::IntoIter;

/// Threads that write.
const WRITERS: usize = 2;
/// Parts of the memory: it is freed one part at a time …
const PARTS_MIN: usize = if cfg!(test) { 4 } else { 16 };
/// … each large enough for many writes in flight, and small enough that the writers finish at about the same time.
const PART_BYTES_MIN: usize = if cfg!(test) { 1 } else { 256 << 10 };
const PART_BYTES_MAX: usize = 8 << 20;

/// The pages to be written, and the memory for it.
pub(super) struct Load {
    pub(super) captured: IntoIter<Captured>,
    /// The most pages to buffer, and the most to take at a time of those that are copied from memory.
    pub(super) pages_max: usize,
    pub(super) copied_max: usize,
}

/// See the module.
struct Pipeline<'a, 'm> {
    inner: &'a Inner,
    /// Pages that fit into the buffer.
    pages: usize,
    copied_max: usize,
    state: Mutex<State<'m>>,
    changed: EventCount,
}

struct State<'m> {
    captured: IntoIter<Captured>,
    free: Vec<&'m mut [u8]>,
    full: VecDeque<Part<'m>>,
    done: Vec<CheckpointPage>,
    /// Threads that only write. While there is none, the gathering thread writes too.
    writers: usize,
    /// No more is gathered: all is done, or a thread has failed.
    ended: bool,
}

/// The pages of the next batch, and the memory for them.
type Taken<'m> = (Vec<Captured>, Vec<&'m mut [u8]>);

/// A part of a batch, in file order.
struct Part<'m> {
    gathered: Vec<Gathered>,
    memory: &'m mut [u8],
}

/// Writes everything with up to `at_once` writes in flight, and adds it to `done`. Returns the time that was spent
/// redoing pages that were only in the log.
pub(super) fn write_all(
    inner: &Inner,
    load: Load,
    at_once: usize,
    done: &mut Vec<CheckpointPage>,
) -> Result<Duration> {
    let Load { captured, pages_max, copied_max } = load;
    let (page_bytes, before, left) = (inner.geometry.page_bytes, done.len(), captured.len());
    if left == 0 {
        return Ok(Duration::ZERO);
    }
    // Keep copies of pages that are in memory only for a short time.
    let copied = captured.as_slice().partition_point(|page| page.content.is_some());
    let pages = pages_max.min((left - copied).max(copied.min(copied_max)));
    let part_pages =
        (pages / PARTS_MIN).clamp(PART_BYTES_MIN.div_ceil(page_bytes), PART_BYTES_MAX / page_bytes);
    let mut windows = batch::windows(at_once);
    let mut memory = AlignedBuffer::new(pages * page_bytes);
    memory.resize(pages * page_bytes);
    let free = memory.bytes_mut().chunks_mut(part_pages * page_bytes).collect();
    let state =
        State { captured, free, full: VecDeque::new(), done: std::mem::take(done), writers: 0, ended: false };
    let state = Mutex::new(state);
    let pipeline = Pipeline { inner, pages, copied_max, state, changed: EventCount::default() };
    // One part or less is not worth threads.
    let gathering = if at_once <= 1 || left <= part_pages {
        pipeline.run_sequentially(&mut windows, at_once)?
    } else {
        pipeline.run_concurrently(windows, at_once)?
    };
    *done = std::mem::take(&mut lock(&pipeline.state).done);
    assert!(done.len() == before + left, "all of it is written");
    Ok(gathering)
}

/// Ends the pipeline when a thread leaves, by an error or panic too, so that the others do not wait for it.
struct EndOnDrop<'p, 'a, 'm>(&'p Pipeline<'a, 'm>);

impl Drop for EndOnDrop<'_, '_, '_> {
    fn drop(&mut self) {
        lock(&self.0.state).ended = true;
        self.0.changed.notify(Classes::ALL, u32::MAX);
    }
}

impl<'m> Pipeline<'_, 'm> {
    fn run_sequentially(&self, windows: &mut Windows, at_once: usize) -> Result<Duration> {
        let mut gathering = Duration::ZERO;
        while let Some((captured, free)) = self.next_batch(at_once)? {
            gathering += self.gather(captured, free, windows)?;
            while self.write_if_no_writers(at_once)? {}
        }
        Ok(gathering)
    }

    fn run_concurrently(&self, windows: Windows, at_once: usize) -> Result<Duration> {
        let writers = WRITERS.min(at_once);
        // Taken by the one thread that gathers.
        let windows = Mutex::new(Some(windows));
        let work = || {
            let _end = EndOnDrop(self);
            let mut gathering = Duration::ZERO;
            let taken = lock(&windows).take();
            match taken {
                Some(mut windows) => {
                    while let Some((captured, free)) = self.next_batch(at_once)? {
                        gathering += self.gather(captured, free, &mut windows)?;
                    }
                    while self.write_if_no_writers(at_once)? {}
                }
                None => {
                    lock(&self.state).writers += 1;
                    while let Some(part) = self.next_part() {
                        self.write(part, at_once / writers)?;
                    }
                }
            }
            Ok(gathering)
        };
        Ok(run_on_threads(1 + writers, work)?.into_iter().sum())
    }

    /// Writes a part if no other thread writes. Returns false if there is nothing for this thread to write.
    fn write_if_no_writers(&self, at_once: usize) -> Result<bool> {
        let part = {
            let mut state = lock(&self.state);
            if state.writers == 0 { state.full.pop_front() } else { None }
        };
        part.map_or(Ok(false), |part| self.write(part, at_once).map(|()| true))
    }

    /// Waits until there is memory for the next batch, or writes to free some if no other thread does; `None` when
    /// everything has been gathered.
    fn next_batch(&self, at_once: usize) -> Result<Option<Taken<'m>>> {
        loop {
            let key = self.changed.key();
            {
                let mut state = lock(&self.state);
                let left = state.captured.as_slice();
                if state.ended || left.is_empty() {
                    return Ok(None);
                }
                // Pages in memory come first, already in file order.
                let most = match left.partition_point(|page| page.content.is_some()) {
                    0 => left.len(),
                    copied => copied.min(self.copied_max),
                };
                let page_bytes = self.inner.geometry.page_bytes;
                let room = state.free.iter().map(|memory| memory.len() / page_bytes).sum::<usize>();
                if room >= most.min(self.pages.div_ceil(2)) {
                    let count = most.min(room);
                    return Ok(Some((
                        state.captured.by_ref().take(count).collect(),
                        state.take_free(count * page_bytes),
                    )));
                }
            }
            if !self.write_if_no_writers(at_once)? {
                self.changed.wait(key, 0);
            }
        }
    }

    /// Assembles a batch, and queues its parts for the writers.
    fn gather(
        &self,
        captured: Vec<Captured>,
        free: Vec<&'m mut [u8]>,
        windows: &mut Windows,
    ) -> Result<Duration> {
        let (begun, page_bytes) = (Instant::now(), self.inner.geometry.page_bytes);
        let logged = captured.iter().any(|page| page.content.is_none());
        let mut free = free;
        let pages = free.iter_mut().flat_map(|memory| memory.chunks_exact_mut(page_bytes));
        let mut gathered = batch::gather(self.inner, captured, windows, pages)?.into_iter();
        let parts = free.into_iter().map(|memory| {
            let gathered = gathered.by_ref().take(memory.len() / page_bytes).collect();
            Part { gathered, memory }
        });
        lock(&self.state).full.extend(parts);
        self.changed.notify(Classes::ALL, u32::MAX);
        Ok(if logged { begun.elapsed() } else { Duration::ZERO })
    }

    /// Waits for the next part; `None` at the end.
    fn next_part(&self) -> Option<Part<'m>> {
        loop {
            let key = self.changed.key();
            {
                let mut state = lock(&self.state);
                if !state.full.is_empty() || state.ended {
                    return state.full.pop_front();
                }
            }
            self.changed.wait(key, 0);
        }
    }

    fn write(&self, part: Part<'m>, at_once: usize) -> Result<()> {
        // After a failed write of another thread the store is read-only; the remaining writes are useless.
        self.inner.journal.check()?;
        let Part { gathered, memory } = part;
        batch::write(self.inner, &gathered, memory, at_once, batch::WRITE_BYTES_MAX)?;
        let mut state = lock(&self.state);
        state.done.extend(gathered.iter().map(|gathered| gathered.entry));
        state.free.push(memory);
        drop(state);
        self.changed.notify(Classes::ALL, u32::MAX);
        Ok(())
    }
}

impl<'m> State<'m> {
    /// Takes at least this many bytes of the free memory.
    fn take_free(&mut self, bytes: usize) -> Vec<&'m mut [u8]> {
        let mut taken = Vec::new();
        let mut missing = bytes;
        while missing > 0 {
            let memory = self.free.pop().expect("there is so much");
            missing = missing.saturating_sub(memory.len());
            taken.push(memory);
        }
        taken
    }
}
