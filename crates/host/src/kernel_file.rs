use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Most files of the kernel are shorter.
const BYTES: usize = 4096;

/// The content of a file of /proc or /sys, which has no size beforehand: one call finds all of most of them, a second one the
/// end. `std::fs::read` asks for the size and begins with 32 bytes.
pub(crate) fn read_kernel_file(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let (mut bytes, mut filled) = (vec![0; BYTES], 0);
    loop {
        if filled == bytes.len() {
            bytes.resize(filled * 2, 0);
        }
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// Reads a file of text of the kernel. Bytes that are no text are replaced.
pub(crate) fn read_kernel_text(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = read_kernel_file(path)?;
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|other| String::from_utf8_lossy(other.as_bytes()).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_file_is_read_however_long_it_is() {
        let dir = tempfile::tempdir().unwrap();
        for len in [0, 1, BYTES - 1, BYTES, BYTES + 1, 5 * BYTES] {
            let (path, text) = (dir.path().join(len.to_string()), vec![b'7'; len]);
            std::fs::write(&path, &text).unwrap();
            assert_eq!(read_kernel_file(&path).unwrap(), text);
        }
        assert_eq!(read_kernel_text("/proc/self/comm").unwrap().lines().count(), 1);
        assert!(read_kernel_file(dir.path().join("none")).is_err());
    }
}
