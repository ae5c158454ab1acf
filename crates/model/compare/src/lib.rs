//! Whether B is faster or slower than A, beyond noise: two runs, two groups of repeats, interleaved pairs, two
//! capabilities, or a result against a stated figure.
//!
//! ```text
//! one run each    slices ── batch means, shares up to a percentile ──┐
//! repeats         a figure of each run ── Student's t on logarithms ─┼─> Evidence: interval, p
//! capabilities    intervals of the points ───────────────────────────┘        │ Holm, margin
//!                                        Comparison { rows, verdict, more needed, summary }
//! ```
//!
//! Main path: [`runs`], [`pairs`], [`capabilities`] or [`stated`] give a [`Comparison`]; [`InterimSchedule`] says when a
//! series of pairs may be analysed, and how strictly.
//!
//! Design. Ratios are compared by their logarithms. The I/Os of one run resemble their neighbours, so that
//! their number says nothing about how sure a figure is: batches of slices do (`batch_means`, `single_run`). Repeats are
//! independent, each run one value (`evidence`), and a test by ranks alone must not contradict. The answer
//! rests on headline figures chosen beforehand, IOPS and the p99 of reads and of writes; Holm's correction
//! holds the chance of any false alarm among them at 5 %. The other figures, corrected as a family of their own,
//! describe. A difference whose interval lies within the margin is "no difference that matters"; what
//! the data do not decide is "cannot tell", with what would decide it.
//!
//! It does no I/O, draws no random numbers, and without an interval gives no verdict.

mod batch_means;
mod comparable;
mod comparison;
mod curves;
mod evidence;
mod figure;
mod interim;
mod rank_tests;
mod runs;
mod single_run;
mod stated;
mod words;

pub use comparison::{Comparison, Difference, Method, Mismatch, Row, Rules, Side, Verdict};
pub use curves::{capabilities, stated_capability};
pub use evidence::More;
pub use figure::{Figure, FigureUnit, Measure, Operations};
pub use interim::InterimSchedule;
pub use runs::{pairs, runs, stated};
pub use stated::{BadStated, Stated};
pub use words::{interval as interval_in_words, more_short};

/// Most repeats on one side.
pub const RUNS_MAX: usize = 50;
