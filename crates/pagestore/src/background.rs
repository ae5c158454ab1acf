//! The store's own threads: one checkpoints, one bounds the time of delayed commits.

use crate::error::Result;
use crate::store::{Inner, lock};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Tells the checkpointing thread that one is due.
#[derive(Default)]
pub(crate) struct Wake {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    due: bool,
    ending: bool,
}

impl Wake {
    pub(crate) fn checkpoint(&self) {
        lock(&self.state).due = true;
        self.changed.notify_all();
    }

    fn end(&self) {
        lock(&self.state).ending = true;
        self.changed.notify_all();
    }

    /// Whether to checkpoint; `None` at the end.
    fn next(&self, patience: Duration) -> Option<bool> {
        let state = lock(&self.state);
        let wait = |state: &mut State| !state.due && !state.ending;
        let (mut state, _) = self
            .changed
            .wait_timeout_while(state, patience, wait)
            .expect("no thread panics with a lock of the store");
        if state.ending {
            return None;
        }
        Some(std::mem::take(&mut state.due))
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

/// The threads; dropping ends and joins them.
pub(crate) struct Threads {
    inner: Arc<Inner>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    pub(crate) fn start(inner: &Arc<Inner>) -> Self {
        let checkpoints = Arc::clone(inner);
        let delays = Arc::clone(inner);
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.into()).spawn(work).expect("a thread can be started")
        };
        let threads = vec![
            spawn("checkpoint", Box::new(move || checkpoint_when_due(&checkpoints))),
            spawn("delayed", Box::new(move || flush_when_due(&delays))),
        ];
        Self { inner: Arc::clone(inner), threads }
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.inner.wake.end();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn checkpoint_when_due(inner: &Inner) {
    while let Some(asked) = inner.wake.next(LOOK_EVERY) {
        // An error makes the store read-only, damage in the log that a page needs too, and every writer is told.
        if (asked || inner.checkpoint_is_due())
            && let Err(error) = inner.checkpoint()
        {
            inner.journal.give_up(&error);
            return;
        }
    }
}

fn flush_when_due(inner: &Inner) {
    let bound = inner.options.delayed_time;
    let look_every = (bound / 2).max(Duration::from_millis(1));
    while !inner.wake.ended(look_every) {
        inner.answer();
        let due = inner.journal.delayed_since().is_some_and(|since| since.elapsed() + look_every >= bound);
        if due && inner.journal.flush().is_err() {
            inner.publish_state();
            return;
        }
    }
}

impl Inner {
    /// A checkpoint that has become due is begun by its thread, or done here where there is none.
    pub(crate) fn after_commit(&self) -> Result<()> {
        if !self.options.background {
            self.answer();
        }
        if !self.checkpoint_is_due() {
            return Ok(());
        }
        if self.options.background {
            self.wake.checkpoint();
            return Ok(());
        }
        self.checkpoint_unless_running()
    }

    /// A transaction finds no space in the log: a checkpoint frees some, unless the one that it would have to wait
    /// for is this thread's own.
    pub(crate) fn checkpoint_for_space(&self) -> Result<()> {
        if self.options.background { self.checkpoint().map(|_| ()) } else { self.checkpoint_unless_running() }
    }

    /// Whether recovery would have more to do than it may, or dirty pages fill half the cache.
    pub(crate) fn checkpoint_is_due(&self) -> bool {
        let dirty = lock(&self.pages).dirty_pages() * self.geometry.page_bytes;
        self.redo_bytes() >= self.options.checkpoint_bytes || dirty * 2 >= self.options.cache_bytes
    }
}
