//! An engine that is crashed and recovered: in files that this program works on itself, or a server.

use super::steps::StepKind;
use super::work::Crash;
use super::{Context, Engine, Strategy};
use crate::Error;
use experiments::RecoveryIo;
use filestats::Figure;
use std::path::Path;
use std::time::{Duration, Instant};

/// Receives the share of a step that is done, 0 to 1, or more where it did more than was planned.
pub(super) type ReportStep<'a> = dyn FnMut(StepKind, f64) + 'a;

/// The result of one recovery.
pub(super) struct Recovered {
    pub opened: Duration,
    pub first_read: Duration,
    pub first_write: Duration,
    pub full: Duration,
    pub compared: u64,
    pub counted: Counted,
}

/// The work of a recovery.
pub(super) struct Counted {
    /// Pages that it had to write to the data file, as far as the engine reports them.
    pub pages: Figure<u64>,
    /// Of these, pages not yet written at the first read.
    pub pages_left: Figure<u64>,
    pub io: RecoveryIo,
    pub counted_by: &'static str,
    /// Notes for reading its I/Os.
    pub notes: Vec<String>,
}

/// A recovered engine that serves again.
pub(super) trait Served: Sized {
    /// The content of a page.
    fn read(&mut self, place: u64) -> Result<Vec<u8>, Error>;

    /// Changes a page, durably.
    fn write(&mut self, place: u64, body: &[u8]) -> Result<(), Error>;

    /// Waits until all recovered pages are in the data file.
    fn settle(&mut self) -> Result<(), Error>;

    /// The work until then.
    fn counted(&mut self) -> Result<Counted, Error>;

    /// Ends it.
    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

/// Times a recovery: `open` opens the crashed engine, and returns once it serves. Then its pages are compared.
pub(super) fn time_recovery<S: Served>(
    crash: &Crash,
    run: &Context,
    wrong: impl Fn(String) -> Error,
    open: impl FnOnce() -> Result<S, Error>,
) -> Result<Recovered, Error> {
    let [first, second] = run.order.first_pages(crash);
    let body = run.order.page_after_recovery();
    let began = Instant::now();
    let mut served = open()?;
    let opened = began.elapsed();
    let found = served.read(first.place)?;
    let first_read = began.elapsed();
    served.write(second.place, &body)?;
    let first_write = began.elapsed();
    served.settle()?;
    let full = began.elapsed();
    let counted = served.counted()?;
    let compared = run.order.compare(crash, &found, |probe| served.read(probe.place), wrong)?;
    served.end()?;
    Ok(Recovered { opened, first_read, first_write, full, compared, counted })
}

pub(super) trait Victim: Send {
    /// Creates the image in an empty directory. `None` if the experiment was stopped.
    fn crash(
        &mut self,
        dir: &Path,
        run: &Context,
        report: &mut ReportStep<'_>,
    ) -> Result<Option<Crash>, Error>;

    /// Recovers the image, or a copy of it, in a directory.
    fn recover(
        &mut self,
        dir: &Path,
        strategy: Strategy,
        crash: &Crash,
        run: &Context,
    ) -> Result<Recovered, Error>;

    /// Notes for reading its figures.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The error of a page without its expected content.
pub(super) fn wrong(engine: Engine, strategy: Strategy) -> impl Fn(String) -> Error {
    move |what| Error::Wrong { engine: engine.name(), strategy: strategy.name(), what }
}
