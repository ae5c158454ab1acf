//! What experiments with engines gave, and what it means: pure.
//!
//! ```text
//! two snapshots of a source ─ intervals ─> IoFigures (log, data)  ┐
//! rows, commits, seconds                                          ┴> CommitResult ─> CommitStudy::sentences()
//! steps done, the step that runs, steps to come ─────────────────> Pace::left_s()
//! a crashed engine opened again, its I/Os ──────────────────────> RecoverResult ─> RecoverStudy::sentences()
//! what a query moved at each level ──────────────────────────────> Footprint::sentence()
//! ```
//!
//! `lab` does the experiments, `report` shows these values. A figure that was not counted stays unknown here too.

mod commit;
mod footprint;
mod io;
mod pace;
mod recover;

pub use commit::{CommitResult, CommitStudy, Durability};
pub use footprint::{Footprint, ObjectFootprint};
pub use io::IoFigures;
pub use pace::{Pace, Step};
pub use recover::{EmulatedDisk, LeftOut, PAGES_A_COMMIT, RecoverResult, RecoverStudy, RecoveryIo};

use workload::format_count;

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", format_count(count), if count == 1 { one } else { many })
}
