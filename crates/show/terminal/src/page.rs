//! HTML pages: an existing file is replaced only if it is a page of Headroom's.

use crate::{Failure, Output};
use std::path::Path;

/// Every SVG picture of Headroom's contains it.
pub const SVG_MARK: &[u8] = b"urn:headroom:chart";

/// Every page of Headroom's contains it.
const MARK: &[u8] = b"<meta name=\"generator\" content=\"Headroom\">";

/// Checks that a page can be written there, before minutes are spent on measuring what it shows.
///
/// # Errors
/// It cannot be written, or the file that exists is not a page of Headroom's.
pub fn check(path: Option<&Path>) -> Result<(), Failure> {
    path.map_or(Ok(()), |path| check_marked("page", path, MARK))
}

/// Checks that a file can be written there. An existing one must be empty or contain `mark`.
///
/// # Errors
/// It cannot be written, or the file that exists has no such mark.
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
            // Opened for writing as it will be later, but without truncation.
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
            // Only creating it proves that it can be created. If this process is killed here, the empty file passes the
            // check of the next one.
            let created = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
            match created.and_then(|_| std::fs::remove_file(path)) {
                Ok(()) => Ok(()),
                Err(error) => refused(&error, cannot),
            }
        }
        Err(error) => refused(&error, cannot),
    }
}

/// Writes the page, if a path is given.
///
/// # Errors
/// As for [`check`].
pub fn write(path: Option<&Path>, page: impl FnOnce() -> String, out: &mut Output) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    write_marked("page", path, MARK, page().as_bytes())?;
    out.note(format_args!("wrote {}", path.display()));
    Ok(())
}

/// Writes a file with a mark.
///
/// # Errors
/// As for [`check_marked`].
pub fn write_marked(what: &str, path: &Path, mark: &[u8], content: &[u8]) -> Result<(), Failure> {
    check_marked(what, path, mark)?;
    std::fs::write(path, content)
        .map_err(|error| Failure::new(format_args!("cannot write the {what} {}: {error}", path.display())))
}

/// The command line, quoted for a shell: a page names the command that made it.
pub fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| quote(&word.to_string_lossy()));
    std::iter::once("headroom".to_owned()).chain(words).collect::<Vec<String>>().join(" ")
}

fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:%+@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        let words = ["--size=1G", "", "a b", "it's"].map(quote);
        assert_eq!(words, ["--size=1G", "''", "'a b'", "'it'\\''s'"]);
    }

    #[test]
    fn a_file_that_is_no_page_of_ours_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let [page, letter] = ["page.html", "letter.html"].map(|name| dir.path().join(name));
        let html = || String::from_utf8(MARK.to_vec()).unwrap();
        let mut out = Output::new(false);
        std::fs::write(&letter, "dear reader").unwrap();
        assert!(write(Some(&letter), html, &mut out).is_err() && check(Some(dir.path())).is_err());
        assert_eq!(std::fs::read_to_string(&letter).unwrap(), "dear reader");
        for _ in 0..2 {
            write(Some(&page), html, &mut out).unwrap();
        }
        assert_eq!(std::fs::read(&page).unwrap(), MARK);
    }

    #[test]
    fn a_check_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        check(Some(&dir.path().join("page.html"))).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(check(Some(&dir.path().join("none/page.html"))).is_err());
    }
}
