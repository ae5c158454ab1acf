//! An engine that is crashed and recovered: in files that this program works on itself, or a server.

use super::steps::StepKind;
use super::work::Crash;
use super::{Context, Engine, Strategy};
use crate::Error;
use experiments::RecoveryIo;
use filestats::Figure;
use std::path::Path;
use std::time::Duration;

/// Receives the share of a step that is done, 0 to 1.
pub(super) type ReportStep<'a> = dyn FnMut(StepKind, f64) + 'a;

/// The result of one recovery.
pub(super) struct Recovered {
    pub opened: Duration,
    pub first_read: Duration,
    pub first_write: Duration,
    pub full: Duration,
    /// Pages that it had to write to the data file, as far as the engine reports them.
    pub pages: Figure<u64>,
    /// Of these, pages not yet written at the first read.
    pub pages_left: Figure<u64>,
    pub compared: u64,
    pub io: RecoveryIo,
    pub counted_by: String,
    /// Notes for reading its I/Os.
    pub notes: Vec<String>,
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
