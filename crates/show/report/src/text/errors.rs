//! Failed I/Os, and blocks that verification found damaged.

use super::style::Style;
use super::wrap::{clean, clip};
use crate::number;
use workload::{Direction, RunResult};

/// Damaged blocks that are listed.
const BLOCKS_MAX: usize = 5;

pub(super) fn errors(result: &RunResult, style: &Style) -> Vec<String> {
    let of = |name: &'static str, direction: &Direction| {
        let lines = direction.errors.iter().map(|(errno, count)| {
            let plural = if *count == 1 { "" } else { "s" };
            let line =
                format!("  {} {name}{plural} failed with {}", number::count(*count), errno_name(*errno));
            clip(&line, style.columns())
        });
        lines.collect::<Vec<String>>()
    };
    let mut lines = of("read", &result.read);
    lines.extend(of("write", &result.write));
    lines.extend(of("sync", &result.sync));
    for block in result.verification.iter().flat_map(|each| &each.first_bad).take(BLOCKS_MAX) {
        let line = format!("  at byte {}: {}", number::count(block.offset_bytes), clean(&block.found));
        lines.push(clip(&line, style.columns()));
    }
    if !lines.is_empty() {
        lines.insert(0, style.heading("Errors"));
    }
    lines
}

/// Linux's name of an error and its meaning for storage.
fn errno_name(errno: i32) -> String {
    let (name, meaning) = match errno {
        1 => ("EPERM", "not permitted"),
        4 => ("EINTR", "interrupted"),
        5 => ("EIO", "input/output error or short transfer"),
        9 => ("EBADF", "file not open for this"),
        11 => ("EAGAIN", "out of requests"),
        12 => ("ENOMEM", "out of memory"),
        16 => ("EBUSY", "busy"),
        22 => ("EINVAL", "refused, often for its alignment"),
        27 => ("EFBIG", "beyond the largest file"),
        28 => ("ENOSPC", "no space left"),
        30 => ("EROFS", "read-only file system"),
        52 => ("EBADE", "invalid exchange"),
        61 => ("ENODATA", "medium error"),
        62 => ("ETIME", "timer expired"),
        84 => ("EILSEQ", "failed integrity check"),
        95 => ("EOPNOTSUPP", "not supported"),
        110 => ("ETIMEDOUT", "timed out"),
        121 => ("EREMOTEIO", "device error"),
        122 => ("EDQUOT", "quota exceeded"),
        125 => ("ECANCELED", "cancelled"),
        _ => return format!("errno {errno}"),
    };
    format!("{name} ({meaning})")
}
