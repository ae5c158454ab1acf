//! Files that a user names to be read.

use rustix::fs::{OFlags, fcntl_setfl};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Directories whose names are open files of this process: a shell gives `/dev/fd/63` for `<(command)`.
const DESCRIPTORS: [&str; 2] = ["/dev/fd", "/proc/self/fd"];
const STANDARD_INPUT: &str = "/dev/stdin";

/// Opens a regular file to read it. A pipe is read too where its name is that of an open file of this process, since
/// somebody writes to it. Another pipe, or a device, could be waited for without end.
///
/// # Errors
/// The kernel's; "it is a pipe, not a regular file" and the like.
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    // NONBLOCK: a pipe without a writer, or a serial line, must not hang. NOCTTY: a terminal does not become that of this process.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let kind = file.metadata()?.file_type();
    let is_own_pipe = kind.is_fifo() && is_descriptor(path);
    let found = if kind.is_file() || is_own_pipe {
        // Reads wait for what the writer of a pipe has to say.
        fcntl_setfl(&file, OFlags::empty())?;
        return Ok(file);
    } else if kind.is_dir() {
        "directory"
    } else if kind.is_fifo() {
        "pipe"
    } else {
        "device"
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is a {found}, not a regular file")))
}

fn is_descriptor(path: &Path) -> bool {
    path == Path::new(STANDARD_INPUT)
        || path
            .parent()
            .is_some_and(|parent| DESCRIPTORS.iter().any(|directory| parent == Path::new(directory)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::process::Command;

    #[test]
    fn a_pipe_or_device_is_refused_at_once_and_a_pipe_of_this_process_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let (file, pipe) = (dir.path().join("file"), dir.path().join("pipe"));
        std::fs::write(&file, "text").unwrap();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let read = |path: &Path| {
            let mut text = String::new();
            open_regular_file(path).and_then(|mut file| file.read_to_string(&mut text)).map(|_| text)
        };
        assert_eq!(read(&file).unwrap(), "text");
        for (path, found) in
            [(pipe.as_path(), "pipe"), (Path::new("/dev/zero"), "device"), (dir.path(), "directory")]
        {
            let error = read(path).unwrap_err().to_string();
            assert_eq!(error, format!("it is a {found}, not a regular file"));
        }
        assert_eq!(read(&dir.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        for directory in DESCRIPTORS {
            let (reader, mut writer) = io::pipe().unwrap();
            let path = Path::new(directory).join(reader.as_raw_fd().to_string());
            let writing = std::thread::spawn(move || {
                // Later than the first read.
                std::thread::sleep(std::time::Duration::from_millis(20));
                writer.write_all(b"piped").unwrap();
            });
            assert_eq!(read(&path).unwrap(), "piped");
            writing.join().unwrap();
        }
    }
}
