//! Text that a person wrote into a file and names: workload files, definitions, lists of sources.

use crate::failure::Failure;
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use workload_file::FILE_BYTES_MAX;

/// The text of a `what`, which has the form that `form` says: ("workload file", "a TOML file as in docs/run.md").
///
/// # Errors
/// It cannot be read, is a directory, or longer than anybody writes such a file.
pub fn read(path: &Path, what: &str, form: &str) -> Result<String, Failure> {
    let refused = |why: &dyn Display| {
        Failure::new(format_args!("cannot read {}: {why}", path.display()))
            .with_remedy(format_args!("name {form}"))
    };
    let file = File::open(path).map_err(|error| refused(&error))?;
    let is_other = || refused(&format_args!("it is no {what}"));
    if file.metadata().map_err(|error| refused(&error))?.is_dir() {
        return Err(is_other());
    }
    let mut text = String::new();
    // Bounded while it is read: a pipe has no length.
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_string(&mut text).map_err(|error| refused(&error))?;
    if text.len() > FILE_BYTES_MAX { Err(is_other()) } else { Ok(text) }
}
