//! Test matrices: every combination of the values of some axes is a point, every point is run once or
//! several times.
//!
//! ```text
//! Matrix (TOML or flags) ── points() ──> Planner ── forecast() ──> Forecast   runs and time, before anything runs
//!                                           │
//!            Progress (what is done) ───────┴── next() ──> Step::Run(RunKey) | Skip(.., why) | Finished
//!            RunResults of a point ── Row::from_results() ──> Summary   a row a point: figures and their interval
//! Matrix ── script::emit() ──> the same runs for diskspd or fio, where Headroom is not installed
//! ```
//!
//! The next run follows from the matrix and from the finished runs, from nothing else: a matrix that was killed
//! goes on as if it had not been. Seeds follow from the matrix's seed and the point's own values.
//!
//! With a time budget a coarse pass comes first: points as far from each other as they can be
//! ([`Planner::coarse`]). The rest goes, run by run, where it is least known how the storage does: between
//! points whose curve bends, and to points whose repeats disagree.
//!
//! This crate does no I/O and reads no clock: the caller runs, keeps the results, and says what time went by.

mod definition;
mod estimate;
mod planner;
mod points;
mod progress;
mod refine;
mod saturation;
mod schedule;
pub mod script;
mod spread;
mod summary;

pub use definition::{Axes, BlockBytes, Fixed, InvalidMatrix, Matrix};
pub use estimate::{Estimate, Interval, Method};
pub use planner::{Forecast, Planner, RUN_OVERHEAD, Step};
pub use points::{Point, RunKey};
pub use progress::{Figures, Progress, RunState};
pub use schedule::{Order, RunSchedule, Time};
pub use summary::{Row, RunFigures, Summary};
