//! How a process was started. Its user may write anything there, at any time.

use crate::bounded_read::read_bounded;
use crate::process_memory::within_limit;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// More of a command line is not read: no server needs it.
const ARGUMENTS_BYTES_MAX: u64 = 64 << 10;
/// More arguments are left out.
const ARGUMENTS_MAX: usize = 1024;
/// More of an environment is not read.
const ENVIRONMENT_BYTES_MAX: u64 = 256 << 10;

/// The program and its arguments, or the title that the process has given itself; empty where there is no such process, or
/// it is a thread of the kernel, or its memory answers no read.
pub fn arguments_of(pid: u32) -> Vec<OsString> {
    split(&read(pid, "cmdline", ARGUMENTS_BYTES_MAX).unwrap_or_default())
}

fn read(pid: u32, name: &'static str, bytes_max: u64) -> Option<Vec<u8>> {
    within_limit(pid, move || read_bounded(Path::new(&format!("/proc/{pid}/{name}")), bytes_max).ok())
        .flatten()
}

/// A variable of the environment that a process was started with; `None` where it has none of that name, or is another
/// user's and this process is not root.
pub fn variable_of(pid: u32, name: &str) -> Option<OsString> {
    let bytes = read(pid, "environ", ENVIRONMENT_BYTES_MAX)?;
    let mut values = bytes.split(|byte| *byte == 0).filter_map(|variable| {
        variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=").filter(|value| !value.is_empty())
    });
    values.next().map(|value| OsString::from_vec(value.to_vec()))
}

/// Arguments end with a zero byte each. A title that a process has written over them may have many zeros behind it.
fn split(bytes: &[u8]) -> Vec<OsString> {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    if end == 0 {
        return Vec::new();
    }
    let arguments = bytes[..end].split(|byte| *byte == 0).take(ARGUMENTS_MAX);
    arguments.map(|argument| OsString::from_vec(argument.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    #[test]
    fn arguments_and_titles_are_split_at_zeros() {
        assert_eq!(split(b"/usr/bin/postgres\0-D\0/data\0"), ["/usr/bin/postgres", "-D", "/data"]);
        assert_eq!(split(b"a\0\0b\0"), ["a", "", "b"], "an empty argument is one");
        assert_eq!(split(b"postgres: 15/main: checkpointer \0\0\0\0"), ["postgres: 15/main: checkpointer "]);
        assert_eq!(split(b"\0\0"), Vec::<OsString>::new());
        assert_eq!(split(&[b'a', 0].repeat(5000)).len(), ARGUMENTS_MAX);
    }

    #[test]
    fn a_process_is_read_as_it_was_started() {
        let mut child = Command::new("sleep").arg("60").env("PGDATA", "/da ta").spawn().unwrap();
        // A program that has just been started may have no arguments yet.
        while arguments_of(child.id()).is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(arguments_of(child.id()), ["sleep", "60"]);
        assert_eq!(variable_of(child.id(), "PGDATA"), Some("/da ta".into()));
        assert_eq!(variable_of(child.id(), "PGDAT"), None);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(arguments_of(child.id()).is_empty() && variable_of(child.id(), "PGDATA").is_none());
    }

    proptest! {
        #[test]
        fn arguments_are_what_was_between_the_zeros(bytes in any::<Vec<u8>>()) {
            let joined: Vec<u8> = split(&bytes).into_iter().map(OsString::into_vec).collect::<Vec<_>>().join(&0);
            prop_assert!(bytes.starts_with(&joined));
            prop_assert!(bytes[joined.len()..].iter().all(|byte| *byte == 0));
        }
    }
}
