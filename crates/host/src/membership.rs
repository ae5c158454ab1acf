//! Control group of a process, by name.

use crate::bounded_read::read_bounded;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A group's path has 4 KiB at most, and there are some fifteen hierarchies.
const BYTES_MAX: u64 = 128 << 10;

/// The group of a process that a service manager or a container runtime named: of version 2 or of systemd's own hierarchy,
/// where it is not the root, else the longest. `None` where the process is in root groups only, or there is none.
pub fn control_group_of(pid: u32) -> Option<PathBuf> {
    parse(&read_bounded(Path::new(&format!("/proc/{pid}/cgroup")), BYTES_MAX).ok()?).map(Path::to_path_buf)
}

/// Lines of `HIERARCHY:CONTROLLERS:PATH` (cgroups(7)).
fn parse(text: &[u8]) -> Option<&Path> {
    let groups = || {
        text.split(|byte| *byte == b'\n').filter_map(|line| {
            let mut fields = line.splitn(3, |byte| *byte == b':');
            let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            (path.len() > 1 && path[0] == b'/').then_some((controllers, path))
        })
    };
    let named = |wanted: &[u8]| groups().find(|(controllers, _)| *controllers == wanted);
    let longest = || groups().max_by_key(|(_, path)| path.len());
    let (_, path) = named(b"").or_else(|| named(b"name=systemd")).or_else(longest)?;
    Some(Path::new(OsStr::from_bytes(path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_named_hierarchy_is_preferred_and_roots_are_none() {
        let path = |text: &str| parse(text.as_bytes()).map(|path| path.to_str().unwrap().to_owned());
        assert_eq!(path("0::/system.slice/a.service\n").as_deref(), Some("/system.slice/a.service"));
        let mixed =
            "9:name=systemd:/system.slice/b.service\n7:blkio:/x/much/longer/path/than/the/other\n0::/\n";
        assert_eq!(path(mixed).as_deref(), Some("/system.slice/b.service"));
        assert_eq!(path("7:blkio:/db\n4:memory:/longer/db\n0::/\n").as_deref(), Some("/longer/db"));
        assert_eq!(path("7:blkio:/\n0::/\n"), None);
        assert_eq!(path("0::/a:b c\n").as_deref(), Some("/a:b c"));
        assert_eq!(control_group_of(u32::MAX), None);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed(bytes in any::<Vec<u8>>(), path in "/[^\n\0]{1,80}") {
            parse(&bytes);
            let text = format!("0::{path}\n");
            prop_assert_eq!(parse(text.as_bytes()), Some(Path::new(path.as_str())));
        }
    }
}
