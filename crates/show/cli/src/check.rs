mod first;

use crate::measure::{How, TestPlace, keep, measure_directory};
use capability::Capability;
use collect::{FileNames, Source};
use everyday::{JudgedVolume, Known, Observer, Scope, judge_volumes};
use filestats::{Profile, ServiceLevel};
use history::History;
use report::{Check, FirstAnswer, Phase};
use simulate::{Advice, Demand};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use storage::{Target, Workspace};
use terminal::{
    Done, FINE, Failure, Output, SourceName, interrupt, kept, no_answer, page, problem_found, workspace,
};
use verdict::{Answer, Figures, Observation, VerdictKind};
use workload::parse_duration;

/// Arguments of `headroom check`.
#[derive(clap::Args)]
#[command(after_help = "\
Without --source: measures DIR, runs an everyday SQLite workload and an index \
rebuild in it, judges, and removes what it made. A preliminary answer comes within \
a minute; it is refined for another one. Ctrl-C keeps what is known.
With --source: watches a live database without any load on its storage. What the \
storage gives is known from headroom measure, or is measured with --measure. All \
volumes that its files lie on are judged; the answer is the one that binds.

Verdicts: healthy, saturated, storage degraded, throttled, serialized, burst, \
not storage, nobody waits, cannot say.
Exit code: 0 for healthy and nobody waits, 3 for cannot say, else 1; and 1 where \
the headroom is below that of --fail-below.

Examples:
  headroom check --html report.html
  headroom check --source sqlite:/data/shop.db --service-level 10/10/5
  headroom check --source postgres: --fail-below 2 || page-on-call")]
pub struct CheckArgs {
    /// Directory on the storage to judge [default: all volumes of the database with --source, else here]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Judge this live database, as in sqlite:/data/shop.db, postgres:host=/run/postgresql, mysql: or process:PID
    #[arg(long, value_parser = collect::parse_source_argument)]
    source: Option<SourceName>,
    /// How long to observe [default: 20s]
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    duration: Option<Duration>,
    /// Measure the storage now: always, or also with --source (this puts load on it)
    #[arg(long)]
    measure: bool,
    /// End with the preliminary answer, within a minute
    #[arg(long, conflicts_with = "source")]
    preliminary: bool,
    /// Exit with code 1 if the headroom is below this: 2 is twice today's demand
    #[arg(long, value_name = "TIMES", value_parser = some_times)]
    fail_below: Option<f64>,
    #[command(flatten)]
    how: How,
    /// Latency objective: oltp, warehouse, or read/write/log milliseconds
    #[arg(long, default_value = "oltp", value_name = "LEVEL")]
    service_level: ServiceLevel,
    /// Scale of latency bands: randal, microsoft-css, microsoft-2012, first-responder-kit, pal, dbatools, nvme
    #[arg(long, default_value = "randal", value_parser = Profile::named, value_name = "NAME")]
    bands: Profile,
    /// Also write the answer as a page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write what was observed and what was known of the storage, as JSON for the example `judge` of the crate `verdict`
    #[arg(long, value_name = "FILE", hide = true)]
    keep_observation: Option<PathBuf>,
}

/// A time that is not 0.
fn some_time(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Duration::ZERO) => Err("in no time nothing is seen; give a time as in 20s or 2m".into()),
        time => time.map_err(|error| error.to_string()),
    }
}

/// A headroom that is more than 0.
fn some_times(text: &str) -> Result<f64, String> {
    let times = text.parse().ok().filter(|times: &f64| times.is_finite() && *times > 0.0);
    times.ok_or_else(|| format!("'{text}' is not a number; give how many times today's demand, as 2 or 1.5"))
}

/// How long to watch when nothing is said.
const DURATION: Duration = Duration::from_secs(20);

/// `headroom check`.
pub fn run(args: &CheckArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let began = Instant::now();
    if args.source.as_ref().is_some_and(|source| source.counts_only_devices) {
        return Err(Failure::usage("devices: has no files that anybody waits for").with_remedy(
            "give whose files: process:, sqlite:PATH...; the device below them is watched with them",
        ));
    }
    let live = args.source.as_ref().map(|source| source.open(&[], &FileNames::default())).transpose()?;
    let dir = match (&args.dir, &live) {
        (Some(dir), _) => dir.clone(),
        (None, Some(live)) => live.directory().map(Path::to_owned).ok_or_else(|| {
            Failure::usage(format_args!("{} does not say on which storage its files lie", live.name()))
                .with_remedy("give the directory: headroom check DIR --source ...")
        })?,
        (None, None) => PathBuf::from("."),
    };
    let target = Target::open(&dir)?;
    page::check(args.html.as_deref())?;
    let mut history = kept::open_to_write(history)?;
    interrupt::install();
    let seen = match live {
        Some(live) => watch_live(args, live, target, &mut history, out)?,
        None => first::run(args, began, &target, &mut history, out)?,
    };
    let check = Check { first_answer: seen.first_answer, ..answer(args, seen.volumes, &seen.phases) };
    let stopped_s = seen.observer.stopped_ns() as f64 / 1e9;
    if stopped_s > 0.0 {
        out.warn(format_args!(
            "this program was stopped for {stopped_s:.1} s while it observed: those moments are left out"
        ));
    }
    // The answer first: a history or a page that cannot be written must not swallow it.
    out.answer(|style| report::text::check(&check, style), || report::json::check(&check));
    if let Some(path) = &args.keep_observation {
        keep_observation(path, &check)?;
    }
    seen.observer.save(&mut history)?;
    for volume in check.volumes() {
        let report = report::json::check(volume);
        history.save_verdict(volume.own_verdict(), &volume.target, &volume.source, &report)?;
    }
    page::write(args.html.as_deref(), || report::html::check(&check), out)?;
    Ok(match check.verdict.verdict {
        VerdictKind::CannotSay => no_answer(),
        kind if kind.needs_action() || is_below(check.verdict.headroom, args.fail_below) => problem_found(),
        _ => FINE,
    })
}

/// For judging the same again by other rules: `cargo run --release -p verdict --example judge FILE`.
fn keep_observation(path: &Path, check: &Check) -> Result<(), Failure> {
    let kept = serde_json::json!({ "observation": check.observation, "capability": check.capability });
    let mut file = File::create_new(path)
        .map_err(|error| Failure::new(format_args!("cannot create {}: {error}", path.display())))?;
    file.write_all(kept.to_string().as_bytes())
        .map_err(|error| Failure::new(format_args!("cannot write {}: {error}", path.display())))
}

/// Whether the headroom is known and smaller than what is wanted.
fn is_below(headroom: Option<f64>, wanted: Option<f64>) -> bool {
    headroom.zip(wanted).is_some_and(|(headroom, wanted)| headroom < wanted)
}

/// The verdict on one volume, with all that is reported with it.
fn check_of(args: &CheckArgs, volume: JudgedVolume, phases: &[Phase]) -> Check {
    let JudgedVolume { target, observation, capability, verdict } = volume;
    let exceeded = verdict.verdict == VerdictKind::DemandExceedsCapability;
    // Of few points a simulation would know little, and the first answer must not wait for it.
    let advice = capability.as_ref().filter(|capability| exceeded && !capability.is_preliminary());
    let advice = advice.and_then(|capability| advice_for(&observation, capability));
    Check {
        verdict,
        observation,
        capability,
        profile: args.bands,
        service_level: args.service_level,
        source: args.source.as_ref().map_or("an everyday SQLite workload".into(), ToString::to_string),
        target: target.path().display().to_string(),
        phases: phases.to_vec(),
        advice,
        version: env!("CARGO_PKG_VERSION").into(),
        first_answer: None,
        others: Vec::new(),
        alone: None,
        headroom_on: None,
    }
}

/// The verdict on the volume that binds, with those on the others.
fn answer(args: &CheckArgs, volumes: Vec<JudgedVolume>, phases: &[Phase]) -> Check {
    let mut volumes: Vec<Check> = volumes.into_iter().map(|volume| check_of(args, volume, phases)).collect();
    let judged: Vec<verdict::JudgedVolume> = volumes
        .iter()
        .map(|volume| verdict::JudgedVolume {
            name: volume.place(),
            verdict: &volume.verdict,
            outstanding: volume.outstanding(),
        })
        .collect();
    let answer = Answer::from_volumes(&judged).expect("a database has a volume");
    let headroom_on = answer.headroom_of.filter(|at| *at != answer.volume);
    let headroom_on = headroom_on.map(|at| volumes[at].target.clone());
    let mut check = volumes.remove(answer.volume);
    if !volumes.is_empty() {
        check.alone = Some(std::mem::replace(&mut check.verdict, answer.verdict));
        check.headroom_on = headroom_on;
        check.others = volumes;
    }
    check
}

/// How far each remedy would carry what the device, or at least the database, was seen to do.
fn advice_for(observation: &Observation, capability: &Capability) -> Option<Advice> {
    let figures = Figures::from_moments(&observation.moments, Some(capability));
    let delta = figures.device.as_ref().or(figures.database.as_ref())?;
    let (read, write) = (delta.counters.read, delta.counters.write);
    let bytes = |ops: filestats::Ops| ops.average_bytes().known().unwrap_or(0.0);
    let demand = Demand {
        reads_per_s: delta.per_second(&read),
        read_bytes: bytes(read),
        writes_per_s: delta.per_second(&write),
        write_bytes: bytes(write),
        commits_per_s: figures.commits.count as f64 / figures.elapsed_s.max(1e-9),
    };
    let fit = simulate::fit(capability).ok()?;
    Some(Advice { remedies: simulate::remedies(&fit, &demand), error: fit.error })
}

/// Inputs of a verdict.
struct Seen {
    observer: Observer<'static>,
    volumes: Vec<JudgedVolume>,
    phases: Vec<Phase>,
    first_answer: Option<FirstAnswer>,
}

/// Observes a live database; no load unless it was requested.
fn watch_live(
    args: &CheckArgs,
    live: Box<dyn Source>,
    target: Target,
    history: &mut History,
    out: &mut Output,
) -> Result<Seen, Failure> {
    let name = live.name().to_owned();
    // A directory that is named is the volume in question.
    let scope = if args.dir.is_some() { Scope::One } else { Scope::All };
    let dir = target.path().to_owned();
    let mut observer = Observer::new(live, target, scope);
    let volumes = observer.find_volumes().map_err(failure)?;
    let mut measured = HashMap::new();
    if args.measure {
        measured = measure_volumes(args, &volumes, history, out)?;
    } else {
        let known = known(args, &volumes[0], history)?;
        let dir = dir.display();
        match (known.capability, known.seen) {
            (Some(_), _) => {}
            (None, Some(_)) => out.note(format_args!(
                "what the storage below {dir} can give was never measured: judged by what it was seen to give"
            )),
            (None, None) => out.warn(format_args!(
                "what the storage below {dir} can give was never measured: headroom measure {dir}"
            )),
        }
    }
    let duration = args.duration.unwrap_or(DURATION);
    let from_unix_ns = host::unix_ns();
    observer.sample(None).map_err(failure)?;
    observer
        .watch(
            |elapsed| elapsed >= duration || interrupt::requested(),
            |elapsed| out.progress(format_args!("watching {name}"), Some(duration.saturating_sub(elapsed))),
        )
        .map_err(failure)?;
    let phase = Phase { name: "watched".into(), from_unix_ns, to_unix_ns: host::unix_ns() };
    let volumes = judge_volumes(&mut observer, &args.service_level, |target| {
        let now = measured.remove(target.path());
        now.map_or_else(|| known(args, target, history), |now| Ok(Known::measured(now)))
    })?;
    Ok(Seen { observer, volumes, phases: vec![phase], first_answer: None })
}

/// The history's knowledge of the storage.
fn known(args: &CheckArgs, target: &Target, history: &History) -> Result<Known, Failure> {
    Ok(Known::read(history, target.facts(), args.how.caching())?.with_credits())
}

/// Measures each volume, by its path. Where another than the first refuses, the others are judged without it.
fn measure_volumes(
    args: &CheckArgs,
    volumes: &[Target],
    history: &mut History,
    out: &mut Output,
) -> Result<HashMap<PathBuf, Capability>, Failure> {
    let mut measured = HashMap::new();
    for (at, target) in volumes.iter().enumerate() {
        let capability = workspace::open(target.path(), history, out).and_then(|workspace| {
            let capability = measure_now(args, target, &workspace, history, out)?;
            workspace::remove(workspace, out)?;
            Ok(capability)
        });
        match capability {
            Err(error) if at > 0 => out.warn(error),
            capability => {
                measured.insert(target.path().to_owned(), capability?);
            }
        }
        if interrupt::requested() {
            break;
        }
    }
    Ok(measured)
}

fn failure(error: everyday::Error) -> Failure {
    let (facts, remedy) = (error.facts(), error.remedy());
    Failure::from_parts(error, facts, remedy.map(Into::into))
}

fn measure_now(
    args: &CheckArgs,
    target: &Target,
    workspace: &Workspace,
    history: &mut History,
    out: &mut Output,
) -> Result<Capability, Failure> {
    let place = TestPlace { target, workspace };
    let capability = measure_directory(&place, &args.how, true, history, out)?;
    keep(&capability, history, out)?;
    Ok(capability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_known_headroom_is_below_a_wanted_one() {
        assert!(is_below(Some(1.9), Some(2.0)) && !is_below(Some(2.0), Some(2.0)));
        assert!(!is_below(None, Some(2.0)) && !is_below(Some(1.1), None));
    }

    #[test]
    fn a_wanted_headroom_is_a_number_above_0() {
        assert_eq!((some_times("2"), some_times("1.5")), (Ok(2.0), Ok(1.5)));
        for text in ["0", "-1", "nan", "inf", "two", ""] {
            assert!(some_times(text).unwrap_err().contains("as 2 or 1.5"), "{text}");
        }
    }
}
