use crate::{Error, Observer, Plan, clients, database};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A part of the experiment, and when it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// "everyday workload" or "index rebuild".
    pub name: &'static str,
    /// When it began, nanoseconds since 1970.
    pub from_unix_ns: u64,
    /// When it ended, nanoseconds since 1970.
    pub to_unix_ns: u64,
}

/// The rebuild is expected to take so long; only progress depends on it.
const REBUILD_EXPECTED: Duration = Duration::from_secs(5);

/// Runs the everyday workload and then an index rebuild on a database that [`crate::prepare`] made, and samples the
/// observer meanwhile. `stop` ends it early: the rebuild is then left out. `progress` receives the phase and the time left.
///
/// # Errors
/// The database is not ours, the workload fails, or the counters cannot be read.
pub fn experiment(
    database: &Path,
    plan: &Plan,
    observer: &mut Observer,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&'static str, Duration),
) -> Result<Vec<Phase>, Error> {
    observer.sample(Some("before the everyday workload"))?;
    let mut phase = |name, expected: Duration, work: &(dyn Fn() -> Result<(), Error> + Sync)| {
        let from_unix_ns = host::unix_ns();
        std::thread::scope(|scope| {
            let worker = scope.spawn(work);
            observer.watch(
                |_| worker.is_finished() || stop.load(Ordering::Relaxed),
                |elapsed| progress(name, expected.saturating_sub(elapsed)),
            )?;
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        Ok::<Phase, Error>(Phase { name, from_unix_ns, to_unix_ns: host::unix_ns() })
    };
    let workload = || clients::run(database, plan, stop).map(|_| ());
    let mut phases = vec![phase("everyday workload", plan.duration, &workload)?];
    if !stop.load(Ordering::Relaxed) {
        let rebuild = || rebuild_indexes(database, plan.vfs.as_deref()).map(|_| ());
        phases.push(phase("index rebuild", REBUILD_EXPECTED, &rebuild)?);
    }
    Ok(phases)
}

/// Rebuilds the indexes of both tables, one transaction each, and returns how long that took. Writers of
/// [`crate::run`] wait meanwhile.
///
/// # Errors
/// The file was not made by [`crate::prepare`], or SQLite fails.
pub fn rebuild_indexes(path: &Path, vfs: Option<&str>) -> Result<Duration, Error> {
    let connection = database::open(path, vfs)?;
    let started = Instant::now();
    let rebuilt = connection.execute_batch("REINDEX orders; REINDEX customers;");
    rebuilt.map_err(|source| Error::Sqlite { doing: "rebuild the indexes", path: path.into(), source })?;
    Ok(started.elapsed())
}
