//! Additions of a pushed request to the figures, and the series that are remembered of it.

use crate::Identity;
use std::collections::BTreeSet;
use std::fmt;

/// The fields of a pushed request beside the figures.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// The time of the figures, nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// The sender: two hosts that push to one server are two instances.
    pub identity: Identity,
}

/// The series of the last remote-write request.
#[derive(Clone, Debug, Default)]
pub struct SentSeries {
    /// By their labels.
    pub(crate) series: BTreeSet<Vec<(String, String)>>,
    /// When it was made; 0: there was none.
    pub(crate) at_unix_ns: u64,
}

/// Why a push was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dropped {
    /// The server was unreachable until the queue was full.
    QueueFull,
    /// The server rejected it.
    Refused,
}

/// A word: it is the value of a label.
impl fmt::Display for Dropped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dropped::QueueFull => "queue-full",
            Dropped::Refused => "refused",
        })
    }
}
