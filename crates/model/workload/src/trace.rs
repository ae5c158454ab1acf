use serde::{Deserialize, Serialize};

/// Recorded I/Os, to be replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// In the order of their times.
    pub ios: Vec<TraceIo>,
}

impl Trace {
    /// Whether any of its I/Os changes what is stored.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.ios.iter().any(|io| io.kind == TraceKind::Write)
    }
}

/// One recorded I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceIo {
    /// When it was issued, nanoseconds since the first.
    pub at_ns: u64,
    /// Kind of I/O.
    pub kind: TraceKind,
    /// Where.
    pub offset_bytes: u64,
    /// Bytes; 0 for a sync.
    pub bytes: u32,
}

/// The operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceKind {
    /// Read.
    #[default]
    Read,
    /// Write.
    Write,
    /// Make durable what was written.
    Sync,
}
