//! Limits of a block device, kept by the kernel's own throttle (block/blk-throttle.c) in the files of control groups.

use crate::LoopError;
use host::{DeviceNumber, throttle_files};
use std::fs;
use workload::CapKind;

const KINDS: [CapKind; 4] = [CapKind::ReadIops, CapKind::WriteIops, CapKind::ReadBytes, CapKind::WriteBytes];
/// Failures that an error names.
const FAILURES_MAX: usize = 2;

/// Limits the device, in operations or bytes a second.
///
/// # Errors
/// [`LoopError::NoThrottle`] where no control group has such a limit, or none took it.
pub fn set(number: DeviceNumber, kind: CapKind, per_second: u64) -> Result<(), LoopError> {
    let refused = |tried: String| LoopError::NoThrottle { device: number.to_string(), tried };
    let files = throttle_files(kind).map_err(|error| refused(error.to_string()))?;
    let mut is_set = false;
    let mut failures: Vec<String> = Vec::new();
    for file in files {
        match fs::write(file.path(), file.line(number, kind, Some(per_second))) {
            Ok(()) => is_set = true,
            // Groups come and go: one that took it is enough.
            Err(error) => failures.push(format!("{}: {error}", file.path().display())),
        }
    }
    if is_set {
        return Ok(());
    }
    failures.truncate(FAILURES_MAX);
    Err(refused(match failures.is_empty() {
        true => "neither blkio of v1 nor io of v2".into(),
        false => failures.join("; "),
    }))
}

/// Removes all limits of the device: a throttle outlives the attachment of a loop device.
pub fn clear(number: DeviceNumber) {
    for kind in KINDS {
        for file in throttle_files(kind).unwrap_or_default() {
            if file.has_limit(number) {
                let _ = fs::write(file.path(), file.line(number, kind, None));
            }
        }
    }
}
