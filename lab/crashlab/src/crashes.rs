//! Crashes a run at each of its operations, and judges what recovery makes of the images.

use crate::lab::{Lab, Outcome, catch_panic};
use crate::oracle::{Expected, Tolerance, judge};
use crate::path::{Continuation, Counterexample, CrashImage, CrashPoint, Torn, crashed, show};
use crate::run::{Run, Start, is_log_write, perform_from};
use crate::workload::{self, Model, Setting};
use crate::{Chance, Files, Medium, Op, SimDisk, cuts, indices, kind, units};
use pagestore::Recovery;
use pagestore::internals::{BLOCK_BYTES_MAX, newest_control};
use pagestore_disk::FileId;

/// Images of a log write during recovery of which the end landed and the beginning did not.
const ENDS_IN_RECOVERY: u64 = 6;

/// One in this many runs that go on from a crash goes on from the page cache of a killed process.
const KILLED_ONE_IN: u64 = 2;
/// One in this many failed disks is used again by the next process.
const USED_AGAIN_ONE_IN: u64 = 3;
/// Steps on such a disk.
const STEPS_AGAIN: usize = 4;

/// A place from which the laboratory goes on with another run.
struct ContinueAt {
    at: usize,
    image: CrashImage,
}

/// A run that goes on from a crash.
struct NextRun {
    point: CrashPoint,
    start: Start,
    steps: Vec<workload::Step>,
}

/// A crash during an operation of a run.
struct CrashAt<'a> {
    run: &'a Run,
    at: usize,
    in_flight: Option<&'a Op>,
    medium: &'a Medium,
    expected: Expected,
    generation: u32,
    /// Whether a run goes on from the first image.
    continues: bool,
}

impl CrashAt<'_> {
    fn failed(&self, what: &str, point: CrashPoint) -> Counterexample {
        Counterexample::after_crash(crashed(self.generation, self.at, self.in_flight, what), point)
    }

    fn point(&self, image: CrashImage, drawn: Chance, judging: Chance) -> CrashPoint {
        CrashPoint { place: self.run.place(self.at), image, drawn, judging }
    }
}

/// The test of a workload in progress.
pub(crate) struct Judge<'a> {
    pub lab: &'a Lab,
    /// The totals so far.
    pub outcome: Outcome,
}

impl Judge<'_> {
    /// Crashes at every operation.
    pub(crate) fn judge_run(
        &mut self,
        run: &Run,
        chance: &mut Chance,
        generation: u32,
    ) -> Result<(), Counterexample> {
        let mut medium = run.start.clone();
        let continued = self.lab.places_to_continue(run, chance, generation);
        for at in 0..=run.trace.len() {
            let in_flight = run.trace.get(at);
            let expected = run.expected(at);
            let here = || continued.iter().filter(|place| place.at == at);
            if at == run.trace.len() || here().next().is_some() || run.setting.kind.is_crashed(chance) {
                let continues = here().any(|place| matches!(place.image, CrashImage::Plain(_)));
                let crash = CrashAt { run, at, in_flight, medium: &medium, expected, generation, continues };
                self.judge_images(&crash, chance)?;
                self.judge_truncated(&crash, chance)?;
                self.judge_units(&crash, chance)?;
                for place in here() {
                    match place.image {
                        CrashImage::Torn(torn) => self.judge_torn(&crash, torn, chance)?,
                        CrashImage::Killed => self.judge_killed(&crash, chance)?,
                        CrashImage::Plain(_) | CrashImage::Cut | CrashImage::Units => {}
                    }
                }
            }
            in_flight.into_iter().for_each(|op| medium.apply(op));
        }
        Ok(())
    }

    /// Judges the images of a crash, and goes on from the first one where that is wanted.
    fn judge_images(&mut self, crash: &CrashAt<'_>, chance: &mut Chance) -> Result<(), Counterexample> {
        let CrashAt { run, at, generation, .. } = *crash;
        let drawn = chance.clone();
        let images = self.lab.images_at(run, crash.medium, at, chance, generation);
        for (image, files) in images.into_iter().enumerate() {
            let point = crash.point(CrashImage::Plain(image), drawn.clone(), chance.clone());
            let found = self.lab.judge(run, &files, crash.expected, chance, generation);
            let found = found.map_err(|what| crash.failed(&what, point.clone()))?;
            self.outcome.crash_points += 1;
            self.outcome.in_recovery += u64::from(is_in_recovery(run, at, generation));
            if let Some(found) = found
                && image == 0
                && crash.continues
            {
                let start = Start::after_power_failure(files, found);
                let steps = kind::draw_again(chance, run.setting.kind, self.lab.steps / 3);
                self.continue_from(run, NextRun { point, start, steps }, chance, generation + 1)?;
            }
        }
        Ok(())
    }

    /// Judges the same crash with a truncated file, where that is drawn.
    fn judge_truncated(&mut self, crash: &CrashAt<'_>, chance: &Chance) -> Result<(), Counterexample> {
        let Some(mut aside) = cuts::is_drawn(chance) else { return Ok(()) };
        let drawn = aside.clone();
        let vlf_bytes = crash.run.setting.layout.vlf_bytes;
        let files = cuts::cut(crash.medium, crash.in_flight, vlf_bytes, &mut aside);
        let expected = Expected { tolerance: Tolerance::Reported, ..crash.expected };
        let point = crash.point(CrashImage::Cut, drawn, aside.clone());
        let found = self.lab.judge(crash.run, &files, expected, &mut aside, crash.generation);
        let found = found.map_err(|what| crash.failed(&format!("a file cut short: {what}"), point))?;
        self.outcome.crash_points += 1;
        self.outcome.damage_reported += u64::from(found.is_none());
        Ok(())
    }

    /// Judges the same crash on a device with large units, where that is drawn.
    fn judge_units(&mut self, crash: &CrashAt<'_>, chance: &Chance) -> Result<(), Counterexample> {
        let Some(mut aside) = units::is_drawn(chance) else { return Ok(()) };
        let drawn = aside.clone();
        let image = units::crash(crash.run, crash.medium, crash.at, &mut aside);
        let Some((files, expected)) = image else { return Ok(()) };
        let point = crash.point(CrashImage::Units, drawn, aside.clone());
        let found = self.lab.judge(crash.run, &files, expected, &mut aside, crash.generation);
        let found = found.map_err(|what| crash.failed(&format!("a large unit damaged: {what}"), point))?;
        self.outcome.crash_points += 1;
        self.outcome.damage_reported += u64::from(found.is_none());
        Ok(())
    }

    /// Judges what a killed process leaves to the page cache, and goes on from it: now power failures may lose what recovery
    /// has read.
    fn judge_killed(&mut self, crash: &CrashAt<'_>, chance: &mut Chance) -> Result<(), Counterexample> {
        let drawn = chance.clone();
        let medium = crash.medium.killed(crash.in_flight, chance);
        let point = crash.point(CrashImage::Killed, drawn, chance.clone());
        let found = self.lab.judge(crash.run, &medium.cached(), crash.expected, chance, crash.generation);
        let found = found.map_err(|what| crash.failed(&what, point.clone()))?;
        self.outcome.crash_points += 1;
        self.outcome.kills += 1;
        let Some((found, _)) = found else { return Ok(()) };
        let start =
            Start::after_kill(medium, crash.run, crash.expected.created, crash.expected.least..=found);
        let steps = kind::draw_again(chance, crash.run.setting.kind, self.lab.steps / 3);
        self.continue_from(crash.run, NextRun { point, start, steps }, chance, crash.generation + 1)
    }

    /// Judges a crash that tears the write in flight, and goes on from it.
    fn judge_torn(
        &mut self,
        crash: &CrashAt<'_>,
        torn: Torn,
        chance: &mut Chance,
    ) -> Result<(), Counterexample> {
        let drawn = chance.clone();
        let op = crash.in_flight.expect("a torn write is in flight");
        let files = tear(crash.medium, op, torn, chance);
        let point = crash.point(CrashImage::Torn(torn), drawn, chance.clone());
        let found = self.lab.judge(crash.run, &files, crash.expected, chance, crash.generation);
        let found = found.map_err(|what| crash.failed(&what, point.clone()))?;
        self.outcome.crash_points += 1;
        if let Some(found) = found {
            let (start, steps) = after_torn(crash.run, torn, files, found, chance);
            let next = NextRun { point, start, steps };
            self.continue_from(crash.run, next, chance, crash.generation + 1)?;
        }
        Ok(())
    }

    /// Opens an image, works on it, and crashes that run at every operation.
    fn continue_from(
        &mut self,
        before: &Run,
        next: NextRun,
        chance: &mut Chance,
        generation: u32,
    ) -> Result<(), Counterexample> {
        let NextRun { point, start, steps } = next;
        let mut setting = before.setting;
        setting.options.recovery = Setting::draw_recovery(chance);
        let judged = match catch_panic(|| perform_from(setting, start, &steps)) {
            Ok(Some(run)) => {
                self.outcome.runs += 1;
                self.outcome.survived += run.survived.total();
                self.judge_run(&run, chance, generation)
            }
            Ok(None) => {
                self.outcome.damage_reported += 1;
                Ok(())
            }
            Err(what) => Err(format!("generation {generation}: {what}").into()),
        };
        judged.map_err(|found| {
            found.preceded_by(Continuation { point, recovery: setting.options.recovery, steps })
        })
    }

    /// Crashes a run whose disk has failed or has acknowledged a write that it did not do.
    pub(crate) fn judge_fault(
        &mut self,
        run: &Run,
        everywhere: std::ops::RangeInclusive<usize>,
        chance: &mut Chance,
    ) -> Result<(), String> {
        let (fault, fault_at) = run.fault.expect("a run with a fault");
        let mut medium = run.start.clone();
        for at in 0..=run.trace.len() {
            let in_flight = run.trace.get(at);
            // Before the fault the run equals the one without.
            if at >= fault_at && (everywhere.contains(&at) || chance.once_in(4)) {
                let expected = run.expected_after_fault(at);
                let files = medium.crash(in_flight, chance);
                let recovery = Setting::draw_recovery(chance);
                let judged = judge(run, &files, expected, recovery, chance).map_err(|what| {
                    format!(
                        "{fault:?} at operation {fault_at} ({}), crash at {at} ({}): {what}",
                        show(run.trace.get(fault_at)),
                        show(in_flight)
                    )
                })?;
                self.outcome.damage_reported += u64::from(judged.is_none());
                self.outcome.after_faults += 1;
                self.outcome.crash_points += 1;
                let is_mixed = judged.is_some_and(|(last, found)| run.state(last) != Some(&found));
                self.outcome.unnoticed += u64::from(is_mixed && expected.tolerance == Tolerance::Stale);
            }
            if let Some(op) = in_flight {
                medium.apply(op);
            }
        }
        if fault.is_reported() && chance.clone().once_in(USED_AGAIN_ONE_IN) {
            self.judge_disk_used_again(run, &medium, &mut Chance::new(chance.clone().draw()))?;
        }
        Ok(())
    }

    /// After an error of the disk another process opens the store, whose writes and syncs succeed, and a power failure comes
    /// during each of its operations.
    fn judge_disk_used_again(
        &mut self,
        run: &Run,
        medium: &Medium,
        chance: &mut Chance,
    ) -> Result<(), String> {
        let expected = run.expected(run.trace.len());
        let medium = medium.killed(None, chance);
        let why = |what: String| {
            let (fault, at) = run.fault.expect("a run with a fault");
            format!(
                "{fault:?} at operation {at} ({}), and a process after it: {what}",
                show(run.trace.get(at))
            )
        };
        let recovery = Setting::draw_recovery(chance);
        let found = judge(run, &medium.cached(), expected, recovery, chance).map_err(why)?;
        self.outcome.crash_points += 1;
        self.outcome.kills += 1;
        let Some((found, _)) = found else { return Ok(()) };
        let start = Start::after_kill(medium, run, expected.created, expected.least..=found);
        let steps = kind::draw_again(chance, run.setting.kind, STEPS_AGAIN);
        let again =
            perform_from(run.setting, start, &steps).map_err(why)?.ok_or("no damage may be reported")?;
        self.outcome.runs += 1;
        self.judge_run(&again, chance, run.setting.kind.generations()).map_err(|found| why(found.what))
    }

    /// A device that ignores flushes loses the log and the control file since a drawn operation, and keeps all pages: those that
    /// are newer than the log are reported.
    pub(crate) fn judge_newer_pages(&mut self, run: &Run, chance: &mut Chance) -> Result<(), String> {
        let end = at_the_end(run);
        for _ in 0..self.lab.images {
            let at = chance.below(run.trace.len() as u64 + 1) as usize;
            let mut medium = run.start.clone();
            run.trace[..at].iter().for_each(|op| medium.apply(op));
            let mut files = medium.crash(None, chance);
            files[FileId::Data as usize] = end.crash(None, chance)[FileId::Data as usize].clone();
            let expected = Expected { tolerance: Tolerance::Reported, ..run.expected(at) };
            let recovery = Setting::draw_recovery(chance);
            let judged = judge(run, &files, expected, recovery, chance)
                .map_err(|what| format!("pages of the end, log of operation {at}: {what}"))?;
            self.outcome.damage_reported += u64::from(judged.is_none());
            self.outcome.crash_points += 1;
        }
        Ok(())
    }

    /// Flips bits of what was durable at the end of a run.
    pub(crate) fn judge_rot(&mut self, run: &Run, chance: &mut Chance) -> Result<(), String> {
        let medium = at_the_end(run);
        for _ in 0..self.lab.images * 8 {
            let mut files = medium.crash(None, chance);
            let file = FileId::ALL[chance.below(3) as usize];
            let bytes = &files[file as usize];
            if bytes.is_empty() {
                continue;
            }
            let mut at = chance.below(bytes.len() as u64) as usize;
            if file == FileId::Log && chance.once_in(2) {
                at = indices::byte_of_index(bytes, chance).unwrap_or(at);
            } else if file == FileId::Log && chance.once_in(4) {
                at = indices::byte_of_first_block(&files, run.setting.layout.vlf_bytes, chance).unwrap_or(at);
            }
            files[file as usize][at] ^= 1 << chance.below(8);
            let recovery = Setting::draw_recovery(chance);
            self.judge_damaged(run, &files, (file, at), recovery, chance)
                .map_err(|what| format!("bit rot at {at} of the {file} file: {what}"))?;
        }
        Ok(())
    }

    /// Changes indices that were durable at the end of a run: they list other pages and records than they should, in a valid
    /// order and number.
    pub(crate) fn judge_misled(&mut self, run: &Run, chance: &mut Chance) -> Result<(), String> {
        let medium = at_the_end(run);
        for _ in 0..self.lab.images * 2 {
            let mut files = medium.crash(None, chance);
            let Some(at) = indices::mislead(&mut files, chance) else { return Ok(()) };
            self.judge_damaged(run, &files, (FileId::Log, at), Recovery::Instant, chance)
                .map_err(|what| format!("a misleading index at {at} of the log file: {what}"))?;
        }
        Ok(())
    }

    /// Judges files of which a byte is damaged: recovery reports the damage, or it does no harm.
    fn judge_damaged(
        &mut self,
        run: &Run,
        files: &Files,
        damaged: (FileId, usize),
        recovery: Recovery,
        chance: &mut Chance,
    ) -> Result<(), String> {
        let mut expected = Expected { tolerance: Tolerance::Reported, ..run.expected(run.trace.len()) };
        if let Some(before) = run.before_last_log_write(damaged) {
            expected.least = expected.least.min(before);
        }
        let judged = judge(run, files, expected, recovery, chance)?;
        self.outcome.damage_reported += u64::from(judged.is_none());
        self.outcome.crash_points += 1;
        Ok(())
    }
}

/// The start and the steps of a run after a torn write.
fn after_torn(
    before: &Run,
    torn: Torn,
    mut files: Files,
    found: (u64, Model),
    chance: &mut Chance,
) -> (Start, Vec<workload::Step>) {
    let rotten = torn.spoil_control_if_needed(&mut files);
    // Together the steps fill a whole block.
    let value_bytes = if before.setting.layout.log_sector_bytes > 512 { 20 } else { 900 };
    let steps = match torn {
        Torn::FirstBlocks => workload::draw_small(chance, 3, value_bytes),
        Torn::LastBlocks => workload::draw_small(chance, 24, value_bytes),
        Torn::AllButTheEnd => Vec::new(),
    };
    (Start { rotten, ..Start::after_power_failure(files, found) }, steps)
}

/// The medium after all operations of a run.
fn at_the_end(run: &Run) -> Medium {
    let mut medium = run.start.clone();
    run.trace.iter().for_each(|op| medium.apply(op));
    medium
}

impl Lab {
    /// The images that a crash during operation `at` may leave.
    pub(crate) fn images_at(
        &self,
        run: &Run,
        medium: &Medium,
        at: usize,
        chance: &mut Chance,
        generation: u32,
    ) -> Vec<Files> {
        let in_flight = run.trace.get(at);
        let mut images: Vec<Files> =
            (0..self.images(run.setting.kind)).map(|_| medium.crash(in_flight, chance)).collect();
        if let Some(op) = in_flight.filter(|op| is_in_recovery(run, at, generation) && is_log_write(op)) {
            images.extend((0..ENDS_IN_RECOVERY).map(|_| medium.crash_with_end(op, chance)));
        }
        images
    }

    /// Recovers an image and asks the oracle. A panic of the engine is a failure.
    pub(crate) fn judge(
        &self,
        run: &Run,
        files: &Files,
        expected: Expected,
        chance: &mut Chance,
        #[cfg_attr(not(test), expect(unused_variables, reason = "a broken oracle asks for it"))]
        generation: u32,
    ) -> Result<Option<(u64, Model)>, String> {
        let found = catch_panic(|| {
            let recovery = Setting::draw_recovery(chance);
            judge(run, files, expected, recovery, chance)
        })?;
        #[cfg(test)]
        if let (Some(broken), Some((_, model))) = (self.broken, &found)
            && broken(generation, model)
        {
            return Err("a broken oracle says so".into());
        }
        Ok(found)
    }

    /// Places drawn at random, and some that chance alone would rarely hit.
    fn places_to_continue(&self, run: &Run, chance: &mut Chance, generation: u32) -> Vec<ContinueAt> {
        if generation >= run.setting.kind.generations() {
            return Vec::new();
        }
        let mut places: Vec<ContinueAt> = (0..self.continued(run.setting.kind))
            .map(|_| {
                let at = chance.below(run.trace.len() as u64 + 1) as usize;
                let is_killed = Chance::new(chance.clone().draw() ^ 0x0911_0000).once_in(KILLED_ONE_IN);
                ContinueAt { at, image: if is_killed { CrashImage::Killed } else { CrashImage::Plain(0) } }
            })
            .collect();
        let log_writes = |least: usize, most: usize| -> Vec<usize> {
            let fits =
                |op: &Op| matches!(op, Op::Write { bytes, .. } if (least..=most).contains(&bytes.len()));
            (run.opened..run.trace.len())
                .filter(|at| is_log_write(&run.trace[*at]) && fits(&run.trace[*at]))
                .collect()
        };
        let mut pick = |from: &[usize], torn: Torn| {
            if !from.is_empty() {
                let at = from[chance.below(from.len() as u64) as usize];
                places.push(ContinueAt { at, image: CrashImage::Torn(torn) });
            }
        };
        if generation < 2 {
            let several = log_writes(BLOCK_BYTES_MAX + 1, usize::MAX);
            pick(&several, Torn::FirstBlocks);
            // Up to the first checkpoint only one copy of the control file knows this opening.
            let alone = run.trace[run.opened..].iter().position(is_control_write).unwrap_or(usize::MAX);
            let alone: Vec<_> =
                several.into_iter().filter(|at| run.opened > 0 && at - run.opened < alone).collect();
            pick(&alone, Torn::LastBlocks);
            let sector = run.setting.layout.log_sector_bytes;
            if generation == 0 && sector > 512 {
                pick(&log_writes(sector, sector), Torn::AllButTheEnd);
            }
        }
        places
    }
}

impl Torn {
    /// Spoils the newest copy of the control file where the shape needs that; returns whether it did. Without that copy the
    /// next opening takes the same epoch as this one, and only the chain distinguishes the blocks of the two.
    pub(crate) fn spoil_control_if_needed(self, files: &mut Files) -> bool {
        let rotten = self == Torn::LastBlocks;
        if rotten {
            spoil_newest_control(files);
        }
        rotten
    }
}

/// Whether operation `at` belongs to the recovery of a crashed store.
fn is_in_recovery(run: &Run, at: usize, generation: u32) -> bool {
    generation > 0 && at < run.opened
}

/// The files after a crash that tears the write in flight in this shape.
pub(crate) fn tear(medium: &Medium, op: &Op, torn: Torn, chance: &mut Chance) -> Files {
    let Op::Write { bytes, .. } = op else { unreachable!("log writes are torn") };
    let sectors = bytes.len() / 512;
    let border = 1 + chance.below(sectors as u64 - 1) as usize;
    match torn {
        Torn::FirstBlocks => medium.crash_landing(op, chance, |sector| sector < border),
        Torn::LastBlocks => medium.crash_landing(op, chance, |sector| sector >= border),
        Torn::AllButTheEnd => {
            let mut files = medium.crash_landing(op, chance, |_| true);
            if let Op::Write { file, offset, .. } = op {
                let end = *offset as usize + bytes.len();
                files[*file as usize][end - 512..end].iter_mut().for_each(|byte| *byte = chance.draw() as u8);
            }
            files
        }
    }
}

fn is_control_write(op: &Op) -> bool {
    matches!(op, Op::Write { file: FileId::Control, .. })
}

/// Flips a bit of the newest copy of the control file.
fn spoil_newest_control(files: &mut Files) {
    let disk = SimDisk::holding(files.clone());
    if let Ok(Some(newest)) = newest_control(&disk) {
        files[FileId::Control as usize][newest.offset as usize + 20] ^= 1;
    }
}
