mod interleave;
mod select;

use ::compare::{Comparison, Rules, Side, Stated, Verdict};
use charts::NamedRun;
use select::{Chosen, What};
use serde::Serialize;
use std::path::{Path, PathBuf};
use terminal::{Done, FINE, Failure, Output, kept, no_answer, page, problem_found};
use workload::RunResult;

/// Arguments of `headroom compare`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom compare run:12 run:15                two runs of the history
  headroom compare before.json after.json       two outputs of headroom run --json
  headroom compare 3,5,7 4,6,8                  two groups of repeats
  headroom compare --set-baseline run:12        the reference for later results
  headroom compare baseline latest              the newest result against it
  headroom compare latest --stated 'iops=100000, p99 1ms'
  headroom compare --interleave -- '/data --outstanding 32' '/data2 --outstanding 32'

A and B: run:N or N, capability:N, FILE.json, latest, baseline; repeats with commas. With --interleave \
two workloads, each the flags of headroom run as one argument.
Exit codes: 0 B is no worse, 1 B is worse beyond noise, 3 the data do not suffice.")]
pub struct CompareArgs {
    /// The reference
    #[arg(value_name = "A")]
    a: Option<String>,
    /// The result to judge against A
    #[arg(value_name = "B")]
    b: Option<String>,
    /// Compare A with published figures: 'iops=100000', '500MiB/s', 'p99 1ms'
    #[arg(long, value_name = "FIGURES", conflicts_with_all = ["b", "interleave"])]
    stated: Option<String>,
    /// Keep these runs, or this capability, as the baseline
    #[arg(long, value_name = "ID", conflicts_with_all = ["a", "stated", "interleave"])]
    set_baseline: Option<String>,
    /// Differences of rates, means and medians within this do not matter; of p90 and above, five times it
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = margin)]
    margin: f64,
    /// Also write a page with the differences and the charts of both sides
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    interleave: interleave::InterleaveArgs,
}

fn margin(text: &str) -> Result<f64, String> {
    match text.trim().trim_end_matches('%').trim_end().parse::<f64>() {
        Ok(percent) if (0.0..=50.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("give 0 to 50 percent, as in 2%".into()),
    }
}

/// The comparisons, and the runs of A and of B.
struct Compared {
    comparisons: Vec<Comparison>,
    runs: [Vec<RunResult>; 2],
}

/// `headroom compare`.
pub fn run(args: &CompareArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let rules = Rules { margin: args.margin, ..Rules::default() };
    if args.interleave.interleave {
        let (Some(a), Some(b)) = (&args.a, &args.b) else {
            return Err(Failure::usage("--interleave runs two workloads")
                .with_remedy("headroom compare --interleave -- 'FLAGS OF A' 'FLAGS OF B'"));
        };
        page::check(args.html.as_deref())?;
        let compared = interleave::run(&args.interleave, [a, b], &rules, history, out)?;
        return answer(&compared, args.html.as_deref(), out);
    }
    if let Some(text) = &args.set_baseline {
        return set_baseline(text, history, out);
    }
    let compared = match (&args.a, &args.b, &args.stated) {
        (Some(a), None, Some(stated)) => {
            let measured = select::one(a, history)?;
            let comparisons = against_stated(&measured, stated, &rules)?;
            Compared { comparisons, runs: [measured.runs(), Vec::new()] }
        }
        (Some(a), Some(b), None) => {
            let (a, b) = select::two(a, b, history)?;
            Compared { comparisons: both(&a, &b, &rules)?, runs: [a.runs(), b.runs()] }
        }
        _ => {
            return Err(Failure::usage("give two results to compare")
                .with_remedy("headroom compare A B, or headroom compare A --stated 'iops=100000'"));
        }
    };
    answer(&compared, args.html.as_deref(), out)
}

fn set_baseline(text: &str, history: Option<&Path>, out: &mut Output) -> Done {
    let mut history = kept::open_to_change(history)?;
    let (kind, ids) = select::entries(text, &history)?;
    history.set_baseline(kind, &ids)?;
    let names: Vec<String> = ids.iter().map(|id| format!("{kind} {id}")).collect();
    out.answer(
        |_| format!("baseline: {}", names.join(", ")),
        || serde_json::json!({"baseline": {"kind": kind, "ids": ids}}),
    );
    Ok(FINE)
}

fn against_stated(measured: &Chosen, stated: &str, rules: &Rules) -> Result<Vec<Comparison>, Failure> {
    let stated = Stated::parse(stated).map_err(Failure::usage)?;
    Ok(match &measured.what {
        What::Capability(capability) => {
            vec![::compare::stated_capability(&stated, &measured.name, capability, rules)]
        }
        What::Runs(subjects) => {
            let rules = Rules { comparisons: subjects.len() as u32, ..*rules };
            let one = |runs: &Vec<RunResult>| {
                ::compare::stated(&stated, Side { name: &measured.name, runs }, &rules)
            };
            subjects.iter().map(one).collect()
        }
    })
}

fn both(a: &Chosen, b: &Chosen, rules: &Rules) -> Result<Vec<Comparison>, Failure> {
    let name_a = select::name_beside(a, b);
    match (&a.what, &b.what) {
        (What::Capability(of_a), What::Capability(of_b)) => {
            Ok(vec![::compare::capabilities(&name_a, of_a, &b.name, of_b, rules)])
        }
        (What::Runs(of_a), What::Runs(of_b)) => {
            if of_a.len() != of_b.len() {
                return Err(Failure::usage(format_args!(
                    "{} has {} results and {} has {}: it is not clear which belong together",
                    a.name,
                    of_a.len(),
                    b.name,
                    of_b.len()
                ))
                .with_remedy("compare single runs of the history: headroom history lists them"));
            }
            let rules = Rules { comparisons: of_a.len() as u32, ..*rules };
            let pair = |(of_a, of_b): (&Vec<RunResult>, &Vec<RunResult>)| {
                ::compare::runs(
                    Side { name: &name_a, runs: of_a },
                    Side { name: &b.name, runs: of_b },
                    &rules,
                )
            };
            Ok(of_a.iter().zip(of_b).map(pair).collect())
        }
        _ => Err(Failure::usage(format_args!("{} and {} are not of one kind", a.name, b.name))
            .with_remedy("compare runs with runs, and a capability with a capability")),
    }
}

/// Output of `headroom compare --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Comparisons<'a> {
    /// The verdict on all of them.
    verdict: Verdict,
    /// A comparison for each workload.
    comparisons: &'a [Comparison],
}

/// Prints it; the exit code says whether B is worse.
fn answer(compared: &Compared, html: Option<&Path>, out: &mut Output) -> Done {
    let comparisons = &compared.comparisons;
    let verdict = Verdict::overall(comparisons);
    out.answer(
        |style| {
            let texts: Vec<String> =
                comparisons.iter().map(|compared| report::text::comparison(compared, style)).collect();
            texts.join("\n")
        },
        || serde_json::json!(Comparisons { verdict, comparisons }),
    );
    let names = ["A", "B"];
    let runs: Vec<NamedRun> =
        std::iter::zip(names, &compared.runs).flat_map(|(name, runs)| NamedRun::group(name, runs)).collect();
    let command = page::command_line();
    page::write(
        html,
        || report::html::comparisons(comparisons, &runs, &command, env!("CARGO_PKG_VERSION")),
        out,
    )?;
    Ok(match verdict {
        Verdict::Slower | Verdict::Mixed => problem_found(),
        Verdict::CannotTell => no_answer(),
        Verdict::Faster | Verdict::NoDifference => FINE,
    })
}
