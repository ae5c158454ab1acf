//! The mark of a lasting file: whether anything but Headroom has changed it since.

use rustix::fs::{Timespec, Timestamps, UTIME_OMIT, XattrFlags};
use rustix::io::Errno;
use std::fmt;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::str::FromStr;
use std::time::Duration;

/// Content of the mark.
///
/// ```text
/// extended attribute user.headroom of the file (or a line in the history, where it takes none):
///     "version=2 inode=4711 bytes=4294967296 state=whole written=1762000000123456789 changed=1762000000140000000"
///
/// written       the mtime at the end of the last load
/// changed       the ctime just before the mark was written. The writing of an attribute is a change itself, so that the ctime
///               of an unchanged file is at most MARKING_NS_MAX later. The marking lasts longer than that: no later change
///               has a ctime in between.
/// ```
///
/// A program can set the mtime, but not the ctime: the kernel sets it whenever content, size, times, name, owner or rights
/// change. So the file that was written to and whose time was set back, or that a backup was restored into, does not match its
/// mark; one that was only renamed does not either, since the two cannot be distinguished. A clock that root sets to the very
/// moment of the marking deceives it.
///
/// A mark of version 1 has no `changed`, and a file system may have no ctime of its own (FAT): such a mark proves nothing, and
/// the file is not overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub inode: u64,
    pub bytes: u64,
    pub state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Being written for the first time.
    Making,
    /// Load runs on it.
    Loaded,
    /// Written in full. The times are those of the last write and of the last change.
    Whole { written_unix_ns: i128, changed_unix_ns: i128 },
    /// Written in full, but a later change would not be noticed.
    Unproven,
}

/// The comparison of a file with its mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Unchanged,
    Changed,
    Unproven,
}

const ATTRIBUTE: &str = "user.headroom";
/// A longer attribute is not a mark.
const MARK_BYTES_MAX: usize = 256;
/// Most time between `changed` and the ctime that the writing of the attribute leaves.
const MARKING_NS_MAX: i128 = 50_000_000;
/// Longer than that time and than a tick of the kernel's clock (10 ms at most), by which it sets a ctime.
const MARKING: Duration = Duration::from_millis(65);
const SECOND_NS: i128 = 1_000_000_000;
/// Longer than the ticks of the kernel's clock and of a file system that keeps whole seconds.
const SECOND_STEP: Duration = Duration::from_millis(1_020);
/// Attempts to mark a file while the machine is too busy to write an attribute in time.
const MARKING_TRIES_MAX: usize = 8;

impl Mark {
    /// Compares the file with the mark.
    pub fn compare(&self, metadata: &Metadata) -> Change {
        let State::Whole { written_unix_ns, changed_unix_ns } = self.state else { return Change::Unproven };
        let is_same = metadata.ino() == self.inode
            && metadata.len() == self.bytes
            && written(metadata) == written_unix_ns
            && (changed_unix_ns..=changed_unix_ns + MARKING_NS_MAX).contains(&changed(metadata));
        if is_same { Change::Unchanged } else { Change::Changed }
    }

    pub fn read_from(file: &File) -> Option<String> {
        let mut value = vec![0; MARK_BYTES_MAX];
        let length = rustix::fs::fgetxattr(file, ATTRIBUTE, &mut value[..]).ok()?;
        value.truncate(length);
        String::from_utf8(value).ok()
    }

    /// Writes the attribute; `false` where the file system does not support it.
    pub fn write_to(&self, file: &File) -> Result<bool, Errno> {
        match rustix::fs::fsetxattr(file, ATTRIBUTE, self.to_string().as_bytes(), XattrFlags::empty()) {
            Ok(()) => Ok(true),
            // Not supported by the file system, or disabled by the mount.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Marks a file as whole and unchanged from now on, with its attribute where `in_file`. The state is
    /// [`State::Unproven`] where the file system keeps no time of changes, and [`State::Loaded`] where another program keeps
    /// changing the file.
    pub fn seal(&mut self, file: &File, in_file: bool) -> std::io::Result<()> {
        for _ in 0..MARKING_TRIES_MAX {
            file.sync_all()?;
            let Some(before) = renew_change_time(file)? else {
                self.state = State::Unproven;
                return if in_file { Ok(self.write_to(file).map(drop)?) } else { Ok(()) };
            };
            self.state =
                State::Whole { written_unix_ns: written(&before), changed_unix_ns: changed(&before) };
            if in_file {
                self.write_to(file)?;
            }
            std::thread::sleep(MARKING);
            if changed(&before) % SECOND_NS == 0 {
                std::thread::sleep(SECOND_STEP);
            }
            // A page that a mapping made dirty takes more stores without a change of the times, until it is clean.
            file.sync_all()?;
            if self.compare(&file.metadata()?) == Change::Unchanged {
                return Ok(());
            }
        }
        self.state = State::Loaded;
        if in_file {
            self.write_to(file)?;
        }
        Ok(())
    }
}

/// Has the file system set the ctime to now, by setting the mtime to itself. `None` where that leaves the ctime: it is then the
/// mtime by another name, which any program sets, as on FAT.
fn renew_change_time(file: &File) -> std::io::Result<Option<Metadata>> {
    let before = file.metadata()?;
    let same = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: before.mtime(), tv_nsec: before.mtime_nsec() },
    };
    for step in [Duration::from_millis(15), SECOND_STEP] {
        std::thread::sleep(step);
        rustix::fs::futimens(file, &same)?;
        let after = file.metadata()?;
        if changed(&after) > changed(&before) && written(&after) == written(&before) {
            return Ok(Some(after));
        }
    }
    Ok(None)
}

fn written(metadata: &Metadata) -> i128 {
    i128::from(metadata.mtime()) * SECOND_NS + i128::from(metadata.mtime_nsec())
}

fn changed(metadata: &Metadata) -> i128 {
    i128::from(metadata.ctime()) * SECOND_NS + i128::from(metadata.ctime_nsec())
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version=2 inode={} bytes={} ", self.inode, self.bytes)?;
        match self.state {
            State::Making => f.write_str("state=making"),
            State::Loaded => f.write_str("state=loaded"),
            State::Whole { written_unix_ns, changed_unix_ns } => {
                write!(f, "state=whole written={written_unix_ns} changed={changed_unix_ns}")
            }
            State::Unproven => f.write_str("state=unproven"),
        }
    }
}

impl FromStr for Mark {
    type Err = ();

    /// Accepts only what `Display` writes, and what version 1 wrote.
    fn from_str(text: &str) -> Result<Mark, ()> {
        let mut words = text.split(' ');
        let mut word = |name: &str| words.next()?.strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
        let version = word("version").ok_or(())?;
        let inode = word("inode").ok_or(())?.parse().map_err(drop)?;
        let bytes = word("bytes").ok_or(())?.parse().map_err(drop)?;
        let state = match (version.as_str(), word("state").as_deref()) {
            (_, Some("making")) => State::Making,
            (_, Some("loaded")) => State::Loaded,
            ("1", Some("whole")) | ("2", Some("unproven")) => State::Unproven,
            ("2", Some("whole")) => State::Whole {
                written_unix_ns: word("written").ok_or(())?.parse().map_err(drop)?,
                changed_unix_ns: word("changed").ok_or(())?.parse().map_err(drop)?,
            },
            _ => return Err(()),
        };
        let mark = Mark { inode, bytes, state };
        // No mark of version 1 lets a file be overwritten: its text need not be exact.
        if version == "1" || mark.to_string() == text { Ok(mark) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_mark_reads_back_and_nothing_else_is_one() {
        let whole = State::Whole { written_unix_ns: -1, changed_unix_ns: 7 };
        for state in [State::Making, State::Loaded, whole, State::Unproven] {
            let mark = Mark { inode: u64::MAX, bytes: 1 << 30, state };
            assert_eq!(mark.to_string().parse(), Ok(mark));
            assert!(format!("{mark} ").parse::<Mark>().is_err());
        }
        for wrong in [
            "",
            "version=2",
            "version=3 inode=1 bytes=1 state=making",
            "version=2 inode=01 bytes=1 state=making",
            "version=2 inode=1 bytes=1 state=whole written=1",
        ] {
            assert!(wrong.parse::<Mark>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_mark_of_version_1_proves_nothing() {
        let state = |text: &str| text.parse::<Mark>().map(|mark| mark.state);
        assert_eq!(state("version=1 inode=1 bytes=4096 state=whole written=17"), Ok(State::Unproven));
        assert_eq!(state("version=1 inode=1 bytes=4096 state=loaded"), Ok(State::Loaded));
        assert!(state("version=1 inode=1 bytes=4096 state=unproven").is_err());
    }

    proptest! {
        #[test]
        fn no_mark_makes_the_parser_panic(text in "(version|inode|bytes|state|written|=|1|making|whole| ){0,12}|.{0,9}") {
            let _ = text.parse::<Mark>();
        }
    }
}
