//! Resources that the agent itself takes of the host, for its metrics.

use host::OwnUsage;
use metrics::{AgentState, ProcessState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often it is read: as often as a volume is judged.
const EVERY: Duration = Duration::from_secs(5);

/// Reads it from time to time.
#[derive(Default)]
pub struct OwnProcess {
    sampled: Option<Instant>,
}

impl OwnProcess {
    /// Reads it every 5 seconds.
    pub fn sample(&mut self, state: &Mutex<AgentState>) {
        if self.sampled.is_some_and(|last| last.elapsed() < EVERY) {
            return;
        }
        self.sampled = Some(Instant::now());
        let process = OwnUsage::read().map(|own| ProcessState {
            cpu_s: own.cpu_s,
            resident_bytes: own.resident_bytes,
            open_files: own.open_files,
            started_unix_s: own.started_unix_s,
        });
        state.lock().unwrap_or_else(PoisonError::into_inner).process = process;
    }
}
