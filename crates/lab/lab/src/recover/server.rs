//! A server of our own at work until its processes are killed.

use super::Run;
use super::steps::Doing;
use super::victim::Tell;
use super::work::Crash;
use crate::Error;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Rows that one statement adds when the table is made.
pub(super) const FILL: u64 = 4_096;
/// The log is measured after so many commits: it takes a query.
pub(super) const MEASURE_EVERY: u64 = 4;
/// From the last commit before the kill to the kill: into one of the next.
const KILL_AFTER: Duration = Duration::from_millis(2);
/// How often the killer looks whether it is time.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// Adds all rows, `FILL` at a time, from and to a place; whether it came to its end.
pub(super) fn fill(
    run: &Run,
    tell: &mut Tell<'_>,
    mut add: impl FnMut(u64, u64) -> Result<(), Error>,
) -> Result<bool, Error> {
    let rows = run.order.work.data_pages;
    let mut done = 0;
    while done < rows {
        let end = (done + FILL).min(rows);
        add(done, end)?;
        done = end;
        tell(Doing::Making, done as f64 / rows as f64 / 2.0);
        if run.stop.load(Relaxed) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Commits, each told its number and telling the length of the log now and then, until the log has its length and the
/// server is killed while the next is on its way. `None` where the experiment was ended.
pub(super) fn commit_until_killed(
    run: &Run,
    tell: &mut Tell<'_>,
    kill: impl FnOnce() + Send,
    mut commit: impl FnMut(u64) -> Result<Option<u64>, Error>,
) -> Result<Option<Crash>, Error> {
    let log_bytes = run.order.work.log_bytes;
    let due = AtomicBool::new(false);
    let crash = thread::scope(|scope| {
        let killer = scope.spawn(|| {
            while !due.load(Relaxed) {
                thread::sleep(LOOK_EVERY);
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
            tell(Doing::Making, 0.5 + crash.log_bytes as f64 / log_bytes.max(1) as f64 / 2.0);
            if crash.log_bytes >= log_bytes || run.stop.load(Relaxed) {
                due.store(true, Relaxed);
            }
        };
        // Whatever it was that ended the writing.
        due.store(true, Relaxed);
        let _ = killer.join();
        crash
    })?;
    Ok((!run.stop.load(Relaxed)).then_some(crash))
}
