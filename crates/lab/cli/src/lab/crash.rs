//! `headroom lab crash`: the page store on a simulated disk that loses and tears; or killed on a real one.

mod real;

use pagestore::sim::{Failure as Fallen, Lab, Outcome, Step};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use terminal::{Done, FINE, Failure, Output, bad_news, interrupt};
use workload_file::values;

/// A workload's crash points grow with the square of its steps.
const STEPS_MAX: u64 = 10_000;
/// A seed may take minutes: so often it is looked whether to go on.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Arguments of `headroom lab crash`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom lab crash                                100 seeds on the simulated disk, a minute or so
  headroom lab crash --seed 5                       one seed again, as a failure names it
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
    /// Kill processes that commit and recover, on a store in this directory, instead
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
    match (&args.real, &args.child) {
        (Some(directory), Some(part)) => real::child(directory, part),
        (Some(directory), None) => real::run(directory, args.duration, history, out),
        (None, _) => simulated(args, out),
    }
}

fn texts(steps: &[Step]) -> Vec<String> {
    steps.iter().map(ToString::to_string).collect()
}

/// Runs a seed and looks now and then whether to go on; `None` where it was ended before its end.
fn beside(lab: Lab, tell: &mut impl FnMut()) -> Option<Result<Outcome, Box<Fallen>>> {
    let (send, done) = channel();
    let seed = std::thread::spawn(move || send.send(lab.run()));
    while !interrupt::requested() {
        tell();
        match done.recv_timeout(LOOK_EVERY) {
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

fn simulated(args: &CrashArgs, out: &mut Output) -> Done {
    let (first_seed, seeds) = args.seed.map_or((args.first_seed, args.seeds), |seed| (seed, 1));
    let Some(end) = first_seed.checked_add(seeds) else {
        return Err(Failure::usage(format_args!("there are no {seeds} seeds from {first_seed} on"))
            .with_remedy("fewer --seeds, or an earlier --first-seed"));
    };
    let steps = args.steps as usize;
    let begun = Instant::now();
    let mut all = Outcome::default();
    let mut done = 0;
    let mut failed = None;
    interrupt::install();
    for seed in first_seed..end {
        let own = Instant::now();
        let each = (done > 0).then(|| begun.elapsed() / u32::try_from(done).unwrap_or(u32::MAX));
        let mut tell = || {
            let taken = own.elapsed();
            let left = each.map(|each| (each * (seeds - done) as u32).saturating_sub(taken));
            let so_far = format_args!("{} crash points held in {done} of {seeds} seeds", all.crash_points);
            out.progress(format_args!("{so_far} · seed {seed}, {} s", taken.as_secs()), left);
        };
        match beside(Lab { seed, steps, ..Lab::default() }, &mut tell) {
            Some(Ok(outcome)) => all.add(&outcome),
            Some(Err(failure)) => {
                failed = Some(failure);
                break;
            }
            None => {
                out.warn("ended early: what held until then is printed");
                break;
            }
        }
        done += 1;
    }
    let seconds = begun.elapsed().as_secs_f64();
    out.answer(
        |_| {
            let held = format!(
                "{} crash points held: {} of them during recovery, {} after faults of the disk; damage was reported \
                 {} times, and {} errors were survived by who met them\n{} workloads of {done} seeds from {}, {seconds:.1} s\n",
                all.crash_points,
                all.in_recovery,
                all.after_faults,
                all.damage_reported,
                all.survived,
                all.runs,
                first_seed
            );
            match &failed {
                Some(failure) => format!("{held}\nfailed: {failure}"),
                None => held,
            }
        },
        || {
            serde_json::json!({
                "seeds": done,
                "first_seed": first_seed,
                "steps": args.steps,
                "crash_points": all.crash_points,
                "in_recovery": all.in_recovery,
                "after_faults": all.after_faults,
                "damage_reported": all.damage_reported,
                "survived": all.survived,
                "workloads": all.runs,
                "seconds": seconds,
                "failure": failed.as_ref().map(|failure| serde_json::json!({
                    "seed": failure.seed,
                    "what": failure.what,
                    "needed": texts(&failure.needed),
                    "then": failure.then.iter().map(|then| serde_json::json!({
                        "crash": then.crash,
                        "recovery": format!("{:?}", then.recovery).to_lowercase(),
                        "steps": texts(&then.steps),
                    })).collect::<Vec<_>>(),
                })),
            })
        },
    );
    Ok(if failed.is_some() { bad_news() } else { FINE })
}
