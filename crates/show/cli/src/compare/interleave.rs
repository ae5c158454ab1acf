//! `headroom compare --interleave`: both workloads in turn, A B B A, until the answer is clear.

use super::Compared;
use crate::run::{Run, RunArgs, plain, plan};
use crate::targets::{self, Opened};
use crate::traces::Traces;
use ::compare::{Comparison, InterimSchedule, Rules, Side, Verdict, pairs};
use clap::Parser;
use history::{History, SessionId};
use std::path::{Path, PathBuf};
use std::time::Duration;
use terminal::{Failure, Output, interrupt, kept};
use workload::{Plan, RunResult, parse_duration};

/// Arguments of `--interleave`.
#[derive(clap::Args)]
pub struct InterleaveArgs {
    /// Run both in turn, A B B A, until the answer is clear
    #[arg(long)]
    interleave: bool,
    /// At most so many rounds of A B B A [default: 8]
    #[arg(long, value_name = "N", requires = "interleave", conflicts_with = "budget")]
    rounds: Option<u32>,
    /// As many rounds as take at most this long
    #[arg(long, value_name = "TIME", requires = "interleave", value_parser = duration)]
    budget: Option<Duration>,
    /// Write over this file or device: its content is lost
    #[arg(long, value_name = "TARGET", requires = "interleave")]
    destroy_data: Vec<PathBuf>,
}

const ROUNDS: u32 = 8;

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

/// One side's flags, as `headroom run` takes them.
#[derive(Parser)]
#[command(name = "headroom run", no_binary_name = true, disable_help_flag = true)]
struct OneSide {
    #[command(flatten)]
    run: RunArgs,
}

impl InterleaveArgs {
    /// Whether runs are to be made.
    pub fn is_asked(&self) -> bool {
        self.interleave
    }
}

/// Runs A B B A, again and again, and looks at the pairs at the rounds fixed beforehand.
pub fn run(
    args: &InterleaveArgs,
    [a, b]: [&str; 2],
    rules: &Rules,
    history: Option<&Path>,
    out: &mut Output,
) -> Result<Compared, Failure> {
    let both = Both::of(side(a)?, side(b)?)?;
    let looks = looks(args, &both)?;
    let traces = Traces::read(&both.all)?;
    let mut history = kept::open_to_write(history)?;
    interrupt::install();
    let opened = targets::open(&both.all, &traces, &args.destroy_data, &mut history, out)?;
    out.note(format_args!(
        "at most {} rounds of A B B A, {} s each",
        looks.rounds_max(),
        both.round().as_secs_f64().ceil()
    ));
    let compared = rounds(&both, &looks, rules, (&opened, &traces), &mut history, out);
    let removed = opened.remove(&mut history, out);
    let compared = compared?;
    removed?;
    Ok(compared)
}

fn side(text: &str) -> Result<Plan, Failure> {
    let Some(words) = shlex::split(text) else {
        return Err(Failure::usage(format_args!("'{text}': a quotation mark is not closed")));
    };
    // As people copy it.
    let given = words.iter().map(String::as_str).collect::<Vec<_>>();
    let flags = match given.as_slice() {
        ["headroom", "run", flags @ ..] | ["run", flags @ ..] => flags,
        flags => flags,
    };
    let parsed = OneSide::try_parse_from(flags).map_err(|error| {
        let text = error.to_string();
        let why = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Failure::usage(format_args!("{why} (in '{}')", flags.join(" ")))
            .with_remedy("flags of headroom run, which headroom run --help lists")
    })?;
    plan(&parsed.run)
}

/// Both plans on targets that they share where they name the same.
struct Both {
    all: Plan,
    a: Plan,
    b: Plan,
}

impl Both {
    fn of(a: Plan, mut b: Plan) -> Result<Both, Failure> {
        let count = |plan: &Plan| plan.phases.iter().map(|phase| phase.workloads.len()).sum::<usize>();
        if count(&a) != count(&b) {
            let what = format!("A has {} workloads and B {}: they cannot be paired", count(&a), count(&b));
            return Err(Failure::usage(what));
        }
        let mut targets = a.targets.clone();
        let place = |target: &_| {
            targets.iter().position(|known| known == target).unwrap_or_else(|| {
                targets.push(workload::PlanTarget::clone(target));
                targets.len() - 1
            })
        };
        let places: Vec<usize> = b.targets.iter().map(place).collect();
        for placed in b.phases.iter_mut().flat_map(|phase| &mut phase.workloads) {
            placed.target = places[placed.target];
        }
        let phases = a.phases.iter().chain(&b.phases).cloned().collect();
        let with = |phases| Plan { targets: targets.clone(), phases };
        Ok(Both { all: with(phases), a: with(a.phases), b: with(b.phases) })
    }

    /// How long A B B A takes.
    fn round(&self) -> Duration {
        self.all.phases.iter().map(|phase| 2 * phase.length.total()).sum()
    }
}

fn looks(args: &InterleaveArgs, both: &Both) -> Result<InterimSchedule, Failure> {
    let rounds = match args.budget {
        None => args.rounds.unwrap_or(ROUNDS),
        Some(budget) => {
            let rounds = budget.as_secs_f64() / both.round().as_secs_f64().max(1e-3);
            rounds.min(f64::from(InterimSchedule::ROUNDS_MAX)) as u32
        }
    };
    InterimSchedule::for_rounds(rounds).ok_or_else(|| {
        let what = format!("{rounds} rounds of A B B A say nothing of their noise: two are needed");
        let needed = (2 * both.round()).as_secs_f64().ceil();
        Failure::usage(what).with_remedy(format_args!("--budget {needed}s, or a shorter --duration of both"))
    })
}

/// The results of one side, a list of repeats for each of its workloads.
type Repeats = Vec<Vec<RunResult>>;

fn rounds(
    both: &Both,
    looks: &InterimSchedule,
    rules: &Rules,
    on: (&Opened, &Traces),
    history: &mut History,
    out: &mut Output,
) -> Result<Compared, Failure> {
    let session = history.begin_session()?;
    let (mut a, mut b) = (Repeats::new(), Repeats::new());
    for round in 1..=looks.rounds_max() {
        for is_b in [false, true, true, false] {
            let (plan, name, into) = if is_b { (&both.b, "B", &mut b) } else { (&both.a, "A", &mut a) };
            one_run(plan, name, into, (on, session), history, out)?;
        }
        let ended = interrupt::requested() || round == looks.rounds_max();
        if !ended && !looks.is_due(round) {
            continue;
        }
        // Ended early it is one look as well, in place of those that do not come any more.
        let comparisons = compare(&a, &b, looks, rules);
        let open = comparisons.iter().any(|compared| compared.verdict == Verdict::CannotTell);
        if ended || !open {
            return if comparisons.is_empty() {
                Err(Failure::new("ended before there was anything to compare"))
            } else {
                Ok(Compared { comparisons, runs: [a.concat(), b.concat()] })
            };
        }
        for compared in &comparisons {
            out.note(format_args!("after {round} rounds: {}", compared.summary));
        }
    }
    unreachable!("the last round returns")
}

fn one_run(
    plan: &Plan,
    name: &str,
    into: &mut Repeats,
    ((opened, traces), session): ((&Opened, &Traces), SessionId),
    history: &mut History,
    out: &mut Output,
) -> Result<(), Failure> {
    if interrupt::requested() {
        return Ok(());
    }
    let run = Run { plan, destroy: &[], traces, how: &plain, answer: &|_, _| Ok(()) };
    let (phases, failure) = run.run_phases(opened, out);
    if let Some(failure) = failure {
        return Err(failure);
    }
    if interrupt::requested() {
        // A run that was cut short is none of the repeats.
        return Ok(());
    }
    let results: Vec<RunResult> = phases.into_iter().flat_map(|phase| phase.results).collect();
    into.resize_with(results.len(), Vec::new);
    for (repeats, result) in into.iter_mut().zip(results) {
        history.save_run_of(session, name, &result)?;
        repeats.push(result);
    }
    Ok(())
}

fn compare(a: &Repeats, b: &Repeats, looks: &InterimSchedule, rules: &Rules) -> Vec<Comparison> {
    let rules = Rules { looks: looks.count(), comparisons: a.len() as u32, ..*rules };
    let pair = |(a, b): (&Vec<RunResult>, &Vec<RunResult>)| {
        pairs(Side { name: "A", runs: a }, Side { name: "B", runs: b }, &rules)
    };
    a.iter().zip(b).map(pair).collect()
}
