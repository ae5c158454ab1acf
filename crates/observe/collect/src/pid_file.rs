//! Pid files: a server keeps the number of its first process in one.
//!
//! The file and its directory often belong to the server's user, who may put anything in its place: a link, a device, a
//! pipe, the number of a process of someone else.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// PostgreSQL's, the longest one known, has eight lines.
const BYTES_MAX: u64 = 4096;

/// The process of the first line: "812\n/var/lib/postgresql/18/main\n..." as PostgreSQL writes it, or the number alone.
///
/// # Errors
/// If it is no regular file of at most 4 KiB, is a link that does not belong to the owner of its target, has no process
/// number in it, or names a process that belongs neither to the owner of the file nor to a file of root or of this user.
pub fn read_pid_file(path: &Path) -> io::Result<u32> {
    let (mut file, metadata) = open_regular(path)?;
    if metadata.len() > BYTES_MAX {
        return Err(io::Error::other("it is longer than 4 KiB; a pid file holds the number of a process"));
    }
    let mut bytes = Vec::new();
    file.by_ref().take(BYTES_MAX).read_to_end(&mut bytes)?;
    let pid = parse_pid(&bytes).ok_or_else(|| io::Error::other("its first line is not a process number"))?;
    let owner = metadata.uid();
    if !is_own_or_roots(owner) && host::user_of(pid).is_some_and(|user| user != owner) {
        let why = format!("it belongs to user {owner}, and process {pid}, which it names, to another user");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(pid)
}

fn parse_pid(bytes: &[u8]) -> Option<u32> {
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.trim().parse().ok().filter(|pid| *pid > 0)
}

/// Opens a regular file. Anything else is found out before it is opened, which can have effects of its own: a pipe waits,
/// a watchdog starts.
fn open_regular(path: &Path) -> io::Result<(File, Metadata)> {
    let place = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)?;
    let metadata = place.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let name = fs::symlink_metadata(path)?;
    if name.is_symlink() && !is_own_or_roots(name.uid()) && name.uid() != metadata.uid() {
        let why = format!(
            "it is a link of user {} to a file of user {}; name the file",
            name.uid(),
            metadata.uid()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    // Opens the checked file itself, whatever has its name by now.
    let same = format!("/proc/self/fd/{}", place.as_raw_fd());
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(same)?;
    Ok((file, metadata))
}

fn is_own_or_roots(user: u32) -> bool {
    user == 0 || host::user_of(std::process::id()) == Some(user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{chown, lchown, symlink};
    use std::process::Command;

    const OTHER_USER: u32 = 65534;

    fn refusal(path: &Path) -> String {
        read_pid_file(path).unwrap_err().to_string()
    }

    #[test]
    fn a_pid_file_begins_with_a_number() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.pid");
        let number = |text: &[u8]| {
            fs::write(&path, text).unwrap();
            read_pid_file(&path).ok()
        };
        assert_eq!(number(b"812\n/var/lib/postgresql/18/main\n1763000000\n"), Some(812));
        assert_eq!(number(b"  812"), Some(812));
        for wrong in [&b""[..], b"\n812", b"-812", b"0", b"postgres", b"99999999999", b"\xff812"] {
            assert_eq!(number(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn pipes_devices_directories_and_long_files_are_refused_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
        symlink("/dev/zero", path("zero")).unwrap();
        for name in ["pipe", "zero", ""] {
            assert!(refusal(&path(name)).contains("not a regular file"), "{name}");
        }
        let long = File::create(path("long")).unwrap();
        long.set_len(1 << 40).unwrap();
        assert!(refusal(&path("long")).contains("longer than 4 KiB"));
        symlink("nothing", path("dangling")).unwrap();
        assert_eq!(read_pid_file(&path("dangling")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_link_is_followed_to_a_file_of_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("server.pid"), dir.path().join("link"));
        fs::write(&path, "812\n").unwrap();
        symlink(&path, &link).unwrap();
        assert_eq!(read_pid_file(&link).unwrap(), 812);
        if let Err(error) = lchown(&link, Some(OTHER_USER), None) {
            return println!("skipped: a link of another user needs root: {error}");
        }
        assert!(refusal(&link).contains("a link of user 65534 to a file of user 0"));
    }

    #[test]
    fn another_users_pid_file_names_no_process_of_someone_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("server.pid");
        fs::write(&path, std::process::id().to_string()).unwrap();
        assert_eq!(read_pid_file(&path).unwrap(), std::process::id());
        if let Err(error) = chown(&path, Some(OTHER_USER), None) {
            return println!("skipped: a file of another user needs root: {error}");
        }
        assert!(refusal(&path).contains("it belongs to user 65534"));
    }
}
