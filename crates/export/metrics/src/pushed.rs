//! What is pushed to other servers, and the fields that a request adds.

use crate::Identity;
use std::collections::BTreeSet;
use std::fmt;

/// What can be pushed to a server.
pub trait Pushed: Clone + Send + 'static {
    /// All of it as a WriteRequest of Prometheus remote-write 1.0, before its compression: the series of `/metrics` with the
    /// labels `job` and `instance`. Series that were sent before and are absent now are marked as ended.
    fn remote_write(&self, stamp: &Stamp, sent: &mut SentSeries) -> Vec<u8>;

    /// All of it as an ExportMetricsServiceRequest of OTLP.
    fn otlp(&self, stamp: &Stamp) -> Vec<u8>;

    /// Adds lost pushes to a server; 0 makes the series visible.
    fn push_dropped(&mut self, to: &str, reason: Dropped, count: u64);
}

/// The fields of a pushed request beside the figures.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// When all totals were zero, nanoseconds since 1970; 0: unknown.
    pub since_unix_ns: u64,
    /// The time of the figures, nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// Whose they are: two hosts that push to one server are two instances.
    pub identity: Identity,
}

/// The series of the last remote-write request, by their labels.
#[derive(Clone, Debug, Default)]
pub struct SentSeries(pub(crate) BTreeSet<Vec<(String, String)>>);

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
