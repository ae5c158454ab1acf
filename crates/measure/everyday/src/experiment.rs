use crate::{Error, Observer, Plan, clients, database};
use std::cell::RefCell;
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

/// Expected time of the rebuild; only progress depends on it.
const REBUILD_EXPECTED: Duration = Duration::from_secs(5);

/// Reports the progress of an experiment to its caller.
pub trait Listener {
    /// Called about every 20 ms with the phase and the time until it is expected to end.
    fn progress(&mut self, phase: &'static str, left: Duration);

    /// Called between two samples: whether [`Listener::answer`] is due, before the experiment has ended.
    fn is_answer_due(&self) -> bool {
        false
    }

    /// Called once it is due, with what was observed so far. It is not due again afterwards.
    fn answer(&mut self, _observer: &mut Observer, _phases: &[Phase]) {}
}

/// Runs the everyday workload and then an index rebuild on a database that [`crate::prepare`] made, and samples the
/// observer meanwhile. `stop` ends it early: the rebuild is then left out.
///
/// # Errors
/// The database is not ours, the workload fails, or the counters cannot be read.
pub fn experiment(
    database: &Path,
    plan: &Plan,
    observer: &mut Observer,
    stop: &AtomicBool,
    listener: &mut dyn Listener,
) -> Result<Vec<Phase>, Error> {
    observer.sample(Some("before the everyday workload"))?;
    let mut experiment = Experiment { observer, stop, listener, phases: Vec::new() };
    let workload = || clients::run(database, plan, stop).map(|_| ());
    experiment.run_phase("everyday workload", plan.duration, &workload)?;
    if !stop.load(Ordering::Relaxed) {
        let rebuild = || rebuild_indexes(database, plan.vfs.as_deref()).map(|_| ());
        experiment.run_phase("index rebuild", REBUILD_EXPECTED, &rebuild)?;
    }
    Ok(experiment.phases)
}

/// An experiment that runs.
struct Experiment<'a, 'b> {
    observer: &'a mut Observer<'b>,
    stop: &'a AtomicBool,
    listener: &'a mut dyn Listener,
    /// Those that have ended.
    phases: Vec<Phase>,
}

impl Experiment<'_, '_> {
    fn run_phase(
        &mut self,
        name: &'static str,
        expected: Duration,
        work: &(dyn Fn() -> Result<(), Error> + Sync),
    ) -> Result<(), Error> {
        let (from_unix_ns, began) = (host::unix_ns(), Instant::now());
        let phase = |to_unix_ns| Phase { name, from_unix_ns, to_unix_ns };
        std::thread::scope(|scope| {
            let worker = scope.spawn(work);
            let is_done = || worker.is_finished() || self.stop.load(Ordering::Relaxed);
            loop {
                // Both closures of `watch` need the listener.
                let listener = RefCell::new(&mut *self.listener);
                self.observer.watch(
                    |_| is_done() || listener.borrow().is_answer_due(),
                    |_| listener.borrow_mut().progress(name, expected.saturating_sub(began.elapsed())),
                )?;
                // Also where the phase has just ended: taking a sample may take a second on a busy host.
                if self.listener.is_answer_due() && !self.stop.load(Ordering::Relaxed) {
                    let so_far: Vec<Phase> =
                        self.phases.iter().copied().chain([phase(host::unix_ns())]).collect();
                    self.listener.answer(self.observer, &so_far);
                }
                if is_done() {
                    break;
                }
            }
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        self.phases.push(phase(host::unix_ns()));
        Ok(())
    }
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
