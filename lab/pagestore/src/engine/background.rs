//! The threads of a store: one writes checkpoints and extends the log before it is full, one bounds the time of
//! delayed commits, and one may keep a processor from idling. Threads of their own, at times, have `cache::page_memory`,
//! `tx::encoded_ahead`, `tx::write_queue` and `log::journal` (`write_behind`).

use crate::engine::inner::Inner;
use crate::engine::log_size::LogNeed;
use crate::engine::pace::{self, Pace, Pauses, Width};
use crate::engine::wake::CheckpointRequest;
use crate::error::{Error, Result};
use crate::log::idle_guard::IdleGuard;
use crate::log::journal::Slots;
use crate::log::segments::SPARE_SLOTS;
use crate::sync::{lock, thread_number};
use crate::types::Lsn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the checkpoint thread checks whether a checkpoint is due, without a request.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// A paced checkpoint has at most this many writes in flight, so that commits get their share of the disk.
const PACED_WIDTH_MAX: usize = 16;
/// How long a paced checkpoint sleeps when it is ahead of its pace, or pauses for a commit.
const PAUSE: Duration = Duration::from_millis(1);

/// The interval for publishing requests for the state of the log, however long commits may be delayed: the thread
/// wakes ten times a second for it, and more often only if `delayed_time` requires it.
const STATE_CHECK_EVERY: Duration = Duration::from_millis(100);

/// The threads; ended and joined when dropped.
pub(crate) struct Threads {
    inner: Arc<Inner>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    pub(crate) fn start(inner: &Arc<Inner>) -> Result<Self> {
        let mut threads = Self { inner: Arc::clone(inner), threads: Vec::new() };
        threads.begin("checkpoint", checkpoint_when_due)?;
        threads.begin("delayed", flush_when_due)?;
        if inner.journal.idle_guard.is_some() {
            // Commits work without it.
            let _ =
                threads.begin("keep awake", |inner| inner.journal.idle_guard.iter().for_each(IdleGuard::run));
        }
        Ok(threads)
    }

    fn begin(&mut self, name: &str, work: fn(&Inner)) -> Result<()> {
        let inner = Arc::clone(&self.inner);
        let begun = std::thread::Builder::new().name(name.into()).spawn(move || work(&inner));
        self.threads.push(begun.map_err(|error| Error::io("start", "a thread of the store", error))?);
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.inner.wake.end();
        self.inner.journal.idle_guard.iter().for_each(IdleGuard::end);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn checkpoint_when_due(inner: &Inner) {
    let mut need = LogNeed::new(Instant::now());
    while let Some(request) = inner.wake.next(CHECK_EVERY) {
        // A checkpoint at full speed frees space. Otherwise a failure to grow the log is ignored here: a
        // transaction that needs the space tries again and gets the error.
        let may_grow = request == CheckpointRequest::IfDue;
        while may_grow && inner.wants_space(&inner.load()) && inner.grow_log().is_ok_and(|grown| grown) {}
        let done = match request {
            CheckpointRequest::AtOnce => inner.checkpoint().map(|_| ()),
            CheckpointRequest::IfDue => {
                let load = inner.load();
                let is_due = load.short_of_log || inner.is_due(&load);
                if is_due && inner.may_move_redo() { inner.paced_checkpoint() } else { Ok(()) }
            }
        };
        let done = done.and_then(|()| inner.shorten_log_if_idle(&mut need));
        // An error makes the store read-only, including damage in log that a page needs; every later writer gets
        // it.
        if let Err(error) = done {
            inner.journal.set_read_only(&error);
            return;
        }
    }
}

fn flush_when_due(inner: &Inner) {
    let bound = inner.options.delayed_time;
    let check_every = (bound / 2).clamp(Duration::from_millis(1), STATE_CHECK_EVERY);
    while !inner.wake.wait_for_end(check_every) {
        inner.publish_requested_state();
        let due = inner.journal.delayed_since().is_some_and(|since| since.elapsed() + check_every >= bound);
        if due && inner.journal.flush().is_err() {
            inner.publish_state();
            return;
        }
    }
}

/// The amount of work for recovery, and whether the log runs out of space.
pub(crate) struct Load {
    log_bytes: u64,
    dirty_pages: u64,
    /// The log is nearly full, and part of it could be freed.
    short_of_log: bool,
}

impl Load {
    fn redo(&self, inner: &Inner) -> Duration {
        inner.redo_cost.redo(self.log_bytes, self.dirty_pages)
    }
}

impl Inner {
    pub(crate) fn load(&self) -> Load {
        let (next, slots) =
            self.journal.with_writer(|writer| (writer.position().lsn, Slots::from_writer(writer)));
        let dirty_pages = lock(&self.pages).dirty_pages();
        self.load_of(next, slots, dirty_pages)
    }

    /// As `load`, from values that the caller has just read.
    pub(crate) fn load_of(&self, next: Lsn, slots: Slots, dirty_pages: usize) -> Load {
        let log_bytes = self.redo_bytes(next);
        let short_of_log = slots.free <= SPARE_SLOTS + slots.all / 4 && log_bytes >= self.geometry.vlf_bytes;
        Load { log_bytes, dirty_pages: dirty_pages as u64, short_of_log }
    }

    /// Starts a checkpoint if this commit, which left `load`, made one due: on its thread, or here if there is
    /// none. The commit itself has succeeded, so an error is reported to the next writer.
    pub(crate) fn after_commit(&self, load: &Load) {
        let due = self.is_due(load);
        if self.options.background {
            if due || load.short_of_log {
                self.wake.request(CheckpointRequest::IfDue);
            }
            return;
        }
        self.publish_requested_state();
        if due && let Err(error) = self.checkpoint_unless_running() {
            self.journal.set_read_only(&error);
        }
    }

    /// A transaction finds no space in the log: a checkpoint frees some. If this thread itself runs a checkpoint,
    /// it does not wait for that.
    pub(crate) fn checkpoint_for_space(&self) -> Result<()> {
        let is_own = self.checkpoint_thread.load(Ordering::Relaxed) == thread_number();
        if is_own { self.checkpoint_unless_running() } else { self.checkpoint().map(|_| ()) }
    }

    /// Grows the log so that a writer need not wait for a checkpoint. Returns whether it has grown.
    pub(crate) fn grow_instead_of_checkpoint(&self) -> Result<bool> {
        if !self.options.background {
            return Ok(false);
        }
        self.wake.request(CheckpointRequest::IfDue);
        // If the log cannot grow, a checkpoint may still free space.
        Ok(self.grow_log_at_once().unwrap_or(false))
    }

    /// Whether the log should grow instead of being freed: it is nearly full, and no checkpoint is due or none
    /// could free any of it.
    fn wants_space(&self, load: &Load) -> bool {
        load.short_of_log && (!self.is_due(load) || !self.may_move_redo())
    }

    /// Whether recovery would take longer than it may, or dirty pages fill half of the cache.
    fn is_due(&self, load: &Load) -> bool {
        let options = &self.options;
        let late = options.checkpoint_bytes < u64::MAX
            && options.background
            && pace::should_begin(load.redo(self), options.redo_target);
        let dirty_bytes = load.dirty_pages as usize * self.geometry.page_bytes;
        late || load.log_bytes >= options.checkpoint_bytes || dirty_bytes * 2 >= options.cache_bytes
    }

    /// A checkpoint that is written as slowly as the target for recovery allows.
    fn paced_checkpoint(&self) -> Result<()> {
        let mut checkpoint = self.begin_checkpoint(lock(&self.checkpointing))?;
        let pace = Pace::new(self.load().redo(self), self.options.redo_target);
        let begun = Instant::now();
        let mut width = Width::new(self.options.parallel.min(PACED_WIDTH_MAX));
        let (mut is_awaited, mut pauses) = (false, Pauses::new());
        while !is_awaited && checkpoint.write(width.writes())? {
            width.step();
            while !is_awaited {
                let load = self.load();
                let due = pace.due(load.redo(self), begun.elapsed());
                if due < checkpoint.share_written() {
                    width.rest();
                } else if !(self.journal.is_written_behind() && pauses.pause(PAUSE)) {
                    break;
                }
                is_awaited = self.checkpoint_waiters.load(Ordering::Acquire) > 0
                    || self.wake.is_ending()
                    || load.short_of_log && !self.grow_log().unwrap_or(false);
                std::thread::sleep(PAUSE);
            }
        }
        checkpoint.write_all()?;
        checkpoint.sync()?.end()?;
        Ok(())
    }
}
