//! Moves a damaged history aside, for an agent that must go on.

use crate::file_state::{check_owner, check_whole};
use crate::paths::beside;
use crate::{Error, History};
use rusqlite::ErrorCode;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// A history that was damaged, and where it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedAside {
    /// Its new name.
    pub to: PathBuf,
    /// The defect of the file.
    pub why: String,
}

/// Damaged histories that may lie beside one another, each with its number.
const NAMES_MAX: u32 = 1_000;

impl History {
    /// Opens the history as [`open`](Self::open) does, after SQLite's `quick_check` of the whole file. A history of Headroom that is
    /// damaged is renamed to `PATH.damaged-N`, with its WAL, and a new one begins. Nothing of it is deleted.
    ///
    /// # Errors
    /// Those of [`open`](Self::open); [`Error::Io`] where the damaged file cannot be renamed.
    pub fn open_or_begin_again(path: &Path) -> Result<(History, Option<MovedAside>), Error> {
        match open_checked(path) {
            Ok(history) => Ok((history, None)),
            Err(error) if is_damaged(&error) && check_owner(path).is_ok() => {
                let to = move_aside(path)?;
                let why = error.to_string();
                Ok((History::open(path)?, Some(MovedAside { to, why })))
            }
            Err(error) => Err(error),
        }
    }
}

fn open_checked(path: &Path) -> Result<History, Error> {
    let history = History::open(path)?;
    history.execute("check the file", check_whole)?;
    Ok(history)
}

fn is_damaged(error: &Error) -> bool {
    let Error::Sqlite { source, .. } = error else { return false };
    matches!(source.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Renames the file and the files that SQLite has put beside it. The shared memory of the WAL holds nothing that is not in
/// the WAL.
fn move_aside(path: &Path) -> Result<PathBuf, Error> {
    let rename = |from: &Path, to: &Path| renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE);
    for number in 1..=NAMES_MAX {
        let to = beside(path, &format!(".damaged-{number}"));
        match rename(path, &to) {
            Ok(()) => {
                for suffix in ["-wal", "-journal", "-shm"] {
                    match rename(&beside(path, suffix), &beside(&to, suffix)) {
                        Ok(()) | Err(Errno::NOENT) => {}
                        Err(errno) => return Err(Error::io("move aside the damaged", path, errno.into())),
                    }
                }
                return Ok(to);
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(Error::io("move aside the damaged", path, errno.into())),
        }
    }
    Err(Error::io("move aside the damaged", path, Errno::EXIST.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::tempdir;

    fn with_a_row(path: &Path) {
        let mut history = History::open(path).unwrap();
        history.record_test_file(Path::new("/data/headroom.test"), 4096, None).unwrap();
    }

    #[test]
    fn a_damaged_history_is_moved_aside_unchanged_and_a_new_one_begins() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("history.db");
        for number in 1..=2 {
            with_a_row(&path);
            let mut content = fs::read(&path).unwrap();
            // Everything but the first page, which says whose file it is.
            content[4096..].fill(0x5a);
            fs::write(&path, &content).unwrap();
            let (history, aside) = History::open_or_begin_again(&path).unwrap();
            let aside = aside.unwrap();
            assert_eq!(aside.to, dir.path().join(format!("history.db.damaged-{number}")));
            assert_eq!(fs::read(&aside.to).unwrap(), content);
            assert!(history.test_files().unwrap().is_empty(), "{}", aside.why);
        }
    }

    #[test]
    fn a_whole_history_stays() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("history.db");
        with_a_row(&path);
        let (history, aside) = History::open_or_begin_again(&path).unwrap();
        assert_eq!((history.test_files().unwrap().len(), aside), (1, None));
    }

    #[test]
    fn a_file_of_another_program_stays_where_it_is() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("notes.txt");
        fs::write(&path, "long ".repeat(1_000)).unwrap();
        assert!(matches!(History::open_or_begin_again(&path), Err(Error::NotADatabase { .. })));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
