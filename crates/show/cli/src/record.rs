use crate::private_file::{entries, others_can_read};
use crate::service_log::{log, stop_on_interrupt};
use history::Retention;
use record::{Event, RecordedSource, Recorder, Settings};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use terminal::{Done, FINE, Failure, Output, SourceName, interrupt, kept, text_file};
use workload_file::values;

/// Arguments of `headroom record`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom record --source sqlite:/data/shop.db            until Ctrl-C
  headroom record --sources /etc/headroom/sources          as a service

A file of sources has one a line; # begins a comment. It may hold credentials, and must then be \
readable by its owner only. Captures of the last 7 days stay, one in 5 minutes of the last 90, one an \
hour before.
Exit codes: 0 its time is over or it was ended, 2 wrong usage, 3 the history cannot be written.")]
pub struct RecordArgs {
    /// Sources to record; several may be given
    #[arg(long, value_name = "SOURCE", help = collect::source_help(), value_parser = collect::parse_source_argument)]
    source: Vec<SourceName>,
    /// A file with sources, one a line
    #[arg(long, value_name = "FILE", required_unless_present = "source")]
    sources: Option<PathBuf>,
    /// Time between two snapshots
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = values::some_time)]
    every: Duration,
    /// Exit after this time
    #[arg(long, value_name = "TIME", value_parser = values::some_time)]
    duration: Option<Duration>,
    /// Keep this much of the history's file system free
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = values::some_bytes)]
    reserve: u64,
}

/// The shortest interval; `watch` samples more often.
const EVERY_MIN: Duration = Duration::from_secs(1);
const SOURCES_MAX: usize = 1000;
/// A source hangs if it is silent for three ticks and this time.
const SILENCE_MIN: Duration = Duration::from_secs(30);

/// `headroom record`: records the counters of many sources in the history, for weeks.
pub fn run(args: &RecordArgs, history: Option<&Path>, out: &mut Output) -> Done {
    if args.every < EVERY_MIN {
        return Err(Failure::usage("--every is at least 1s"));
    }
    let sources = sources(args)?;
    let history = kept::open_to_write(history)?;
    interrupt::install();
    let settings = Settings {
        every: args.every,
        duration: args.duration,
        retention: Retention::default(),
        reserve_bytes: args.reserve,
        silence: args.every.saturating_mul(3).saturating_add(SILENCE_MIN),
    };
    let began = Instant::now();
    let stop = stop_on_interrupt();
    let (path, count) = (history.path().display().to_string(), sources.len());
    log(6, &format!("recording {count} sources every {} s into {path}", args.every.as_secs()));
    let names = collect::FileNames::default();
    let recorded = sources.into_iter().map(|name| recorded(name, names.clone())).collect();
    let mut tally = Tally::default();
    Recorder { sources: recorded, history, settings }.run(&stop, &mut |event| tally.add(&event));
    let took_s = began.elapsed().as_secs_f64();
    let Tally { failures, thinned } = tally;
    out.answer(
        |_| format!("recorded {count} sources for {took_s:.0} s into {path}"),
        || serde_json::json!({"sources": count, "elapsed_s": took_s, "failures": failures, "thinned": thinned}),
    );
    Ok(FINE)
}

/// Totals of a recording's events.
#[derive(Default)]
struct Tally {
    failures: u64,
    thinned: usize,
}

impl Tally {
    fn add(&mut self, event: &Event<'_>) {
        match event {
            Event::Failed { .. } => self.failures += 1,
            Event::Thinned { captures } => self.thinned += captures,
            _ => {}
        }
        log(event.priority(), &event.to_string());
    }
}

/// The sources of the arguments and of the file, each once.
fn sources(args: &RecordArgs) -> Result<Vec<SourceName>, Failure> {
    let mut sources = args.source.clone();
    if let Some(file) = &args.sources {
        sources.extend(read_sources(file)?);
    }
    if sources.is_empty() || sources.len() > SOURCES_MAX {
        return Err(Failure::usage(format_args!("{} sources: give 1 to {SOURCES_MAX}", sources.len())));
    }
    let mut names: Vec<String> = sources.iter().map(ToString::to_string).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(twice) => Err(Failure::usage(format_args!("{} is given twice", twice[0]))),
        None => Ok(sources),
    }
}

fn recorded(name: SourceName, names: collect::FileNames) -> RecordedSource {
    RecordedSource { name: name.to_string(), open: Box::new(move || name.open(&[], &names)) }
}

/// Reads a file with a source in each line. Other users must not be able to read credentials in it.
fn read_sources(path: &Path) -> Result<Vec<SourceName>, Failure> {
    let text = text_file::read(path, "list of sources", "a file with a source a line")?;
    let mut sources = Vec::new();
    for (number, line) in entries(&text) {
        let wrong = |why: String| Failure::usage(format_args!("{} line {number}: {why}", path.display()));
        sources.push(collect::parse_source(line).map_err(wrong)?);
    }
    if sources.iter().any(|source| source.exposed_password.is_some()) && others_can_read(path) {
        return Err(Failure::new(format_args!("{} holds a password and others may read it", path.display()))
            .with_remedy(format_args!("chmod 600 {}", path.display())));
    }
    Ok(sources)
}
