use crate::output::Output;
use crate::{Done, FINE, bad_news, interrupt};
use pagestore::sim::{Lab, Outcome};
use std::time::{Duration, Instant};

/// Arguments of `headroom lab crash`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom lab crash                          100 seeds on the simulated disk, a minute or so
  headroom lab crash --first-seed 5 --seeds 1     one seed again, as a failure names it
Exit code 1: a seed failed; the steps that are needed for it are printed.")]
pub struct CrashArgs {
    /// Seeds to run
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 0, value_name = "SEED")]
    first_seed: u64,
    /// Steps of each workload
    #[arg(long, default_value_t = Lab::default().steps, value_name = "COUNT")]
    steps: usize,
}

/// `headroom lab crash`: the page store on a disk that loses and tears, crashed at every write and sync.
pub fn run(args: &CrashArgs, out: &mut Output) -> Done {
    let begun = Instant::now();
    let mut all = Outcome::default();
    let mut done = 0;
    let mut failed = None;
    for seed in args.first_seed..args.first_seed.saturating_add(args.seeds) {
        if interrupt::asked() {
            break;
        }
        let left = Duration::from_secs_f64(
            begun.elapsed().as_secs_f64() / done.max(1) as f64 * (args.seeds - done) as f64,
        );
        out.progress(
            format_args!("seed {seed}, {} crash points held", all.crash_points),
            (done > 0).then_some(left),
        );
        match (Lab { seed, steps: args.steps, ..Lab::default() }).run() {
            Ok(outcome) => all.add(&outcome),
            Err(failure) => {
                failed = Some(failure);
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
                 {} times\n{} workloads of {done} seeds from {}, {seconds:.1} s\n",
                all.crash_points, all.in_recovery, all.after_faults, all.damage_reported, all.runs, args.first_seed
            );
            match &failed {
                Some(failure) => format!("{held}\nfailed: {failure}"),
                None => held,
            }
        },
        || {
            serde_json::json!({
                "seeds": done,
                "first_seed": args.first_seed,
                "steps": args.steps,
                "crash_points": all.crash_points,
                "in_recovery": all.in_recovery,
                "after_faults": all.after_faults,
                "damage_reported": all.damage_reported,
                "workloads": all.runs,
                "seconds": seconds,
                "failure": failed.as_ref().map(|failure| serde_json::json!({
                    "seed": failure.seed,
                    "what": failure.what,
                    "needed": failure.needed.iter().map(|step| format!("{step:?}")).collect::<Vec<_>>(),
                })),
            })
        },
    );
    Ok(if failed.is_some() { bad_news() } else { FINE })
}
