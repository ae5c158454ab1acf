//! The history file: the one that `--history` names, or the user's own.

use crate::Failure;
use history::History;
use std::path::{Path, PathBuf};

/// Path of the history.
///
/// # Errors
/// None is named, and the user has no home directory.
pub fn path(named: Option<&Path>) -> Result<PathBuf, history::Error> {
    named.map_or_else(History::default_path, |path| Ok(path.to_owned()))
}

/// Opens the history for reading.
///
/// # Errors
/// It does not exist or cannot be read.
pub fn open(named: Option<&Path>) -> Result<History, Failure> {
    Ok(History::open_kept(&path(named)?)?)
}

/// Opens the history for adding to it, and creates it where it does not exist.
///
/// # Errors
/// It cannot be written to, or is another user's.
pub fn open_to_write(named: Option<&Path>) -> Result<History, Failure> {
    Ok(History::open_to_add(&path(named)?)?)
}

/// Opens the history for changes.
///
/// # Errors
/// It does not exist, cannot be written to, or is another user's.
pub fn open_to_change(named: Option<&Path>) -> Result<History, Failure> {
    Ok(History::open_to_change(&path(named)?)?)
}

/// An instant as all of Headroom writes it: "2026-11-23 17:20:44 UTC".
pub fn format_time(unix_ns: u64) -> String {
    let time = jiff::Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or_default();
    time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_open_to_write_creates_a_history() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("history.db");
        assert!(open(Some(&file)).is_err() && open_to_change(Some(&file)).is_err());
        assert!(!file.exists());
        assert!(open_to_write(Some(&file)).is_ok());
        assert!(open(Some(&file)).is_ok() && open_to_change(Some(&file)).is_ok());
    }

    #[test]
    fn a_time_is_written_in_utc() {
        assert_eq!(format_time(1_763_917_244_000_000_000), "2025-11-23 17:00:44 UTC");
    }
}
