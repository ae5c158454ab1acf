//! Verdicts over time become incidents: one for one cause, with its beginning, its end and its evidence.
//!
//! ```text
//! Judgement ─> Tracker::judged()            one tracker for each volume x database
//!
//!            bad                 bad held for open_after
//!  Quiet ──────────> Pending ─────────────────────────────> Open ──> Changed (another kind held longer)
//!    ^                  │ fine or unknown for 10 s            │
//!    ├──────────────────┘                                     │ fine for close_after, or nothing known for an hour
//!    └────────────────────────────────────────────────────────┘ Closed
//! ```
//!
//! A stretch without judgements, or one in which the wall clock and the monotonic clock disagree (a suspended machine, a clock
//! that was set), is a gap: it counts neither as bad nor as fine. A burst that comes again is the same incident with one more
//! occurrence. [`Causes`] joins the incidents of databases on one volume or device.
//!
//! Pure: no clock is read, nothing is written, every rule is tested with plain values.

mod causes;
mod incident;
mod mark;
mod recurrence;
mod standing;
mod tracker;

pub use causes::Causes;
pub use incident::{BusyFile, BusyProcess, Detail, Ending, Held, Incident, LongWait, Readings};
pub use mark::{Mark, MarkKind};
pub use recurrence::{Recurrence, STARTS_MAX};
pub use standing::{Standing, Verdicts};
pub use tracker::{Event, Judgement, Tracker};

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Subject of a judgement: a database on a volume.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Subject {
    /// Where the volume is mounted.
    pub mount: String,
    /// The database: its source, without credentials.
    pub database: String,
}

/// When an incident is opened and closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A bad verdict that held for this time opens one.
    pub open_after: Duration,
    /// One that did not hold for this time closes it.
    pub close_after: Duration,
    /// A longer time between two judgements is a gap.
    pub gap_after: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            open_after: Duration::from_secs(30),
            close_after: Duration::from_secs(60),
            // Three judgements at the default interval.
            gap_after: Duration::from_secs(15),
        }
    }
}

/// An instant on both clocks of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clocks {
    /// Nanoseconds since 1970. It may be set.
    pub unix_ns: u64,
    /// Nanoseconds of a clock that is never set and stands still while the machine is suspended.
    pub monotonic_ns: u64,
}

/// Clocks that differ by more than this did not both measure the time between two instants: one was set, or stood still.
const CLOCKS_DIFFER_NS: u64 = 5_000_000_000;

impl Clocks {
    /// Nanoseconds since an earlier instant; `None` where the clocks disagree.
    pub fn since(&self, earlier: &Clocks) -> Option<u64> {
        let by_monotonic = self.monotonic_ns.checked_sub(earlier.monotonic_ns)?;
        let by_wall = self.unix_ns.checked_sub(earlier.unix_ns)?;
        (by_wall.abs_diff(by_monotonic) <= CLOCKS_DIFFER_NS).then_some(by_monotonic)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.database, self.mount)
    }
}
