use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The first bytes of a file, at most `bytes_max`. A link is not followed, and a pipe or device is refused, so that nothing
/// waits: the file may be another user's. Files of /proc have no size.
pub(crate) fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    #[test]
    fn no_more_than_the_bound_is_read_and_no_link_or_pipe() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("short"), "812\n").unwrap();
        assert_eq!(read_bounded(&path("short"), 100).unwrap(), b"812\n");
        File::create(path("long")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read_bounded(&path("long"), 100).unwrap().len(), 100);
        symlink(path("short"), path("link")).unwrap();
        assert!(read_bounded(&path("link"), 100).is_err());
        assert!(std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
        assert!(read_bounded(&path("pipe"), 100).is_err());
        assert!(read_bounded(Path::new("/dev/zero"), 100).is_err());
        assert!(!read_bounded(Path::new("/proc/self/stat"), 100).unwrap().is_empty());
    }
}
