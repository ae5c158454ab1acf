//! The page store's crash laboratory: the engine on a simulated disk that loses, tears and misplaces writes, and on a real
//! one in processes that are killed.
//!
//! ```text
//! Lab::run(seed)   draws workloads (workload, kind) ── performs them on a SimDisk (run, caller)
//!                  ── crashes them at every write and sync (crashes, medium, cuts, indices) ── recovers the image
//!                  ── asks the oracle (oracle) ── goes on from the recovered store, and crashes that run, too
//!                  a failure is reduced to the steps and crashes that it needs (seed, shrink, reduce)
//!                  also the creation of a store (creation, names), and a store with its threads (threads, recording)
//! KillTest::round  kill -9 of processes that commit and recover on a real file system (kill)
//! ```
//! `SimDisk` implements the engine's disk in memory and records all writes and syncs. `Medium` replays that record and makes
//! the files that a crash at any point may leave. The laboratory uses the engine's public interface; `pagestore::internals`
//! gives it the formats where it aims at particular bytes.

mod caller;
mod crashes;
mod creation;
mod cuts;
mod disk;
mod fault;
mod indices;
pub mod kill;
mod kind;
mod lab;
mod medium;
mod names;
mod op;
mod oracle;
mod path;
mod recording;
mod reduce;
mod run;
mod seed;
mod shrink;
mod threads;
mod trace_text;
mod trouble;
mod units;
mod workload;

use stream::random::SplitMix64;

pub use disk::{Files, SimDisk};
pub use fault::Fault;
pub use lab::{Failure, Lab, Outcome};
pub use medium::Medium;
pub use op::{NameOp, Op};
pub use path::AfterCrash;
pub use threads::replay_threads;
pub use trace_text::ThreadedFailure;
pub use trouble::{Refused, Trouble};
pub use workload::{Change, End, OnError, Setting, Step, WorkloadKind};

/// Random numbers from a seed: the same on every machine and in every version.
#[derive(Clone, Debug)]
pub struct Chance(SplitMix64);

impl Chance {
    /// The sequence of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64(seed))
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0.next_word()
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw() % limit.max(1)
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}
