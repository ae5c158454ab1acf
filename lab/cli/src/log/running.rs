//! The counters of a store that a process has open.

use super::live_view::{LiveLog, OpenStore, PATIENCE};
use pagestore_counters::{CommitTimes, Counts, Reader, SlowCommit};
use std::path::Path;
use terminal::Failure;

/// A store that a process has open.
pub struct Running {
    counters: Reader,
}

impl Running {
    /// `None` if no process has it open, or its counters cannot be read: then its files are read.
    pub fn find(directory: &Path) -> Option<Running> {
        Reader::open(directory).ok().map(|counters| Running { counters })
    }

    pub fn store(&self) -> OpenStore {
        let owner = self.counters.owner();
        OpenStore {
            pid: owner.process.pid,
            command: owner.process.command(),
            open_for: owner.open_for(),
            store: owner.opening.store,
            epoch: owner.opening.epoch,
            page_bytes: owner.opening.page_bytes,
            log_sector_bytes: owner.opening.log_sector_bytes,
            vlf_bytes: owner.opening.vlf_bytes,
        }
    }

    pub fn log(&self) -> Result<LiveLog, Failure> {
        let store = self.store();
        let Some(state) = self.counters.log_state(PATIENCE) else {
            let pid = store.pid;
            return Err(Failure::new(format_args!("process {pid} has not said what its log is like"))
                .with_remedy("read the files with --files"));
        };
        Ok(LiveLog { store, age: state.age(), state })
    }

    pub fn counts(&self) -> Result<Counts, Failure> {
        self.counters.counts().ok_or_else(truncated)
    }

    pub fn commit_times(&self) -> Result<CommitTimes, Failure> {
        self.counters.commit_times().ok_or_else(truncated)
    }

    /// The times of one commit, if it is one of the slow ones that are kept.
    pub fn slow_commit(&self, sequence: u64) -> Option<SlowCommit> {
        self.counters.commit_times()?.slow.into_iter().find(|slow| slow.sequence == sequence)
    }
}

fn truncated() -> Failure {
    Failure::new("the counters file was cut short under us").with_remedy("read the files with --files")
}
