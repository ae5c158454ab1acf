use crate::escape::unescape_path;
use std::fs;
use std::io;
use std::path::PathBuf;

/// The partitions and files that are swapped to.
///
/// # Errors
/// If /proc is not readable. A kernel without swap has no such file, which is no error.
pub(crate) fn read_swaps() -> io::Result<Vec<PathBuf>> {
    match fs::read("/proc/swaps") {
        Ok(text) => Ok(parse_swaps(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// ```text
/// Filename        Type            Size            Used            Priority
/// /dev/dm-1       partition       8388604         0               -2
/// ```
fn parse_swaps(text: &[u8]) -> Vec<PathBuf> {
    let lines = text.split(|byte| *byte == b'\n').skip(1);
    let names = lines.filter_map(|line| line.split(u8::is_ascii_whitespace).next());
    names.filter(|name| !name.is_empty()).map(unescape_path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn each_line_after_the_heading_is_a_swap_area_whatever_its_name() {
        let text = b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n\
            /dev/dm-1                               partition\t8388604\t\t0\t\t-2\n\
            /swap\\040\xe9\\134file                  file\t\t4\t\t0\t\t-3\n";
        let found = parse_swaps(text);
        assert_eq!(
            found.iter().map(|path| path.as_os_str().as_bytes()).collect::<Vec<_>>(),
            [&b"/dev/dm-1"[..], b"/swap \xe9\\file"]
        );
        assert!(parse_swaps(b"").is_empty());
        assert!(read_swaps().is_ok());
    }
}
