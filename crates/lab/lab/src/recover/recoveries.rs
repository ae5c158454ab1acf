//! One engine: its crash, and each recovery of what that left.

use super::steps::{Doing, Steps, TELL};
use super::victim::{Recovered, Tell, Victim};
use super::work::Crash;
use super::{Engine, Run, Strategy, copy, emulated};
use crate::Error;
use experiments::{RecoverResult, RecoverStudy};
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

/// Crashes it in a directory of its own, and recovers it in each way that was asked for.
pub(super) fn all(
    engine: Engine,
    victim: &mut dyn Victim,
    dir: &Path,
    run: &Run,
    steps: &mut Steps<'_>,
    study: &mut RecoverStudy,
) -> Result<(), Error> {
    let image = dir.join("image");
    fs::create_dir_all(&image).map_err(|source| Error::Io { doing: "make", path: image.clone(), source })?;
    steps.begin(engine, Doing::Making);
    let tell: &mut Tell<'_> = &mut |doing, share| steps.tell(doing, share);
    let Some(crash) = victim.crash(&image, run, tell)? else {
        return Ok(());
    };
    steps.end();
    let log_bytes = engine.files().and_then(|files| files.log_bytes).map(|log_bytes| log_bytes(&image));
    let crash = Crash { log_bytes: log_bytes.unwrap_or(crash.log_bytes), ..crash };
    let mut each = Each { engine, victim, image: &image, crash, run, steps, study };
    let done = match run.plan.emulated {
        Some(disk) => {
            let bytes = engine.image_bytes(&run.order.work);
            emulated::on(disk, bytes, dir, run, &mut |mounted| each.strategies(mounted, false))
        }
        None => each.strategies(dir, true),
    };
    let notes = each.victim.notes();
    add_notes(each.study, notes);
    done
}

/// The recoveries of one crash.
struct Each<'a, 'steps> {
    engine: Engine,
    victim: &'a mut dyn Victim,
    image: &'a Path,
    crash: Crash,
    run: &'a Run<'a>,
    steps: &'a mut Steps<'steps>,
    study: &'a mut RecoverStudy,
}

impl Each<'_, '_> {
    /// One after the other, in a directory where copies may lie. The last may have the image itself where it lies on
    /// the same storage.
    fn strategies(&mut self, copies: &Path, last_has_image: bool) -> Result<(), Error> {
        let strategies = self.engine.strategies(self.run.plan);
        for (at, strategy) in strategies.iter().enumerate() {
            let last = at + 1 == strategies.len();
            let place = if last && last_has_image { self.image.into() } else { copies.join("copy") };
            if !self.recover(*strategy, &place)? {
                break;
            }
            let removed = fs::remove_dir_all(&place);
            removed.map_err(|source| Error::Io { doing: "remove", path: place, source })?;
        }
        Ok(())
    }

    /// Whether it came to its end: not where the experiment was ended.
    fn recover(&mut self, strategy: Strategy, place: &Path) -> Result<bool, Error> {
        let (engine, run, crash) = (self.engine, self.run, self.crash);
        if place != self.image {
            self.steps.say(engine, Doing::Copying);
            copy::copy(self.image, place)?;
        }
        if run.stop.load(Relaxed) {
            return Ok(false);
        }
        copy::evict(place)?;
        run.tell(None);
        self.steps.begin(engine, Doing::Recovering(strategy));
        let (victim, steps) = (&mut *self.victim, &mut *self.steps);
        let recovered = watched(&mut || victim.recover(place, strategy, &crash, run), &mut || {
            steps.tell_recovery(strategy, run.told());
        });
        match recovered {
            Ok(recovered) => {
                add_notes(self.study, recovered.notes.clone());
                self.study.results.push(result(engine, strategy, &crash, recovered));
            }
            Err(_) if run.stop.load(Relaxed) => return Ok(false),
            Err(error) => return Err(error),
        }
        self.steps.end();
        Ok(true)
    }
}

/// Works in a thread, and tells now and then meanwhile.
fn watched<T: Send>(
    work: &mut (dyn FnMut() -> Result<T, Error> + Send),
    tell: &mut dyn FnMut(),
) -> Result<T, Error> {
    thread::scope(|scope| {
        let worker = scope.spawn(work);
        while !worker.is_finished() {
            tell();
            thread::sleep(TELL / 5);
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Each once.
fn add_notes(study: &mut RecoverStudy, notes: Vec<String>) {
    for note in notes {
        if !study.notes.contains(&note) {
            study.notes.push(note);
        }
    }
}

fn result(engine: Engine, strategy: Strategy, crash: &Crash, recovered: Recovered) -> RecoverResult {
    RecoverResult {
        engine: engine.name().into(),
        strategy: strategy.name().into(),
        opened_s: recovered.opened.as_secs_f64(),
        first_read_s: recovered.first_read.as_secs_f64(),
        first_write_s: recovered.first_write.as_secs_f64(),
        full_s: recovered.full.as_secs_f64(),
        pages: recovered.pages,
        page_bytes: engine.page_bytes(),
        pages_left: recovered.pages_left,
        log_bytes: crash.log_bytes,
        commits: crash.commits,
        checked: recovered.compared,
        io: recovered.io,
        counted_by: recovered.counted_by,
    }
}
