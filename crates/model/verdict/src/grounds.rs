//! What a row of the table finds.

use crate::Evidence;

/// The sentence, the numbers and the advice of a verdict.
pub(crate) struct Grounds {
    pub summary: String,
    pub evidence: Vec<Evidence>,
    pub next_step: String,
}
