//! `headroom lab crash`: the page store on a simulated disk that loses and tears; or killed on a real one.

mod real;
mod trace;

use crashlab::{Failure as CrashFailure, Lab, Outcome, Step};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use terminal::{Done, FINE, Failure, Output, interrupt, problem_found};
use workload_file::values;

/// The number of crash points grows with the square of the steps.
const STEPS_MAX: u64 = 10_000;
/// A seed may take minutes: Ctrl-C and progress are polled this often.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Arguments of `headroom lab crash`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom lab crash                                100 seeds on the simulated disk, a minute or so
  headroom lab crash --seed 5                       one seed again, as a failure names it
  headroom lab crash --replay crash-seed-5.trace    a crash of threads again, whose trace a failure has left
  headroom lab crash --real /data --duration 60s    kill -9 on a real file system, again and again
Exit code 1: a seed failed, and the steps that are needed for it are printed; or what was acknowledged is not there.")]
pub struct CrashArgs {
    /// Seeds to run
    #[arg(long, default_value_t = 100, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 0, value_name = "SEED")]
    first_seed: u64,
    /// This seed alone
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "first_seed", "real"])]
    seed: Option<u64>,
    /// Steps of each workload
    #[arg(long, default_value_t = Lab::default().steps as u64, value_name = "COUNT",
          value_parser = clap::value_parser!(u64).range(1..=STEPS_MAX))]
    steps: u64,
    /// Instead, judge again the crash of threads whose trace a failure has left in this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seeds", "first_seed", "seed", "steps", "real"])]
    replay: Option<PathBuf>,
    /// Instead, kill processes that commit and recover, on a store in this directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["seeds", "first_seed", "steps"])]
    real: Option<PathBuf>,
    /// How long
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::some_time, requires = "real")]
    duration: Duration,
    /// The part of a process that is killed
    #[arg(long, hide = true, num_args = 2, requires = "real")]
    child: Option<Vec<String>>,
}

/// `headroom lab crash`: on the simulated disk at every write and sync, or with `--real` by killing.
pub fn run(args: &CrashArgs, history: Option<&Path>, out: &mut Output) -> Done {
    if let Some(file) = &args.replay {
        return trace::replay(file, out);
    }
    match (&args.real, &args.child) {
        (Some(directory), Some(part)) => real::child(directory, part),
        (Some(directory), None) => real::run(directory, args.duration, history, out),
        (None, _) => simulated(args, out),
    }
}

/// Runs a seed in a thread and calls `report` meanwhile; `None` if it was interrupted.
fn run_seed(lab: Lab, report: &mut impl FnMut()) -> Option<Result<Outcome, Box<CrashFailure>>> {
    let (send, done) = channel();
    let seed = std::thread::spawn(move || send.send(lab.run()));
    while !interrupt::requested() {
        report();
        match done.recv_timeout(POLL_INTERVAL) {
            Ok(result) => return Some(result),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let panic = seed.join().expect_err("it ends with a result or a panic");
                std::panic::resume_unwind(panic);
            }
        }
    }
    None
}

/// The result of crashes on the simulated disk.
struct Simulated {
    first_seed: u64,
    /// Seeds without a failure.
    seeds: u64,
    steps: u64,
    all: Outcome,
    seconds: f64,
    failure: Option<Box<CrashFailure>>,
    /// The trace of a failure of threads.
    trace: Option<PathBuf>,
}

fn simulated(args: &CrashArgs, out: &mut Output) -> Done {
    let (first_seed, seeds) = args.seed.map_or((args.first_seed, args.seeds), |seed| (seed, 1));
    let Some(end) = first_seed.checked_add(seeds) else {
        return Err(Failure::usage(format_args!("there are no {seeds} seeds from {first_seed} on"))
            .with_remedy("fewer --seeds, or an earlier --first-seed"));
    };
    let steps = args.steps as usize;
    let began = Instant::now();
    let mut result = Simulated {
        first_seed,
        seeds: 0,
        steps: args.steps,
        all: Outcome::default(),
        seconds: 0.0,
        failure: None,
        trace: None,
    };
    interrupt::install();
    for seed in first_seed..end {
        let seed_began = Instant::now();
        let (done, crash_points) = (result.seeds, result.all.crash_points);
        let mean = (done > 0).then(|| began.elapsed() / u32::try_from(done).unwrap_or(u32::MAX));
        let mut report = || {
            let taken = seed_began.elapsed();
            let left = mean.map(|mean| (mean * (seeds - done) as u32).saturating_sub(taken));
            let so_far = format_args!("{crash_points} crash points held in {done} of {seeds} seeds");
            out.progress(format_args!("{so_far} · seed {seed}, {} s", taken.as_secs()), left);
        };
        match run_seed(Lab { seed, steps, ..Lab::default() }, &mut report) {
            Some(Ok(outcome)) => result.all.add(&outcome),
            Some(Err(failure)) => {
                result.trace = failure.threads.as_ref().and_then(|threads| trace::keep(threads, out));
                result.failure = Some(failure);
                break;
            }
            None => {
                out.warn("ended early: what held until then is printed");
                break;
            }
        }
        result.seeds += 1;
    }
    result.seconds = began.elapsed().as_secs_f64();
    out.answer(|_| result.text(), || result.json());
    Ok(if result.failure.is_some() { problem_found() } else { FINE })
}

impl Simulated {
    fn text(&self) -> String {
        let Simulated { first_seed, seeds, all, seconds, .. } = self;
        let held = format!(
            "{} crash points held: {} of them during recovery, {} after faults of the disk, {} of a process that was \
             killed, {} while threads ran; damage was reported {} times, {} times pages of different ages went \
             unnoticed after a sync that was not done, and callers went on after {} errors\n\
             {} workloads of {seeds} seeds from {first_seed}, {seconds:.1} s\n",
            all.crash_points,
            all.in_recovery,
            all.after_faults,
            all.kills,
            all.with_threads,
            all.damage_reported,
            all.unnoticed,
            all.survived,
            all.runs,
        );
        let failure = self.failure.as_ref().map(|failure| format!("\nfailed: {failure}")).unwrap_or_default();
        let again = |path: &PathBuf| format!("again: headroom lab crash --replay {}\n", path.display());
        held + &failure + &self.trace.as_ref().map(again).unwrap_or_default()
    }

    fn json(&self) -> Value {
        json!({
            "seeds": self.seeds,
            "first_seed": self.first_seed,
            "steps": self.steps,
            "crash_points": self.all.crash_points,
            "in_recovery": self.all.in_recovery,
            "after_faults": self.all.after_faults,
            "killed": self.all.kills,
            "with_threads": self.all.with_threads,
            "overlapping": self.all.overlapping,
            "damage_reported": self.all.damage_reported,
            "unnoticed": self.all.unnoticed,
            "survived": self.all.survived,
            "workloads": self.all.runs,
            "seconds": self.seconds,
            "trace": self.trace.as_ref().map(|path| path.display().to_string()),
            "failure": self.failure.as_ref().map(|failure| json!({
                "seed": failure.seed,
                "what": failure.what,
                "needed": texts(&failure.needed),
                "then": failure.crashes.iter().map(|then| json!({
                    "crash": then.crash,
                    "recovery": format!("{:?}", then.recovery).to_lowercase(),
                    "steps": texts(&then.steps),
                })).collect::<Vec<_>>(),
            })),
        })
    }
}

fn texts(steps: &[Step]) -> Vec<String> {
    steps.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_of_simulated_crashes_have_the_same_figures() {
        let all = Outcome { crash_points: 70, in_recovery: 20, runs: 3, ..Outcome::default() };
        let (failure, trace) = (None, None);
        let result = Simulated { first_seed: 5, seeds: 2, steps: 12, all, seconds: 1.0, failure, trace };
        let (text, json) = (result.text(), result.json());
        assert!(text.starts_with("70 crash points held: 20 of them during recovery"), "{text}");
        assert!(text.ends_with("3 workloads of 2 seeds from 5, 1.0 s\n"), "{text}");
        assert_eq!((&json["crash_points"], &json["workloads"]), (&70.into(), &3.into()));
        assert_eq!(json["failure"], Value::Null);
    }
}
