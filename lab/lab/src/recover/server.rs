//! A server that this program starts works until its processes are killed.

use super::Context;
use super::steps::StepKind;
use super::victim::ReportStep;
use super::work::Crash;
use crate::Error;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Rows that one statement adds when the table is created.
pub(super) const FILL: u64 = 4_096;
/// The log is measured after so many commits: it takes a query.
pub(super) const MEASURE_EVERY: u64 = 4;
/// From the last commit before the kill to the kill, which so hits a later commit.
const KILL_AFTER: Duration = Duration::from_millis(2);
/// How often the killer polls for its time.
const POLL_INTERVAL: Duration = Duration::from_micros(200);

/// Adds all rows, [`FILL`] at a time: `add` gets the first place and the end. Returns whether it was completed.
pub(super) fn fill(
    run: &Context,
    report: &mut ReportStep<'_>,
    mut add: impl FnMut(u64, u64) -> Result<(), Error>,
) -> Result<bool, Error> {
    let rows = run.order.work.data_pages;
    let mut done = 0;
    while done < rows {
        let end = (done + FILL).min(rows);
        add(done, end)?;
        done = end;
        report(StepKind::Making, done as f64 / rows as f64 / 2.0);
        if run.stop.load(Relaxed) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Calls `commit` with the number of each commit until the log has its length, and kills the server during a later one.
/// `commit` returns the length of the log if it measured it. `None` if the experiment was stopped.
pub(super) fn commit_until_killed(
    run: &Context,
    report: &mut ReportStep<'_>,
    kill: impl FnOnce() + Send,
    mut commit: impl FnMut(u64) -> Result<Option<u64>, Error>,
) -> Result<Option<Crash>, Error> {
    let log_bytes = run.order.work.log_bytes;
    let due = AtomicBool::new(false);
    let crash = thread::scope(|scope| {
        let killer = scope.spawn(|| {
            while !due.load(Relaxed) {
                thread::sleep(POLL_INTERVAL);
            }
            thread::sleep(KILL_AFTER);
            kill();
        });
        let mut crash = Crash { commits: 0, log_bytes: 0 };
        let crash = loop {
            match commit(crash.commits) {
                Ok(log) => {
                    crash.commits += 1;
                    crash.log_bytes = log.unwrap_or(crash.log_bytes);
                }
                // Killed: what this commit wrote may be there or not.
                Err(_) if due.load(Relaxed) => break Ok(crash),
                Err(error) => break Err(error),
            }
            report(StepKind::Making, 0.5 + crash.log_bytes as f64 / log_bytes.max(1) as f64 / 2.0);
            if crash.log_bytes >= log_bytes || run.stop.load(Relaxed) {
                due.store(true, Relaxed);
            }
        };
        // Also after an error of a commit.
        due.store(true, Relaxed);
        let _ = killer.join();
        crash
    })?;
    Ok((!run.stop.load(Relaxed)).then_some(crash))
}
