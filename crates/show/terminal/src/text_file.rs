//! Text files that a user names: workload files, definitions, lists of sources.

use crate::Failure;
use std::fmt::Display;
use std::io::{ErrorKind, Read};
use std::path::Path;
use workload_file::FILE_BYTES_MAX;

/// Reads a file. `what` and `form` describe it in errors: "workload file", "a file with a source a line".
///
/// # Errors
/// It cannot be read, is neither a regular file nor a pipe of this process, or is longer than [`FILE_BYTES_MAX`].
pub fn read(path: &Path, what: &str, form: &str) -> Result<String, Failure> {
    let refused = |why: &dyn Display| {
        Failure::new(format_args!("cannot read {}: {why}", path.display()))
            .with_remedy(format_args!("name {form}"))
    };
    let is_other = || refused(&format_args!("it is not a {what}"));
    let file = host::open_regular_file(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => refused(&format_args!("it is not a {what}: {error}")),
        _ => refused(&error),
    })?;
    let mut text = String::new();
    // The length is checked while reading: a pipe has no length.
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_string(&mut text).map_err(|error| refused(&error))?;
    if text.len() > FILE_BYTES_MAX { Err(is_other()) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_devices_pipes_and_long_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("w.toml");
        std::fs::write(&file, "block = 4096").unwrap();
        let read =
            |path: &Path| read(path, "workload file", "a TOML file").map_err(|error| error.to_string());
        assert_eq!(read(&file).unwrap(), "block = 4096");
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [dir.path(), Path::new("/dev/zero"), &pipe] {
            let error = read(path).unwrap_err();
            assert!(error.contains(", not a regular file (try: name a TOML file)"), "{error}");
        }
        std::fs::write(&file, " ".repeat(FILE_BYTES_MAX + 1)).unwrap();
        let error = read(&file).unwrap_err();
        assert!(error.contains("it is not a workload file (try: name a TOML file)"), "{error}");
    }
}
