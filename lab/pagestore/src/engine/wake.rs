//! Requests to the checkpoint thread.

use crate::sync::{Mutex, lock};
use std::sync::Condvar;
use std::time::Duration;

/// Wakes the checkpoint thread with a request.
#[derive(Default)]
pub(crate) struct Wake {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    request: Option<CheckpointRequest>,
    ending: bool,
}

/// A request to the checkpoint thread.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CheckpointRequest {
    /// Do a paced checkpoint if one is due.
    IfDue,
    /// Do a checkpoint as fast as possible, to write what recovery has left.
    AtOnce,
}

impl Wake {
    pub(crate) fn checkpoint(&self) {
        self.request(CheckpointRequest::AtOnce);
    }

    pub(super) fn request(&self, request: CheckpointRequest) {
        let mut state = lock(&self.state);
        if state.request >= Some(request) {
            return;
        }
        state.request = Some(request);
        drop(state);
        self.changed.notify_all();
    }

    pub(crate) fn is_ending(&self) -> bool {
        lock(&self.state).ending
    }

    pub(super) fn end(&self) {
        lock(&self.state).ending = true;
        self.changed.notify_all();
    }

    /// Waits for the next request; `None` when the store is closed.
    pub(super) fn next(&self, timeout: Duration) -> Option<CheckpointRequest> {
        let state = lock(&self.state);
        let wait = |state: &mut State| state.request.is_none() && !state.ending;
        let (mut state, _) = self
            .changed
            .wait_timeout_while(state, timeout, wait)
            .expect("no thread panics with a lock of the store");
        if state.ending {
            return None;
        }
        Some(state.request.take().unwrap_or(CheckpointRequest::IfDue))
    }

    pub(super) fn wait_for_end(&self, timeout: Duration) -> bool {
        let state = lock(&self.state);
        let (state, _) = self
            .changed
            .wait_timeout_while(state, timeout, |state| !state.ending)
            .expect("no thread panics with a lock of the store");
        state.ending
    }
}
