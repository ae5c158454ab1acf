use super::{How, TestPlace, check_place, foreign_iops, log_region, show_progress};
use ::measure::{MeasureError, MeasuredTarget, Measurement};
use capability::Capability;
use history::History;
use std::time::{Duration, Instant};
use storage::{Region, StorageError, TestFile};
use terminal::{Failure, Output, interrupt, workspace};
use workload::Caching;

/// A measurement of a directory in two passes, with its test file from the first to the second.
pub struct Staged<'a> {
    place: &'a TestPlace<'a>,
    caching: Caching,
    file: TestFile,
    log: Region,
    foreign_iops: Option<f64>,
    measurement: Measurement,
}

/// Of a slow disk the first pass measures what is written of the test file in this time.
const FILL_TIME: Duration = Duration::from_secs(8);
/// When the first answer is expected, on storage of usual speed; only progress depends on it.
const FIRST_ANSWER_EXPECTED: Duration = Duration::from_secs(45);

impl<'a> Staged<'a> {
    /// Makes the test file, or the first part of it.
    ///
    /// # Errors
    /// The directory cannot be measured, or the file cannot be made.
    pub fn begin(
        place: &'a TestPlace<'a>,
        how: &How,
        history: &mut History,
        out: &mut Output,
    ) -> Result<Staged<'a>, Failure> {
        let bytes = check_place(place, how)?;
        let file = workspace::begin_test_file(place.workspace, "test", (bytes, FILL_TIME), history, out)?;
        Ok(Staged {
            caching: how.caching(),
            log: log_region(place, &file)?,
            foreign_iops: foreign_iops(place.target.facts(), out),
            measurement: Measurement::new(how.plan(true)),
            file,
            place,
        })
    }

    /// Measures the points that decide a first verdict.
    ///
    /// # Errors
    /// The load cannot run.
    pub fn measure_first(&mut self, began: Instant, out: &mut Output) -> Result<(), Failure> {
        let region = self.file.region(self.caching)?;
        let target = measured_target(self.place, &region, &self.log, self.foreign_iops);
        self.measurement.measure_first(target, &mut |progress| {
            show_progress(progress, FIRST_ANSWER_EXPECTED.saturating_sub(began.elapsed()), out);
            interrupt::break_if_requested()
        })?;
        Ok(())
    }

    /// Measures the rest, on the whole test file. Ctrl-C ends it: the measured results are kept.
    ///
    /// # Errors
    /// The file cannot be completed, or the load cannot run.
    pub fn complete(&mut self, out: &mut Output) -> Result<(), Failure> {
        match self.file.complete(&mut workspace::filling(out)) {
            Err(StorageError::Interrupted { .. }) => return Ok(()),
            done => done?,
        }
        let region = self.file.region(self.caching)?;
        let target = measured_target(self.place, &region, &self.log, self.foreign_iops);
        self.measurement.complete(target, &mut |progress| {
            show_progress(progress, progress.left, out);
            interrupt::break_if_requested()
        })?;
        Ok(())
    }

    /// The capability known by now.
    ///
    /// # Errors
    /// Nothing is.
    pub fn capability(&self) -> Result<Capability, MeasureError> {
        self.measurement.capability()
    }

    /// Removes the test file.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(self, history: &mut History) -> Result<(), Failure> {
        workspace::remove_test_file(self.file, history)
    }
}

fn measured_target<'a>(
    place: &'a TestPlace<'a>,
    region: &'a Region,
    log: &'a Region,
    foreign_iops: Option<f64>,
) -> MeasuredTarget<'a> {
    MeasuredTarget { region, log: Some(log), facts: place.target.facts(), foreign_iops }
}
