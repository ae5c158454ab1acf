//! Results of experiments with engines, and what they mean in sentences. Pure.
//!
//! ```text
//! two snapshots of a source ─ intervals ─> IoFigures (log, data)  ┐
//! rows, commits, seconds                                          ┴> CommitResult ─> CommitStudy::sentences()
//! steps done, running and to come ───────────────────────────────> Pace::left_s()
//! a crashed engine opened again, its I/Os ───────────────────────> RecoverResult ─> RecoverStudy::sentences()
//! what a query moved at each level ──────────────────────────────> Footprint::sentence()
//! ```
//!
//! `lab` does the experiments, `report` renders these values. A figure that was not counted stays unknown.

mod commit;
mod footprint;
mod io;
mod pace;
mod recover;
mod strategy;

pub use commit::{CommitResult, CommitStudy, Durability};
pub use footprint::{Footprint, ObjectFootprint};
pub use io::{IoFigures, RecoveryIo};
pub use pace::{Pace, Step};
pub use recover::{EmulatedDisk, LeftOut, PAGES_A_COMMIT, RecoverResult, RecoverStudy};
pub use strategy::Strategy;

use workload::format_count;

/// A factor: whole from ten on.
fn rounded(times: f64) -> String {
    if times >= 9.95 { format_count(times.round() as u64) } else { format!("{times:.1}") }
}

fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", format_count(count), if count == 1 { one } else { many })
}
