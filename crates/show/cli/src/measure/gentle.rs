//! `headroom measure --gentle`: storage that is in use, by short bursts of reads.

use capability::{Capability, Effort, Origin};
use gentle::{Controller, Doing, Guard, Limits, Measured, Place, Progress, Tripped, Waiting, Watch};
use history::History;
use seen::Learner;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use storage::{LiveFiles, Target};
use terminal::{Done, FINE, Failure, Output, interrupt, kept, page};
use workload::{Backend, Cap, TargetFacts, TargetKind, parse_duration};

const HEADING: &str = "On storage in use";

/// The flags of a gentle measurement.
#[derive(clap::Args, Clone)]
pub struct GentleFlags {
    /// Read existing large files below TARGET in short bursts, beside a database that works: hours, no writes
    #[arg(long, help_heading = HEADING, conflicts_with_all = ["destroy_data", "layout", "buffered", "size"])]
    pub gentle: bool,
    /// Read these files instead
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "gentle", conflicts_with = "targets", help_heading = HEADING)]
    files: Vec<PathBuf>,
    /// Share of the time in which its reads may be in flight [default: 5%]
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "gentle", help_heading = HEADING)]
    budget: Option<f64>,
    /// Share of the time in which others' I/O may become slower [default: 0.25%]
    #[arg(long, value_name = "SHARE", value_parser = share, requires = "gentle", help_heading = HEADING)]
    disturb: Option<f64>,
    /// Limit of its reads: 500/s
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "gentle", help_heading = HEADING)]
    limit: Option<f64>,
    /// Latency over which it stops: read=10ms,write=20ms [default: 10 x that of a read at rest, 20 to 200 ms]
    #[arg(long, value_name = "LATENCIES", value_parser = guard, requires = "gentle", help_heading = HEADING)]
    guard: Option<Guard>,
    /// End after this time; the same command continues later
    #[arg(long, value_name = "TIME", value_parser = parse_duration, requires = "gentle", help_heading = HEADING)]
    duration: Option<Duration>,
}

/// Share of the time for own reads, and for others' that become slower.
const BUDGET: f64 = 0.05;
const DISTURB: f64 = 0.0025;
/// Half of a point's 95 % interval, by effort.
const PRECISION: f64 = 0.05;
const PRECISION_THOROUGH: f64 = 0.025;
/// Most reads outstanding.
const OUTSTANDING_MAX: u32 = 256;
/// Progress that is older does not go on: the storage may be another one.
const PROGRESS_AGE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Interval at which progress is kept.
const KEEP_EVERY: Duration = Duration::from_secs(60);

/// "5%", and "5" as the same: a share between 0 and 1.
fn share(text: &str) -> Result<f64, String> {
    let percent: f64 = text.strip_suffix('%').unwrap_or(text).parse().unwrap_or(f64::NAN);
    if percent > 0.0 && percent <= 100.0 {
        return Ok(percent / 100.0);
    }
    Err("give a share of the time above 0 and up to 100%, as in 5% or 0.25%".into())
}

/// "500/s", and "500" as the same.
fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.strip_suffix("/s").unwrap_or(text).parse().unwrap_or(f64::NAN);
    if rate >= 1.0 && rate.is_finite() { Ok(rate) } else { Err("give reads a second, as in 500/s".into()) }
}

/// "read=10ms,write=20ms".
fn guard(text: &str) -> Result<Guard, String> {
    let mut guard = Guard::default();
    for part in text.split(',') {
        let wrong = || format!("{part}: give latencies as in read=10ms or read=10ms,write=20ms");
        let (side, time) = part.split_once('=').ok_or_else(wrong)?;
        let time = parse_duration(time).map_err(|error| error.to_string())?;
        let ns = Some(time.as_nanos() as f64).filter(|ns| *ns > 0.0).ok_or_else(wrong)?;
        match side {
            "read" => guard.read_ns = Some(ns),
            "write" => guard.write_ns = Some(ns),
            _ => return Err(wrong()),
        }
    }
    Ok(guard)
}

/// State that is kept of a measurement that is not complete.
#[derive(Serialize, Deserialize)]
struct Kept {
    /// The limits on the storage when it began.
    caps: Vec<Cap>,
    progress: Progress,
}

impl GentleFlags {
    fn limits(&self, effort: Effort) -> Limits {
        Limits {
            time_share: self.budget.unwrap_or(BUDGET),
            disturbed_share: self.disturb.unwrap_or(DISTURB),
            iops_max: self.limit,
            guard: self.guard.unwrap_or_default(),
            precision: if effort == Effort::Thorough { PRECISION_THOROUGH } else { PRECISION },
            outstanding_max: OUTSTANDING_MAX,
        }
    }

    fn open(&self, target: Option<&Path>) -> Result<LiveFiles, Failure> {
        if !self.files.is_empty() {
            return Ok(LiveFiles::open(&self.files)?);
        }
        let path = target.unwrap_or(Path::new("."));
        let kind = std::fs::metadata(path).map(|metadata| metadata.is_dir());
        if kind.unwrap_or(false) {
            return Ok(LiveFiles::in_directory(path)?);
        }
        let target = Target::open(path)?;
        Ok(match target.facts().kind {
            TargetKind::BlockDevice => LiveFiles::device(&target)?,
            _ => LiveFiles::open(&[path.to_owned()])?,
        })
    }
}

/// `headroom measure --gentle`.
pub fn run(
    flags: &GentleFlags,
    effort: Effort,
    target: Option<&Path>,
    history: Option<&Path>,
    html: Option<&Path>,
    out: &mut Output,
) -> Done {
    page::check(html)?;
    let live = flags.open(target)?;
    let mut history = kept::open_to_write(history)?;
    interrupt::install();
    let shapes = gentle::shapes(effort);
    let progress = match kept_progress(&history, &live.facts)? {
        Some(kept) if is_of(&kept, &shapes) => {
            out.note(format_args!("going on where it was: {} points are known", kept.points()));
            kept
        }
        _ => Progress::new(&shapes, host::unix_ns()),
    };
    let mut controller = Controller::new(flags.limits(effort), progress);
    let backend = measure(flags, &live, effort, &mut controller, &mut history, out)?;
    let progress = controller.progress();
    let is_complete = progress.is_complete();
    let Some(capability) = capability_of(progress, &live, effort, backend) else {
        keep_progress(&mut history, &live.facts, progress)?;
        return Err(Failure::new(format_args!("nothing is known yet of {}", live.facts.path))
            .with_remedy("the same command again: it continues"));
    };
    // The answer first: a history or a page that cannot be written must not swallow it.
    out.answer(
        |style| report::text::capability(&capability, style),
        || report::json::capability(&capability),
    );
    match is_complete {
        true => {
            history.save_capability(&capability)?;
            history.forget_gentle(&live.facts)?;
        }
        false => {
            keep_progress(&mut history, &live.facts, progress)?;
            keep_part(&capability, progress, &mut history)?;
            out.note("not complete: the same command continues where this one ended");
        }
    }
    page::write(html, || report::html::capability(&capability), out)?;
    Ok(FINE)
}

/// Runs until all is known or it is to end; keeps the progress all the while.
fn measure(
    flags: &GentleFlags,
    live: &LiveFiles,
    effort: Effort,
    controller: &mut Controller,
    history: &mut History,
    out: &mut Output,
) -> Result<Option<Backend>, Failure> {
    let began = (Instant::now(), host::unix_ns());
    let mut learner = Learner::new(history.seen(&live.facts)?.unwrap_or_default());
    let until = flags.duration.map(|duration| began.0 + duration);
    let (mut kept_at, mut curves) = (Instant::now(), 0);
    let (out, mut failure) = (RefCell::new(out), None);
    let mut doing = |doing: Doing<'_>, progress: &Progress| {
        out.borrow_mut().progress(line(doing, progress), until.map(|until| until - Instant::now()));
        match until.is_some_and(|until| Instant::now() >= until) {
            true => ControlFlow::Break(()),
            false => interrupt::break_if_requested(),
        }
    };
    let mut learned = |progress: &Progress| {
        let ended = progress.shapes.iter().filter(|shape| shape.ended.is_some()).count();
        if ended == curves && kept_at.elapsed() < KEEP_EVERY {
            return;
        }
        let mut keep = || -> Result<(), Failure> {
            keep_progress(history, &live.facts, progress)?;
            if ended > curves
                && let Some(part) = capability_of(progress, live, effort, None)
            {
                keep_part(&part, progress, history)?;
            }
            Ok(())
        };
        if let Err(error) = keep() {
            failure.get_or_insert(error);
        }
        (kept_at, curves) = (Instant::now(), ended);
    };
    let mut stopped = |tripped: &Tripped| {
        out.borrow_mut().note(format_args!("stopped: {tripped}, over the guard; it tries again later"));
    };
    let mut watch = Watch { doing: &mut doing, learned: &mut learned, stopped: &mut stopped };
    let place = Place { region: &live.region, facts: &live.facts };
    let backend = gentle::measure(place, controller, &mut learner, &mut watch).map_err(Failure::from);
    let backend = backend?;
    if let Some(failure) = failure {
        return Err(failure);
    }
    // An agent that runs at the same time saw more.
    let is_newer = history.seen(&live.facts)?.is_some_and(|seen| seen.until_unix_ns > began.1);
    if !is_newer && !learner.seen().is_empty() {
        history.save_seen(&live.facts, learner.seen())?;
    }
    Ok(backend)
}

/// "gently: random read 8 KiB, 4 outstanding", "waiting for others".
fn line(doing: Doing<'_>, progress: &Progress) -> String {
    let known = progress.points();
    match doing {
        Doing::Reading(shape, outstanding) => {
            format!("measuring gently: {shape}, {outstanding} outstanding; {known} points known")
        }
        Doing::Waiting(why, left) => {
            let why = match why {
                Waiting::Budget => "within the budget",
                Waiting::Credit => "so that others are disturbed rarely",
                Waiting::Guard => "after the guard stopped it",
                Waiting::Others => "while others are busy",
            };
            format!("measuring gently: waiting {} s, {why}; {known} points known", left.as_secs() + 1)
        }
    }
}

fn capability_of(
    progress: &Progress,
    live: &LiveFiles,
    effort: Effort,
    backend: Option<Backend>,
) -> Option<Capability> {
    let measured = Measured {
        facts: &live.facts,
        backend: backend.unwrap_or(Backend::IoUring),
        region_bytes: live.region.bytes,
        effort,
        now_unix_ns: host::unix_ns(),
        kernel: host::release(),
    };
    gentle::capability(progress, &measured)
}

/// The progress of this storage, where it is recent and the limits are the same.
fn kept_progress(history: &History, facts: &TargetFacts) -> Result<Option<Progress>, Failure> {
    // Progress of another version that cannot be read is as good as none.
    let Ok(Some((at_unix_ns, kept))) = history.gentle::<Kept>(facts) else { return Ok(None) };
    let age = Duration::from_nanos(host::unix_ns().saturating_sub(at_unix_ns));
    Ok((age <= PROGRESS_AGE_MAX && kept.caps == facts.caps).then_some(kept.progress))
}

fn is_of(progress: &Progress, shapes: &[workload::Shape]) -> bool {
    progress.shapes.iter().map(|shape| &shape.shape).eq(shapes)
}

fn keep_progress(history: &mut History, facts: &TargetFacts, progress: &Progress) -> Result<(), Failure> {
    let kept = Kept { caps: facts.caps.clone(), progress: progress.clone() };
    Ok(history.save_gentle(facts, &kept)?)
}

/// Keeps whole curves before all of them are known, unless as many are known from before.
fn keep_part(part: &Capability, progress: &Progress, history: &mut History) -> Result<(), Failure> {
    let whole: Vec<_> = progress.shapes.iter().filter(|shape| shape.ended.is_some()).collect();
    let is_whole = |curve: &capability::Curve| whole.iter().any(|shape| shape.shape == curve.workload);
    let curves: Vec<_> = part.curves.iter().filter(|curve| is_whole(curve)).cloned().collect();
    let known = history.known_capabilities(&part.target)?;
    let before = known.iter().find(|(_, known)| known.origin == Origin::Gentle);
    if before.map_or(0, |(_, before)| before.curves.len()) < curves.len() {
        history.save_capability(&Capability { curves, ..part.clone() })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_rates_and_guards_are_read_and_others_refused_with_an_example() {
        assert_eq!((share("5%"), share("0.25")), (Ok(0.05), Ok(0.0025)));
        assert_eq!((rate("500/s"), rate("7")), (Ok(500.0), Ok(7.0)));
        let both = Guard { read_ns: Some(10e6), write_ns: Some(2e9) };
        assert_eq!(guard("read=10ms,write=2s"), Ok(both));
        for wrong in ["0", "-1%", "101%", "much", "", "NaN"] {
            assert!(share(wrong).unwrap_err().contains("as in 5%"), "{wrong}");
        }
        for wrong in ["0", "-1/s", "inf", "fast"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "read", "read=", "sync=1ms", "read=0ms", "read=10ms,"] {
            assert!(guard(wrong).is_err(), "{wrong}");
        }
    }
}
