//! One engine: its crash, and each recovery of the crashed image.

use super::steps::{REPORT_INTERVAL, StepKind, Steps};
use super::victim::{Recovered, Victim};
use super::work::Crash;
use super::{Context, Engine, Strategy, copy, emulated, peer};
use crate::{Error, add_notes};
use experiments::{RecoverResult, RecoverStudy};
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

/// The crash of an engine and its recoveries.
pub(super) struct Recoveries<'a, 'steps> {
    pub engine: Engine,
    pub victim: &'a mut dyn Victim,
    pub run: &'a Context<'a>,
    pub steps: &'a mut Steps<'steps>,
    pub study: &'a mut RecoverStudy,
}

impl Recoveries<'_, '_> {
    /// Crashes the engine in `dir`, and recovers the image with each strategy of the plan.
    pub(super) fn run(&mut self, dir: &Path) -> Result<(), Error> {
        let (engine, run) = (self.engine, self.run);
        let image = dir.join("image");
        fs::create_dir_all(&image).map_err(Error::io("make", &image))?;
        self.steps.begin(engine, StepKind::Making);
        let steps = &mut *self.steps;
        let crash = self.victim.crash(&image, run, &mut |kind, share| steps.report_share(kind, share))?;
        let Some(mut crash) = crash else { return Ok(()) };
        self.steps.end();
        if let Engine::Embedded(engine) = engine {
            crash.log_bytes = peer::log_bytes(engine, &image);
        }
        let done = match run.plan.emulated {
            Some(disk) => {
                let bytes = engine.image_bytes(&run.order.work);
                emulated::with_disk(disk, bytes, dir, run, &mut |mounted| {
                    self.recover_all(&crash, &image, mounted, false)
                })
            }
            None => self.recover_all(&crash, &image, dir, true),
        };
        add_notes(&mut self.study.notes, self.victim.notes());
        done
    }

    /// Recovers copies of the image in the directory `copies`, sequentially. The last strategy may get the image itself
    /// if it lies on the same storage.
    fn recover_all(
        &mut self,
        crash: &Crash,
        image: &Path,
        copies: &Path,
        last_has_image: bool,
    ) -> Result<(), Error> {
        let strategies = self.engine.strategies(self.run.plan);
        for (at, strategy) in strategies.iter().enumerate() {
            let last = at + 1 == strategies.len();
            let place = if last && last_has_image { image.into() } else { copies.join("copy") };
            if place != image {
                self.steps.announce(self.engine, StepKind::Copying);
                copy::copy(image, &place)?;
            }
            if !self.recover(*strategy, crash, &place)? {
                break;
            }
            fs::remove_dir_all(&place).map_err(Error::io("remove", &place))?;
        }
        Ok(())
    }

    /// Recovers the image in `place`; returns whether it was completed, which it is not if the experiment was stopped.
    fn recover(&mut self, strategy: Strategy, crash: &Crash, place: &Path) -> Result<bool, Error> {
        let (engine, run) = (self.engine, self.run);
        if run.stop.load(Relaxed) {
            return Ok(false);
        }
        copy::evict(place)?;
        run.set_progress(None);
        self.steps.begin(engine, StepKind::Recovering(strategy));
        let (victim, steps) = (&mut *self.victim, &mut *self.steps);
        let recovered = watched(&mut || victim.recover(place, strategy, crash, run), &mut || {
            steps.report_recovery(strategy, run.progress());
        });
        match recovered {
            Ok(recovered) => {
                add_notes(&mut self.study.notes, recovered.counted.notes.clone());
                self.study.results.push(result(engine, strategy, crash, &recovered));
            }
            Err(_) if run.stop.load(Relaxed) => return Ok(false),
            Err(error) => return Err(error),
        }
        self.steps.end();
        Ok(true)
    }
}

/// Works in a thread, and calls `report` repeatedly meanwhile.
fn watched<T: Send>(
    work: &mut (dyn FnMut() -> Result<T, Error> + Send),
    report: &mut dyn FnMut(),
) -> Result<T, Error> {
    thread::scope(|scope| {
        let worker = scope.spawn(work);
        while !worker.is_finished() {
            report();
            thread::sleep(REPORT_INTERVAL / 5);
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn result(engine: Engine, strategy: Strategy, crash: &Crash, recovered: &Recovered) -> RecoverResult {
    RecoverResult {
        engine: engine.name().into(),
        strategy,
        opened_s: recovered.opened.as_secs_f64(),
        first_read_s: recovered.first_read.as_secs_f64(),
        first_write_s: recovered.first_write.as_secs_f64(),
        full_s: recovered.full.as_secs_f64(),
        pages: recovered.counted.pages,
        page_bytes: engine.page_bytes(),
        pages_left: recovered.counted.pages_left,
        log_bytes: crash.log_bytes,
        commits: crash.commits,
        checked: recovered.compared,
        io: recovered.counted.io,
        counted_by: recovered.counted.counted_by.into(),
    }
}
