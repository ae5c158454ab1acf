use serde::{Deserialize, Serialize};

/// Something that happened to a database or its volume, drawn over time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// When, nanoseconds since 1970.
    pub at_unix_ns: u64,
    /// Subject of the mark.
    pub kind: MarkKind,
    /// One sentence.
    pub text: String,
}

/// Subjects of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    /// A limit was set, changed or lifted.
    Cap,
    /// The server restarted.
    Restart,
}
