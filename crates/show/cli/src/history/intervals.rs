use filestats::Rules;
use history::{CaptureFilter, CaptureId, IntervalFilter, IntervalRow};
use report::WatchedInterval;
use report::json::WaitsOutput;
use serde::Serialize;
use std::collections::HashSet;
use std::path::Path;
use terminal::{Done, FINE, Failure, Output, kept};

/// Arguments of `headroom history intervals`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  headroom history intervals           between the last two captures
  headroom history intervals 3 7 --file wal  between captures 3 and 7, only logs")]
pub struct IntervalsArgs {
    /// Earlier capture, a number or a label; by default the last but one
    from: Option<String>,
    /// Later capture; by default the last one
    to: Option<String>,
    /// Only databases with this in their name
    #[arg(long)]
    database: Option<String>,
    /// Only files with this in their path
    #[arg(long)]
    file: Option<String>,
    /// Print rows of comma-separated values, those of `headroom watch --csv`
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

/// The source whose captures are of block devices.
const DEVICES: &str = "diskstats";

/// Output of `headroom history intervals --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Intervals<'a> {
    /// Number of the earlier capture.
    previous: i64,
    /// Number of the later one.
    current: i64,
    /// Each file.
    intervals: &'a [IntervalRow],
    #[serde(flatten)]
    waits: WaitsOutput<'a>,
}

/// `headroom history intervals`: previous and current figures of each file, their differences, and the waits meanwhile.
pub fn run(args: &IntervalsArgs, history: Option<&Path>, out: &mut Output) -> Done {
    let history = kept::open(history)?;
    let captures = history.captures(&CaptureFilter::default())?;
    // Unnamed: the newest capture of files (not of a device), and the one before it of the same source.
    let newest = captures.iter().find(|capture| capture.source != DEVICES);
    let same: Vec<_> =
        captures.iter().filter(|other| newest.is_some_and(|newest| newest.source == other.source)).collect();
    let find = |wanted: &Option<String>, nth: usize| -> Result<CaptureId, Failure> {
        let found = match wanted {
            None => same.get(nth).copied(),
            Some(name) => captures
                .iter()
                .find(|capture| name.parse() == Ok(capture.id.0) || capture.label.as_ref() == Some(name)),
        };
        found.map(|capture| capture.id).ok_or_else(|| match wanted {
            Some(name) => Failure::new(format_args!("no capture has the number or label '{name}'"))
                .with_remedy("headroom history captures, which lists them"),
            None => {
                Failure::new(format_args!("an interval needs two captures, and there are {}", same.len()))
                    .with_remedy(
                        "headroom history capture --source SOURCE, twice; or headroom agent --record-only",
                    )
            }
        })
    };
    let (from, to) = (find(&args.from, 1)?, find(&args.to, 0)?);
    let filter = IntervalFilter { database: args.database.clone(), file: args.file.clone() };
    let rows = history.intervals_between(from, to, &filter, Rules::default())?;
    let (earlier, later) = (history.snapshot(from.min(to))?, history.snapshot(from.max(to))?);
    // Sessions wait for all files, whichever are chosen to be shown.
    let mut between = WatchedInterval::between(&earlier, &later);
    let chosen: HashSet<_> = rows.iter().map(|row| row.interval.file.key()).collect();
    between.files.retain(|file| chosen.contains(&file.row.file.key()));
    out.answer(
        |style| {
            if args.csv {
                return format!("{}\n{}", report::csv::WATCH_HEADING, report::csv::watch(&between));
            }
            let intervals: Vec<_> = rows.iter().map(|row| row.interval.clone()).collect();
            report::text::intervals(&earlier, &later, &intervals, &between, style)
        },
        || {
            serde_json::json!(Intervals {
                previous: from.0,
                current: to.0,
                intervals: &rows,
                waits: report::json::waits(&between),
            })
        },
    );
    Ok(FINE)
}
