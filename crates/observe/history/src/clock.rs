//! Dates of a clock that was wrong. An entry kept while a clock was ahead is dated in the future once it is right again; it
//! must not hide later entries.

use host::unix_ns;

/// A date this much later than now comes from a wrong clock. A minute is dated by its end, and the clocks of processors
/// differ.
const AHEAD_MAX_NS: u64 = 5 * 60 * 1_000_000_000;

/// The latest date that a row may have whose clock was right.
pub(crate) fn latest_unix_ns() -> u64 {
    unix_ns().saturating_add(AHEAD_MAX_NS)
}
