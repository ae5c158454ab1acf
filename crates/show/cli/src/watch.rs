mod device_load;
mod screen;
mod watched;

use filestats::Profile;
use report::WatchedInterval;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};
use terminal::escape::escape_answer;
use terminal::{Done, FINE, Failure, Output, SourceName, interrupt, is_read};
use watched::Watched;
use workload_file::values;

/// Arguments of `headroom watch`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom watch --source sqlite:/data/shop.db           a live view; ? lists its keys
  headroom watch --source sqlite:/data/shop.db --once    one interval as text
  headroom watch --source sqlite:/data/shop.db --every 1s --count 6 --json
                                                         a JSON line an interval

Into a pipe, text is printed once per interval; --json and --csv print lines for programs.
Exit codes: 0 fine, 2 wrong usage, 3 the source cannot be watched, 130 ended by Ctrl-C.")]
pub struct WatchArgs {
    /// Sources to watch; several may be given
    #[arg(long, value_name = "SOURCE", required = true, help = collect::source_help(), value_parser = collect::parse_source_argument)]
    source: Vec<SourceName>,
    /// Only this file, or files with this in their path; several may be given
    #[arg(long, value_name = "PATH")]
    file: Vec<String>,
    /// Time between two samples
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = values::some_time)]
    every: Duration,
    /// Exit after this many intervals
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// One interval as text, then end
    #[arg(long, conflicts_with_all = ["count", "csv"])]
    once: bool,
    /// Print rows of comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Scale of latency bands
    #[arg(long, value_name = "NAME", default_value = "randal", value_parser = Profile::named)]
    bands: Profile,
}

/// The shortest interval: below it the collection itself would dominate the figures.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// `headroom watch`: the I/O of each file and its latency, interval by interval.
pub fn run(args: &WatchArgs, history: Option<&Path>, json: bool, out: &mut Output) -> Done {
    if args.every < INTERVAL_MIN {
        return Err(Failure::usage("--every is at least 100ms"));
    }
    interrupt::install();
    let files: Vec<String> = args.file.iter().map(|file| absolute(file)).collect();
    let names = collect::FileNames::default();
    let history = device_load::open_history(history, out).map(Rc::new);
    let opened = args.source.iter().map(|name| Watched::open(name, &files, &names, history.clone()));
    let mut watched = opened.collect::<Result<Vec<Watched>, Failure>>()?;
    let count = if args.once { Some(1) } else { args.count };
    let ticks = Ticks { began: Instant::now(), interval: args.every, count: count.unwrap_or(u64::MAX) };
    let live = !json && !args.csv && count.is_none() && std::io::stdout().is_terminal();
    if live {
        return screen::run(&mut watched, args.every, &args.bands);
    }
    let mut lines = Lines { json, csv: args.csv, profile: args.bands, headed: false };
    for tick in 1..=ticks.count {
        if !ticks.wait(tick, out) {
            break;
        }
        for source in &mut watched {
            if !lines.print(&source.sample(), out)? {
                return Ok(FINE);
            }
        }
    }
    Ok(FINE)
}

/// The canonical path of a file that exists; otherwise the text, which may be a part of a path.
fn absolute(file: &str) -> String {
    let found = std::fs::canonicalize(file).ok().map(|path: PathBuf| path.display().to_string());
    found.unwrap_or_else(|| file.into())
}

/// Sampling times that do not drift: a late sample does not delay the next ones.
struct Ticks {
    began: Instant,
    interval: Duration,
    count: u64,
}

impl Ticks {
    /// Waits for a tick; `false` where Ctrl-C came first.
    fn wait(&self, tick: u64, out: &mut Output) -> bool {
        let elapsed_ns = self.interval.as_nanos().saturating_mul(tick.into());
        let due = Duration::from_nanos(u64::try_from(elapsed_ns).unwrap_or(u64::MAX));
        while let Some(left) = due.checked_sub(self.began.elapsed()) {
            if interrupt::requested() {
                return false;
            }
            if self.interval > Duration::from_secs(2) {
                out.progress("watching", Some(left));
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        out.clear_progress();
        !interrupt::requested()
    }
}

/// Lines on stdout, flushed after each interval.
struct Lines {
    json: bool,
    csv: bool,
    profile: Profile,
    headed: bool,
}

impl Lines {
    /// Prints an interval; `false` where the reader has closed the pipe.
    fn print(&mut self, glance: &WatchedInterval, out: &Output) -> Result<bool, Failure> {
        let style = if self.json || self.csv { report::text::Style::default() } else { out.style() };
        let text = if self.json {
            format!("{}\n", report::json::watch(glance, &self.profile))
        } else if !self.csv {
            report::text::watch(glance, &self.profile, &style)
        } else if std::mem::replace(&mut self.headed, true) {
            report::csv::watch(glance)
        } else {
            format!("{}\n{}", report::csv::WATCH_HEADING, report::csv::watch(glance))
        };
        let mut stdout = std::io::stdout();
        let text = escape_answer(&text, &style);
        is_read(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
    }
}
