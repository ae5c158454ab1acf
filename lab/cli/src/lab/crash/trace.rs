//! The trace of a failure of threads: kept in a file, and judged again.

use crashlab::{ThreadedFailure, replay_threads};
use serde_json::json;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use terminal::{Done, FINE, Failure, Output, problem_found};

/// A longer file is no trace: a large workload writes a few tens of mebibytes, in two digits a byte.
const TRACE_BYTES_MAX: u64 = 1 << 30;

/// Writes the trace to a new file in the current directory; returns its name.
pub(super) fn keep(threads: &ThreadedFailure, out: &mut Output) -> Option<PathBuf> {
    let path = PathBuf::from(format!("crash-seed-{}.trace", threads.seed()));
    let written =
        File::create_new(&path).and_then(|mut file| file.write_all(threads.trace_text().as_bytes()));
    match written {
        Ok(()) => Some(path),
        Err(error) => {
            out.warn(format_args!("cannot keep the trace in {}: {error}", path.display()));
            None
        }
    }
}

/// `headroom lab crash --replay`.
pub(super) fn replay(path: &Path, out: &mut Output) -> Done {
    let cannot = |why: &dyn std::fmt::Display| {
        Failure::new(format_args!("cannot replay {}: {why}", path.display()))
            .with_remedy("the file of a trace that `headroom lab crash` has left")
    };
    let mut text = String::new();
    let read =
        host::open_regular_file(path).and_then(|file| file.take(TRACE_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|error| cannot(&error))?;
    let failure = replay_threads(&text).map_err(|why| cannot(&why))?;
    out.answer(
        |_| match &failure {
            Some(failure) => format!("failed: {failure}"),
            None => "the crash holds now\n".into(),
        },
        || json!({ "failure": failure.as_ref().map(ToString::to_string) }),
    );
    Ok(if failure.is_some() { problem_found() } else { FINE })
}
