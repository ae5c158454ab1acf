use crate::values::Wrong;
use workload::InvalidWorkload;

/// Error in a workload file, and where: `line 7, writes: '130%' is not a share`. Its remedy is
/// [`remedy`](Self::remedy).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, {key}: {reason}")]
pub struct FileError {
    /// The first is 1.
    pub line: usize,
    /// The key or table.
    pub key: String,
    /// Why it cannot stand so.
    pub reason: String,
    /// The text to write instead.
    pub remedy: String,
}

impl FileError {
    pub(crate) fn new(line: usize, key: impl Into<String>, wrong: Wrong) -> FileError {
        FileError { line, key: key.into(), reason: wrong.reason, remedy: wrong.remedy }
    }
}

impl From<InvalidWorkload> for Wrong {
    fn from(invalid: InvalidWorkload) -> Wrong {
        let text = invalid.to_string();
        let (reason, remedy) = text.split_once(": ").unwrap_or((&text, "change it"));
        Wrong::new(reason, remedy)
    }
}
