//! `headroom agent --record-only`: the counters of many sources, for weeks, in the history; nothing is judged or served.

use super::config::Config;
use super::{AgentArgs, begin_history, read_again, stop_flag};
use crate::service_log::log;
use history::Retention;
use record::{Event, RecordedSource, Recorder, Settings};
use std::path::Path;
use std::time::{Duration, Instant};
use terminal::{Done, FINE, Failure, Output, SourceName, interrupt, kept};

/// A source hangs if it is silent for three ticks and this time.
const SILENCE_MIN: Duration = Duration::from_secs(30);

/// Records until the time is over or Ctrl-C. SIGHUP reads the configuration again.
pub fn run(args: &AgentArgs, mut config: Config, history: Option<&Path>, out: &mut Output) -> Done {
    let path = begin_history(history)?;
    interrupt::install_for_service();
    let began = Instant::now();
    let mut tally = Tally::default();
    loop {
        record(&config, began, &path, &mut tally)?;
        if interrupt::requested() || args.duration.is_some_and(|all| began.elapsed() >= all) {
            break;
        }
        config = read_again(args, config);
    }
    let took_s = began.elapsed().as_secs_f64();
    let count = config.sources.len();
    let Tally { failures, thinned } = tally;
    out.answer(
        |_| format!("recorded {count} sources for {took_s:.0} s into {}", path.display()),
        || serde_json::json!({"sources": count, "elapsed_s": took_s, "failures": failures, "thinned": thinned}),
    );
    Ok(FINE)
}

fn record(config: &Config, began: Instant, path: &Path, tally: &mut Tally) -> Result<(), Failure> {
    let every = config.settings.every;
    let settings = Settings {
        every,
        duration: config.settings.duration.map(|all| all.saturating_sub(began.elapsed())),
        retention: Retention::default(),
        reserve_bytes: config.reserve_bytes,
        silence: every.saturating_mul(3).saturating_add(SILENCE_MIN),
    };
    let (count, seconds) = (config.sources.len(), every.as_secs());
    log(6, &format!("recording {count} sources every {seconds} s into {}", path.display()));
    // Shared: the processes' files get the names that a server's source knows.
    let names = collect::FileNames::default();
    let sources = config.sources.iter().map(|name| recorded(name.clone(), names.clone())).collect();
    let history = kept::open_to_write(Some(path))?;
    Recorder { sources, history, settings }.run(&stop_flag(), &mut |event| tally.add(&event));
    Ok(())
}

/// Sums of the events of a recording.
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

fn recorded(name: SourceName, names: collect::FileNames) -> RecordedSource {
    RecordedSource { name: name.to_string(), open: Box::new(move || name.open(&[], &names)) }
}
