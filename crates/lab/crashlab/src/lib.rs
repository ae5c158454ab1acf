//! A simulated disk that loses, tears and misplaces, and the crash laboratory that runs the engine on it.
//!
//! ```text
//! SimDisk    the engine's files in memory; keeps the order of all writes and syncs; fails where it is told to
//! Medium     what of that order is surely there; makes the images that a crash at any point may leave
//! Lab        from a seed: a workload, a crash at every write and sync, recovery, the oracle, and again from there;
//!            and workloads for what drawn steps seldom meet: snapshots driven out of memory, a log that goes round,
//!            callers who go on after errors or panic (kind.rs)
//!            workload.rs the steps, run.rs and caller.rs doing them, crashes.rs where they are crashed, cuts.rs and
//!            indices.rs what is damaged then, oracle.rs what must hold, way.rs a failure after several crashes again,
//!            with less
//! ```

mod caller;
mod crashes;
mod cuts;
mod disk;
mod indices;
pub mod kill;
mod kind;
mod lab;
mod oracle;
mod run;
mod shrink;
mod trouble;
mod workload;

pub use disk::{Fault, Files, Medium, Op, SimDisk};
pub use kind::Kind;
pub use lab::{Failure, Lab, Outcome};
pub use shrink::Then;
pub use trouble::{Refused, Trouble};
pub use workload::{Change, End, OnError, Setting, Step};

/// Random numbers from a seed (SplitMix64, Steele et al. 2014): the same on every machine and in every version.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The sequence of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
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
