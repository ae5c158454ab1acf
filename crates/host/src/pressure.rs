//! Pressure stall information: how long tasks could not go on because they waited for I/O (Documentation/accounting/psi.rst).
//!
//! It has waits that no counter of a device has: those for a throttle, which come before the device's accounting begins.

use crate::cgroups::own_group_v2;
use crate::kernel_file::read_kernel_text;
use std::io;
use std::path::{Path, PathBuf};

/// How long at least one task of the host was stalled on I/O since boot.
pub const PRESSURE: &str = "/proc/pressure/io";

/// How long at least one task of the host was stalled on I/O since boot, microseconds. The kernel weights it by the
/// processors that have work: where others compute, it is less.
///
/// # Errors
/// If the kernel does not count it: before Linux 4.20, without CONFIG_PSI, or not switched on (psi=1).
pub fn io_stalled_us() -> io::Result<u64> {
    read_stalled(Path::new(PRESSURE))
}

/// How long at least one task in the control group (version 2) of a process, or below it, was stalled on I/O,
/// microseconds, with the file that says so.
///
/// # Errors
/// If the kernel does not count it, or the process is gone, or in the root group, which is the whole host.
pub fn io_stalled_us_of_group(pid: u32) -> io::Result<(PathBuf, u64)> {
    let file = own_group_v2(pid)?.join("io.pressure");
    let stalled_us = read_stalled(&file)?;
    Ok((file, stalled_us))
}

fn read_stalled(file: &Path) -> io::Result<u64> {
    let text = read_kernel_text(file)?;
    parse_stalled(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it has another form"))
}

/// ```text
/// some avg10=0.00 avg60=0.68 avg300=16.44 total=4461455002
/// full avg10=0.00 avg60=0.42 avg300=9.97 total=1592914137
/// ```
fn parse_stalled(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_time_in_which_some_task_was_stalled_is_read() {
        let text = "some avg10=0.00 avg60=0.68 avg300=16.44 total=4461455002\n\
                    full avg10=0.00 avg60=0.42 avg300=9.97 total=1592914137\n";
        assert_eq!(parse_stalled(text), Some(4_461_455_002));
        for other in ["", "full avg10=0.00 total=7", "some avg10=0.00", "some total=x", "some total=-1"] {
            assert_eq!(parse_stalled(other), None, "{other}");
        }
    }

    #[test]
    fn a_task_that_waits_for_storage_is_stalled() {
        let Ok(before) = io_stalled_us() else {
            eprintln!("skipped: this kernel does not count pressure");
            return;
        };
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let began = std::time::Instant::now();
        // The kernel adds up every two seconds what tasks waited; on a RAM disk that is hardly anything.
        while io_stalled_us().unwrap() == before && began.elapsed().as_secs() < 30 {
            std::os::unix::fs::FileExt::write_all_at(&file, &vec![7; 1 << 20], 0).unwrap();
            file.sync_all().unwrap();
        }
        let grew = io_stalled_us().unwrap() - before;
        assert!(grew > 0 && u128::from(grew) <= began.elapsed().as_micros() + 100_000, "{grew} us");
    }

    /// Removed when dropped.
    struct Group(PathBuf);

    impl Drop for Group {
        fn drop(&mut self) {
            let _ = fs::remove_dir(&self.0);
        }
    }

    #[test]
    fn a_process_in_a_group_of_its_own_has_the_pressure_of_that_group() {
        let mounts = crate::Mounts::read().unwrap();
        let Some(root) = mounts.iter().find(|mount| mount.filesystem == "cgroup2") else {
            eprintln!("skipped: no control groups of version 2");
            return;
        };
        let group = Group(root.point.join(format!("headroom-test-{}", std::process::id())));
        if let Err(error) = fs::create_dir(&group.0) {
            eprintln!("skipped: {}: {error}", group.0.display());
            return;
        }
        let mut sleep = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let moved = fs::write(group.0.join("cgroup.procs"), sleep.id().to_string());
        let read = io_stalled_us_of_group(sleep.id());
        sleep.kill().unwrap();
        sleep.wait().unwrap();
        match (moved, group.0.join("io.pressure").exists()) {
            (Ok(()), true) => assert_eq!(read.unwrap().0, group.0.join("io.pressure")),
            (moved, exists) => eprintln!("skipped: moved {moved:?}, io.pressure is there: {exists}"),
        }
    }

    #[test]
    fn a_process_that_has_ended_has_no_group() {
        assert!(io_stalled_us_of_group(u32::MAX).is_err());
    }
}
