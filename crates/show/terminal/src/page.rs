//! Writing a page: beside whatever is there, never over a file that is not a page of Headroom's.

use crate::failure::Failure;
use crate::output::Output;
use std::path::Path;

/// What every page of ours says of itself.
const MARK: &[u8] = b"<meta name=\"generator\" content=\"Headroom\">";

/// Finds out whether a page can be written there, before minutes are spent on what it shows.
pub fn check(path: Option<&Path>) -> Result<(), Failure> {
    path.map_or(Ok(()), |path| check_marked("page", path, MARK))
}

/// The same for any file of ours: one that is there must have the mark in it.
pub fn check_marked(what: &str, path: &Path, mark: &[u8]) -> Result<(), Failure> {
    let refused = |why: &dyn std::fmt::Display, remedy: &str| {
        Err(Failure::new(format_args!("cannot write the {what} {}: {why}", path.display()))
            .with_remedy(remedy))
    };
    let is_ours = |old: &[u8]| old.is_empty() || old.windows(mark.len()).any(|part| part == mark);
    let cannot = "name a file in a directory that this user may write to";
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            let kind = if found.is_dir() { "directory" } else { "pipe, socket or device" };
            refused(&format_args!("it is a {kind}"), "name a file")
        }
        Ok(_) => {
            // Opened as it will be, but nothing is cut off yet.
            let old = std::fs::OpenOptions::new().write(true).open(path).and_then(|_| std::fs::read(path));
            match old {
                Err(error) => refused(&error, cannot),
                Ok(old) if !is_ours(&old) => {
                    refused(&"the file is not one of Headroom's", "name another file")
                }
                Ok(_) => Ok(()),
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // Only making it tells for sure. An empty file, should we be killed here, passes for ours.
            let made = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
            match made.and_then(|_| std::fs::remove_file(path)) {
                Ok(()) => Ok(()),
                Err(error) => refused(&error, cannot),
            }
        }
        Err(error) => refused(&error, cannot),
    }
}

/// Writes it, if one was asked for.
pub fn write(path: Option<&Path>, page: impl FnOnce() -> String, out: &mut Output) -> Result<(), Failure> {
    check(path)?;
    let Some(path) = path else { return Ok(()) };
    std::fs::write(path, page())
        .map_err(|error| Failure::new(format_args!("cannot write the page {}: {error}", path.display())))?;
    out.tell(format_args!("wrote {}", path.display()));
    Ok(())
}

/// What was typed, for a page to tell how to get the same again.
pub fn command_line() -> String {
    let quoted =
        |word: String| match word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=,:%+@".contains(c)) {
            true if !word.is_empty() => word,
            _ => format!("'{}'", word.replace('\'', "'\\''")),
        };
    let words = std::env::args_os().skip(1).map(|word| quoted(word.to_string_lossy().into_owned()));
    std::iter::once("headroom".to_owned()).chain(words).collect::<Vec<String>>().join(" ")
}
