//! `headroom compare --interleave`: both workloads in turn, A B B A, until the answer is clear.

use super::Compared;
use crate::run::{RUNS_AGAIN_MAX, Run, RunArgs, STOPPED, plain};
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
    pub interleave: bool,
    /// Limit of rounds of A B B A [default: 8]
    #[arg(long, value_name = "N", requires = "interleave", conflicts_with = "budget")]
    rounds: Option<u32>,
    /// As many rounds as fit into this time
    #[arg(long, value_name = "TIME", requires = "interleave", value_parser = parse_duration)]
    budget: Option<Duration>,
    /// Write over this file or device: its content is lost
    #[arg(long, value_name = "PATH", requires = "interleave")]
    destroy_data: Vec<PathBuf>,
}

const ROUNDS: u32 = 8;

/// One side's flags, as `headroom run` takes them.
#[derive(Parser)]
#[command(name = "headroom run", no_binary_name = true, disable_help_flag = true)]
struct OneSide {
    #[command(flatten)]
    run: RunArgs,
}

/// Runs A B B A repeatedly, and compares the pairs after rounds that are fixed in advance.
pub fn run(
    args: &InterleaveArgs,
    [a, b]: [&str; 2],
    rules: &Rules,
    history: Option<&Path>,
    out: &mut Output,
) -> Result<Compared, Failure> {
    let both = Both::new(side(a)?, side(b)?)?;
    let schedule = schedule(args, &both)?;
    let traces = Traces::read(&both.all)?;
    let mut history = kept::open_to_write(history)?;
    interrupt::install();
    let opened = targets::open(&both.all, &traces, &args.destroy_data, &mut history, out)?;
    out.note(format_args!(
        "at most {} rounds of A B B A, {} s each",
        schedule.rounds_max(),
        both.round().as_secs_f64().ceil()
    ));
    let compared = Rounds { both: &both, opened: &opened, traces: &traces, history: &mut history, out }
        .run(&schedule, rules);
    let removed = opened.remove(&mut history, out);
    let compared = compared?;
    removed?;
    Ok(compared)
}

fn side(text: &str) -> Result<Plan, Failure> {
    let Some(words) = shlex::split(text) else {
        return Err(Failure::usage(format_args!("'{text}': a quotation mark is not closed")));
    };
    // Users may copy the line with the program's name.
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
    parsed.run.single_plan()
}

/// Both plans; targets with the same path are shared.
struct Both {
    all: Plan,
    a: Plan,
    b: Plan,
}

impl Both {
    fn new(a: Plan, mut b: Plan) -> Result<Both, Failure> {
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

    /// The duration of A B B A.
    fn round(&self) -> Duration {
        self.all.phases.iter().map(|phase| 2 * phase.length.total()).sum()
    }
}

fn schedule(args: &InterleaveArgs, both: &Both) -> Result<InterimSchedule, Failure> {
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

struct Rounds<'a> {
    both: &'a Both,
    opened: &'a Opened,
    traces: &'a Traces,
    history: &'a mut History,
    out: &'a mut Output,
}

impl Rounds<'_> {
    fn run(mut self, schedule: &InterimSchedule, rules: &Rules) -> Result<Compared, Failure> {
        let both = self.both;
        let session = self.history.begin_session()?;
        let (mut a, mut b) = (Repeats::new(), Repeats::new());
        for round in 1..=schedule.rounds_max() {
            for is_b in [false, true, true, false] {
                let (plan, name, into) = if is_b { (&both.b, "B", &mut b) } else { (&both.a, "A", &mut a) };
                self.run_once(plan, name, into, session)?;
            }
            let ended = interrupt::requested() || round == schedule.rounds_max();
            if !ended && !schedule.is_due(round) {
                continue;
            }
            // An early end counts as one of the planned comparisons.
            let comparisons = compare(&a, &b, schedule, rules);
            let open = comparisons.iter().any(|compared| compared.verdict == Verdict::CannotTell);
            if ended || !open {
                return if comparisons.is_empty() {
                    Err(Failure::new("ended before there was anything to compare"))
                } else {
                    Ok(Compared { comparisons, runs: [a.concat(), b.concat()] })
                };
            }
            for compared in &comparisons {
                self.out.note(format_args!("after {round} rounds: {}", compared.summary));
            }
        }
        unreachable!("the last round returns")
    }

    fn run_once(
        &mut self,
        plan: &Plan,
        name: &str,
        into: &mut Repeats,
        session: SessionId,
    ) -> Result<(), Failure> {
        if interrupt::requested() {
            return Ok(());
        }
        let run = Run { plan, destroy: &[], traces: self.traces, how: &plain, answer: &|_, _| Ok(()) };
        let mut again_left = RUNS_AGAIN_MAX;
        let results = loop {
            let (phases, failure) = run.run_phases(self.opened, self.out);
            if let Some(failure) = failure {
                return Err(failure);
            }
            if interrupt::requested() {
                // An interrupted run is not a repeat.
                return Ok(());
            }
            let results: Vec<RunResult> = phases.into_iter().flat_map(|phase| phase.results).collect();
            if !results.iter().any(RunResult::was_stopped) {
                break results;
            }
            // Neither is one in which the program was stopped.
            if again_left == 0 {
                return Err(Failure::new(format_args!(
                    "cannot compare: {STOPPED} in each of {RUNS_AGAIN_MAX} runs"
                )));
            }
            again_left -= 1;
            self.out.warn(format_args!("{STOPPED}: this run is repeated"));
        };
        if let Some(change) = results.iter().flat_map(|result| &result.target_changes).next() {
            return Err(Failure::new(format_args!("cannot compare: {change}"))
                .with_remedy("compare again, on targets that no other program changes"));
        }
        into.resize_with(results.len(), Vec::new);
        for (repeats, result) in into.iter_mut().zip(results) {
            self.history.save_run(&result, Some((session, name)))?;
            repeats.push(result);
        }
        Ok(())
    }
}

fn compare(a: &Repeats, b: &Repeats, schedule: &InterimSchedule, rules: &Rules) -> Vec<Comparison> {
    let rules = Rules { looks: schedule.count(), comparisons: a.len() as u32, ..*rules };
    let pair = |(a, b): (&Vec<RunResult>, &Vec<RunResult>)| {
        pairs(Side { name: "A", runs: a }, Side { name: "B", runs: b }, &rules)
    };
    a.iter().zip(b).map(pair).collect()
}
