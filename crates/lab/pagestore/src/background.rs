//! The store's own threads: one checkpoints and keeps the log ahead of its writers, one bounds the time of delayed
//! commits, one may keep a processor awake.

use crate::awake::Awake;
use crate::error::{Error, Result};
use crate::journal::Slots;
use crate::log_space::SPARE_SLOTS;
use crate::pace::{self, Pace, Width};
use crate::store::{Inner, lock};
use crate::sync::{Mutex, thread_number};
use crate::types::Lsn;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Tells the checkpointing thread what there is to do.
#[derive(Default)]
pub(crate) struct Wake {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    asked: Option<Asked>,
    ending: bool,
}

/// What the checkpointing thread is asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Asked {
    /// To look whether something is due, and to do it at its pace.
    Look,
    /// A checkpoint as fast as it goes: what recovery has left to be written.
    AtOnce,
}

impl Wake {
    pub(crate) fn checkpoint(&self) {
        self.tell(Asked::AtOnce);
    }

    fn tell(&self, asked: Asked) {
        let mut state = lock(&self.state);
        if state.asked >= Some(asked) {
            return;
        }
        state.asked = Some(asked);
        drop(state);
        self.changed.notify_all();
    }

    pub(crate) fn is_ending(&self) -> bool {
        lock(&self.state).ending
    }

    fn end(&self) {
        lock(&self.state).ending = true;
        self.changed.notify_all();
    }

    /// What to do next; `None` at the end.
    fn next(&self, patience: Duration) -> Option<Asked> {
        let state = lock(&self.state);
        let wait = |state: &mut State| state.asked.is_none() && !state.ending;
        let (mut state, _) = self
            .changed
            .wait_timeout_while(state, patience, wait)
            .expect("no thread panics with a lock of the store");
        if state.ending {
            return None;
        }
        Some(state.asked.take().unwrap_or(Asked::Look))
    }

    fn ended(&self, patience: Duration) -> bool {
        let state = lock(&self.state);
        let (state, _) = self
            .changed
            .wait_timeout_while(state, patience, |state| !state.ending)
            .expect("no thread panics with a lock of the store");
        state.ending
    }
}

/// How often the checkpointing thread looks without being told.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A paced checkpoint never has more writes in flight than this: commits come between them.
const PACED_WIDTH_MAX: usize = 16;
/// How long a paced checkpoint rests when it is ahead of its time.
const PAUSE: Duration = Duration::from_millis(1);

/// Who asks for the state of the log waits at most so long, however long commits may be delayed: a store wakes ten times a
/// second for it, and more often only where `delayed_time` asks for that.
const ANSWER_WITHIN: Duration = Duration::from_millis(100);

/// The threads; dropping ends and joins them.
pub(crate) struct Threads {
    inner: Arc<Inner>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    pub(crate) fn start(inner: &Arc<Inner>) -> Result<Self> {
        let mut own = Self { inner: Arc::clone(inner), threads: Vec::new() };
        own.begin("checkpoint", checkpoint_when_due)?;
        own.begin("delayed", flush_when_due)?;
        if inner.journal.awake.is_some() {
            // Commits do without it.
            let _ = own.begin("keep awake", |inner| inner.journal.awake.iter().for_each(Awake::run));
        }
        Ok(own)
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
        self.inner.journal.awake.iter().for_each(Awake::end);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn checkpoint_when_due(inner: &Inner) {
    while let Some(asked) = inner.wake.next(LOOK_EVERY) {
        // A checkpoint that is done at once frees space; else nothing depends on space that could not be added: who needs
        // it tries again, and is told.
        let may_grow = asked == Asked::Look;
        while may_grow && inner.wants_space(&inner.load()) && inner.grow_log().is_ok_and(|grown| grown) {}
        let done = match asked {
            Asked::AtOnce => inner.checkpoint().map(|_| ()),
            Asked::Look => {
                let load = inner.load();
                let is_due = load.short_of_log || inner.is_due(&load);
                if is_due && inner.may_move_redo() { inner.paced_checkpoint() } else { Ok(()) }
            }
        };
        // An error makes the store read-only, damage in the log that a page needs too, and every writer is told.
        if let Err(error) = done {
            inner.journal.give_up(&error);
            return;
        }
    }
}

fn flush_when_due(inner: &Inner) {
    let bound = inner.options.delayed_time;
    let look_every = (bound / 2).clamp(Duration::from_millis(1), ANSWER_WITHIN);
    while !inner.wake.ended(look_every) {
        inner.answer();
        let due = inner.journal.delayed_since().is_some_and(|since| since.elapsed() + look_every >= bound);
        if due && inner.journal.flush().is_err() {
            inner.publish_state();
            return;
        }
    }
}

/// What is there to be redone, and space to go on.
pub(crate) struct Load {
    log_bytes: u64,
    dirty_pages: u64,
    /// The log comes to its end, and there is something of it that could be freed.
    short_of_log: bool,
}

impl Load {
    fn redo(&self, inner: &Inner) -> Duration {
        inner.redo_cost.redo(self.log_bytes, self.dirty_pages)
    }
}

impl Inner {
    pub(crate) fn load(&self) -> Load {
        let (next, slots) = self.journal.with(|writer| (writer.position().lsn, Slots::of(writer)));
        let dirty_pages = lock(&self.pages).dirty_pages();
        self.load_of(next, slots, dirty_pages)
    }

    /// As `load`, by one who has just seen these.
    pub(crate) fn load_of(&self, next: Lsn, slots: Slots, dirty_pages: usize) -> Load {
        let log_bytes = self.redo_bytes(next);
        let short_of_log = slots.free <= SPARE_SLOTS + slots.all / 4 && log_bytes >= self.geometry.vlf_bytes;
        Load { log_bytes, dirty_pages: dirty_pages as u64, short_of_log }
    }

    /// A checkpoint that has become due with this commit, which left `load`, is begun by its thread, or done here where
    /// there is none. The commit is done: an error is told to the next writer.
    pub(crate) fn after_commit(&self, load: &Load) {
        let due = self.is_due(load);
        if self.options.background {
            if due || load.short_of_log {
                self.wake.tell(Asked::Look);
            }
            return;
        }
        self.answer();
        if due && let Err(error) = self.checkpoint_unless_running() {
            self.journal.give_up(&error);
        }
    }

    /// A transaction finds no space in the log: a checkpoint frees some, unless the one that it would have to wait
    /// for is this thread's own.
    pub(crate) fn checkpoint_for_space(&self) -> Result<()> {
        let is_own = self.whose_checkpoint.load(Ordering::Relaxed) == thread_number();
        if is_own { self.checkpoint_unless_running() } else { self.checkpoint().map(|_| ()) }
    }

    /// A writer does not wait for a checkpoint as long as the log may grow instead.
    pub(crate) fn grown_beside_checkpoint(&self) -> Result<bool> {
        if !self.options.background {
            return Ok(false);
        }
        self.wake.tell(Asked::Look);
        // Where there is no space for more log, a checkpoint may free some.
        Ok(self.grow_log_at_once().unwrap_or(false))
    }

    /// Whether the log had better grow than be freed: it comes to its end, and no checkpoint is due, or none can free any.
    fn wants_space(&self, load: &Load) -> bool {
        load.short_of_log && (!self.is_due(load) || !self.may_move_redo())
    }

    /// Whether recovery would have more to do than it may, or dirty pages fill half the cache.
    fn is_due(&self, load: &Load) -> bool {
        let options = &self.options;
        let late = options.checkpoint_bytes < u64::MAX
            && options.background
            && pace::begins(load.redo(self), options.redo_target);
        let dirty_bytes = load.dirty_pages as usize * self.geometry.page_bytes;
        late || load.log_bytes >= options.checkpoint_bytes || dirty_bytes * 2 >= options.cache_bytes
    }

    /// A checkpoint that is written as slowly as the target for recovery allows.
    fn paced_checkpoint(&self) -> Result<()> {
        let mut checkpoint = self.begin_checkpoint(lock(&self.checkpointing))?;
        let pace = Pace::new(self.load().redo(self), self.options.redo_target);
        let begun = Instant::now();
        let mut width = Width::new(self.options.parallel.min(PACED_WIDTH_MAX));
        let mut hurried = false;
        while !hurried && checkpoint.write(width.writes())? {
            width.step();
            while !hurried {
                let load = self.load();
                if pace.due(load.redo(self), begun.elapsed()) >= checkpoint.share_written() {
                    break;
                }
                width.rest();
                hurried = self.hurry.load(Ordering::Acquire) > 0
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
