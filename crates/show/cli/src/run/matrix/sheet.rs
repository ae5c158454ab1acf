//! Writing the CSV: never over a file that is not one of ours.

use report::csv::MATRIX_HEADING;
use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;
use terminal::{Failure, Output};

/// Finds out whether it can be written there, before hours are spent on what it shows.
pub fn check(path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let refused = |why: &dyn std::fmt::Display| {
        Err(Failure::new(format_args!("cannot write the CSV {}: {why}", path.display()))
            .with_remedy("name a new file in a directory that this user may write to"))
    };
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => refused(&"it is no file"),
        Ok(_) => match OpenOptions::new().write(true).open(path).and_then(|_| fs::read(path)) {
            Err(error) => refused(&error),
            Ok(old) if !old.is_empty() && !old.starts_with(MATRIX_HEADING.as_bytes()) => {
                refused(&"the file is not one of Headroom's")
            }
            Ok(_) => Ok(()),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // Only making it shows that for certain. An empty file, should we be killed here, passes for ours.
            let made = OpenOptions::new().write(true).create_new(true).open(path);
            match made.and_then(|_| fs::remove_file(path)) {
                Ok(()) => Ok(()),
                Err(error) => refused(&error),
            }
        }
        Err(error) => refused(&error),
    }
}

/// Writes it, if one was requested.
pub fn write(path: Option<&Path>, text: impl FnOnce() -> String, out: &mut Output) -> Result<(), Failure> {
    check(path)?;
    let Some(path) = path else { return Ok(()) };
    fs::write(path, text())
        .map_err(|error| Failure::new(format_args!("cannot write the CSV {}: {error}", path.display())))?;
    out.note(format_args!("wrote {}", path.display()));
    Ok(())
}
