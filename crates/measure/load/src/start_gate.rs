use std::sync::{Condvar, Mutex, PoisonError};

/// Lets all threads of a run begin together, or none of them if one could not be prepared.
#[derive(Default)]
pub struct StartGate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: usize,
    failed: bool,
    /// Whether the threads may begin, once that is decided.
    decision: Option<bool>,
}

impl StartGate {
    /// Reports that a thread is `ready`, or could not be prepared; waits, and returns whether it may begin.
    pub fn wait(&self, ready: bool) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        state.failed |= !ready;
        self.changed.notify_all();
        let decided = self.changed.wait_while(state, |state| state.decision.is_none());
        decided.unwrap_or_else(PoisonError::into_inner).decision == Some(true)
    }

    /// Waits until that many threads have reported; whether all of them are ready.
    pub fn wait_for_all(&self, threads: usize) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let all = self.changed.wait_while(state, |state| state.waiting < threads);
        !all.unwrap_or_else(PoisonError::into_inner).failed
    }

    /// Lets the threads begin, or end at once.
    pub fn open(&self, begin: bool) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).decision = Some(begin);
        self.changed.notify_all();
    }
}
