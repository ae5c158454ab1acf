//! Users besides this one who can change a history, and how root treats such a history.
//!
//! ```text
//! reading      everybody who may; of another user as the file is, without its WAL and its journal
//! adding       its owner. Root also adds to a history of the service's user, where no third user can change its directory
//! changing     its owner
//! marks        count where only its owner, who is this user, can have written them
//! ```
//!
//! A mark lets load overwrite a file: with one of another user, root would overwrite a file of root. `sudo` may keep the `HOME`
//! of the user, and with it the default history.

use crate::paths::{beside, real_path};
use crate::{Error, History};
use rustix::process::geteuid;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// The user of headroom-agent.service.
const SERVICE: &str = "headroom";
/// Write permission of the group and of others.
const OTHERS_WRITE: u32 = 0o022;
/// Files that SQLite keeps beside a database.
const SIDECARS: [&str; 3] = ["-wal", "-journal", "-shm"];
const STICKY: u32 = 0o1000;
/// Links on a path that are followed, as many as the kernel does.
const LINKS_MAX: u32 = 40;

impl History {
    /// Opens the history to add to it, or makes one where there is no file.
    ///
    /// # Errors
    /// [`Error::OfAnotherUser`], with nothing touched; [`Error::NotWritable`]; those of [`open`](Self::open).
    pub fn open_to_add(path: &Path) -> Result<History, Error> {
        History::check_may_add(path)?;
        let history = History::open(path)?;
        // One that was made on a file system which gives every file to the same user.
        History::check_may_add(path)?;
        history.check_writable()?;
        Ok(history)
    }

    /// Opens a history that is there for changes.
    ///
    /// # Errors
    /// [`Error::OfAnotherUser`], with nothing touched; [`Error::NotWritable`]; those of [`open_kept`](Self::open_kept).
    pub fn open_to_change(path: &Path) -> Result<History, Error> {
        refuse_owner(path, &[geteuid().as_raw()])?;
        let history = History::open_kept(path)?;
        history.check_writable()?;
        Ok(history)
    }

    /// Refuses a history of another user, to which this one does not add.
    ///
    /// # Errors
    /// [`Error::OfAnotherUser`].
    pub fn check_may_add(path: &Path) -> Result<(), Error> {
        let service = host::user_id(SERVICE).filter(|user| {
            let may_change = |found: &Metadata| found.uid() == 0 || found.uid() == *user;
            geteuid().is_root() && is_private_place(path, may_change)
        });
        let own = geteuid().as_raw();
        refuse_owner(path, &[own, service.unwrap_or(own)])
    }

    /// Whether only this user, and root, can have written its contents.
    pub fn is_of_this_user_alone(&self) -> bool {
        let user = geteuid().as_raw();
        let is_own = |found: &Metadata| found.uid() == user && found.mode() & OTHERS_WRITE == 0;
        let Ok(real) = fs::canonicalize(self.path()) else { return false };
        // SQLite reads the WAL and the journal into the file.
        ["", "-wal", "-journal"].iter().all(|suffix| match fs::symlink_metadata(beside(&real, suffix)) {
            Ok(found) => is_own(&found),
            Err(error) => error.kind() == ErrorKind::NotFound && !suffix.is_empty(),
        }) && is_private_place(self.path(), |found| found.uid() == 0 || found.uid() == user)
    }
}

/// Refuses a history beside which other users can put files: SQLite copies a WAL into the file, rolls a journal back and removes the
/// files that it names, and maps the WAL index.
pub(crate) fn check_place(path: &Path) -> Result<(), Error> {
    let real = real_path(path);
    let refused = |why: String| Err(Error::OpenPlace { path: path.into(), why });
    let directory = real.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_open = |found: Metadata| host::others_may_write(directory, found.uid(), found.gid(), found.mode());
    if fs::metadata(directory).is_ok_and(is_open) {
        return refused(format!("users other than its owner can put files into {}", directory.display()));
    }
    let owner = fs::metadata(&real).map_or(geteuid().as_raw(), |found| found.uid());
    for suffix in SIDECARS {
        let file = beside(&real, suffix);
        let found = fs::symlink_metadata(&file).ok();
        if found.is_some_and(|found| ![owner, geteuid().as_raw(), 0].contains(&found.uid())) {
            return refused(format!("{} belongs to another user", file.display()));
        }
    }
    Ok(())
}

/// Whether SQLite may do for this history what its owner decides: that is this user, or the service's user where root adds to its
/// history. For root, what another user's journal names would be removed with the rights of root.
pub(crate) fn is_trusted(path: &Path) -> bool {
    History::check_may_add(path).is_ok()
}

fn refuse_owner(path: &Path, permitted: &[u32]) -> Result<(), Error> {
    match fs::metadata(path) {
        Ok(found) if !permitted.contains(&found.uid()) => {
            let name = |user: u32| host::name_of_user(user).unwrap_or_else(|| format!("number {user}"));
            let (owner, user) = (name(found.uid()), name(geteuid().as_raw()));
            Err(Error::OfAnotherUser { path: path.into(), owner, user })
        }
        // That it is not there, or cannot be looked at, is reported when it is opened.
        _ => Ok(()),
    }
}

/// Whether only the owners that `is_trusted` accepts can lead the path elsewhere, by any of its directories and links, or put
/// files beside the file. `false` where there is no file.
fn is_private_place(path: &Path, is_trusted: impl Fn(&Metadata) -> bool) -> bool {
    let Ok(path) = std::path::absolute(path) else { return false };
    let (mut place, mut links, mut left) = (PathBuf::from("/"), 0, path);
    let mut directory = fs::symlink_metadata(&place);
    // Each step takes a component off `left`, or follows one of at most LINKS_MAX links.
    loop {
        let Some(found) = directory.as_ref().ok().filter(|found| is_trusted(found)) else { return false };
        let is_closed = found.mode() & OTHERS_WRITE == 0;
        // Others add files to a sticky directory, but rename only their own.
        if !is_closed && found.mode() & STICKY == 0 {
            return false;
        }
        let mut components = left.components();
        match components.next() {
            Some(Component::RootDir) => place = PathBuf::from("/"),
            // No component of `place` is a link.
            Some(Component::ParentDir) => drop(place.pop()),
            Some(Component::Normal(name)) => {
                let next = place.join(name);
                let Ok(found) = fs::symlink_metadata(&next) else { return false };
                if found.is_symlink() {
                    let Ok(target) = fs::read_link(&next) else { return false };
                    links += 1;
                    if links > LINKS_MAX || !is_trusted(&found) {
                        return false;
                    }
                    left = target.join(components.as_path());
                    continue;
                }
                if !found.is_dir() {
                    return components.next().is_none() && is_closed;
                }
                place = next;
            }
            Some(Component::CurDir | Component::Prefix(_)) => {}
            None => return false,
        }
        left = components.as_path().to_owned();
        directory = fs::symlink_metadata(&place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    /// A user that owns nothing here.
    const STRANGER: u32 = 65_534;

    fn with_a_mark(path: &Path) -> PathBuf {
        let mut history = History::open_to_add(path).unwrap();
        let file = PathBuf::from("/data/scratch.dat");
        history.record_test_file(&file, 4096, Some("a mark")).unwrap();
        file
    }

    fn mark(history: &Path, file: &Path) -> Option<String> {
        History::open_kept(history).ok()?.mark_of(file).unwrap()
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_mark_counts_only_in_a_history_that_nobody_else_can_change() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("below");
        fs::create_dir(&below).unwrap();
        set_mode(&below, 0o700);
        let path = below.join("history.db");
        let file = with_a_mark(&path);
        assert_eq!(mark(&path, &file).as_deref(), Some("a mark"));
        for (place, mode, usual) in
            [(&path, 0o660, 0o600), (&path, 0o602, 0o600), (&below, 0o770, 0o700), (&below, 0o1777, 0o700)]
        {
            set_mode(place, mode);
            assert_eq!(mark(&path, &file), None, "{} with {mode:o}", place.display());
            set_mode(place, usual);
        }
        assert_eq!(mark(&path, &file).as_deref(), Some("a mark"));
        if !geteuid().is_root() {
            return eprintln!("skipped: other owners need root");
        }
        for place in [&path, &below, &dir.path().to_owned()] {
            chown(place, Some(STRANGER), None).unwrap();
            assert_eq!(mark(&path, &file), None, "{} of another user", place.display());
            chown(place, Some(0), None).unwrap();
        }
        let wal = beside(&path, "-wal");
        let history = History::open(&path).unwrap();
        history.connection.execute_batch("CREATE TABLE t (x)").unwrap();
        chown(&wal, Some(STRANGER), None).unwrap();
        assert_eq!(history.mark_of(&file).unwrap(), None, "its WAL is of another user");
    }

    #[test]
    fn a_history_of_another_user_is_read_and_not_written() {
        if !geteuid().is_root() {
            return eprintln!("skipped: needs root");
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.db");
        with_a_mark(&path);
        chown(&path, Some(STRANGER), None).unwrap();
        let before = fs::read(&path).unwrap();
        for opened in [History::open_to_add(&path), History::open_to_change(&path)] {
            let Err(error) = opened else { panic!("it is written to") };
            assert!(matches!(&error, Error::OfAnotherUser { user, .. } if user == "root"), "{error}");
            assert!(error.remedy().unwrap().contains("--history"));
        }
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing was put beside it");
        assert_eq!(History::open_kept(&path).unwrap().test_files().unwrap().len(), 1);
    }

    #[test]
    fn a_place_is_private_up_to_the_root() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b/history.db");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        let middle = dir.path().join("a");
        let user = geteuid().as_raw();
        let private = || is_private_place(&path, |found| found.uid() == 0 || found.uid() == user);
        for (mode, expected) in [(0o755, true), (0o775, false), (0o1777, true), (0o700, true)] {
            set_mode(&middle, mode);
            assert_eq!(private(), expected, "{mode:o}");
        }
        assert!(!is_private_place(&path, |found| found.uid() == user + 1));
        // A link is as good as the directory that it is in.
        let open = dir.path().join("open");
        fs::create_dir(&open).unwrap();
        let trusted = |path: &Path| is_private_place(path, |found| found.uid() == 0 || found.uid() == user);
        for target in [middle.clone(), PathBuf::from("../a")] {
            let link = open.join("link");
            let through = link.join("b/../b/history.db");
            symlink(&target, &link).unwrap();
            assert!(trusted(&through), "{}", target.display());
            set_mode(&open, 0o777);
            assert!(!trusted(&through), "another user may replace the link");
            set_mode(&open, 0o755);
            fs::remove_file(&link).unwrap();
        }
        symlink("circle", open.join("circle")).unwrap();
        assert!(!trusted(&open.join("circle")) && !trusted(&open.join("none")) && !trusted(&open));
    }
}
