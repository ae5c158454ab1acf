//! Files of lines that may hold passwords.

use std::path::Path;

/// The lines of a file with their numbers, without comments and empty ones.
pub fn entries(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Whether users other than the owner may read a file.
pub fn others_can_read(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !host::is_private(path, &found))
}
