//! Histories of cumulative counters: kept as captures, each instant of a source once.

use super::Log;
use terminal::{Failure, kept};

use filestats::{Interval, Reason, Rules, Snapshot, intervals};
use history::{CaptureFilter, CaptureId, History};
use import::{Chain, Format, Kept, Series};
use std::collections::BTreeMap;

/// Result of importing one source's history.
pub struct Imported {
    format: Format,
    source: String,
    files: Vec<String>,
    chain: Chain,
    /// Numbers of its captures in the history; none in a dry run.
    ids: Vec<CaptureId>,
    /// Intervals that are unknown, by their reason.
    unknown: BTreeMap<Reason, Unknown>,
}

struct Unknown {
    intervals: usize,
    first_unix_ns: u64,
}

/// Captures that are kept at once, at most: another process that records waits no longer than for these.
const CAPTURES_AT_ONCE: usize = 200;

/// Puts together what the files hold of each source and keeps what is new of it; without a history nothing is kept.
pub fn keep(logs: &mut [Log], mut history: Option<&mut History>) -> Result<Vec<Imported>, Failure> {
    let mut sources: Vec<(Format, Vec<String>, Series)> = Vec::new();
    for Log { file, log } in logs {
        for series in std::mem::take(&mut log.series) {
            match sources.iter_mut().find(|(.., mine)| mine.source == series.source) {
                Some((_, files, mine)) => {
                    files.push(file.clone());
                    mine.merge(series);
                }
                None => sources.push((log.format, vec![file.clone()], series)),
            }
        }
    }
    let each = |(format, files, series): (Format, Vec<String>, Series)| {
        let source = series.source.clone();
        let (kept, last) = match history.as_deref() {
            Some(history) => kept(history, &source)?,
            None => (Kept::new(), None),
        };
        let chain = series.captures(&kept, last.as_ref());
        let unknown = unknown(last.as_ref(), &chain);
        let mut ids = Vec::new();
        if let Some(history) = history.as_deref_mut() {
            for captures in chain.captures.chunks(CAPTURES_AT_ONCE) {
                let snapshots: Vec<(&Snapshot, Option<&str>)> =
                    captures.iter().map(|capture| (&capture.snapshot, capture.label.as_deref())).collect();
                ids.extend(history.save_snapshots(&snapshots)?);
            }
        }
        Ok(Imported { format, source, files, chain, ids, unknown })
    };
    sources.into_iter().map(each).collect()
}

/// The instants of a source that are kept, and its newest snapshot.
fn kept(history: &History, source: &str) -> Result<(Kept, Option<Snapshot>), Failure> {
    let filter = CaptureFilter { source: Some(source.to_owned()), ..CaptureFilter::default() };
    let captures = history.captures(&filter)?;
    let mut captures = captures.iter().filter(|capture| capture.source == source).peekable();
    let last = captures.peek().map(|newest| history.snapshot(newest.id)).transpose()?;
    Ok((captures.map(|capture| (capture.taken_unix_ns, capture.files)).collect(), last))
}

/// Intervals between the captures that are unknown, by their reason. A file that comes or goes is no loss.
fn unknown(last: Option<&Snapshot>, chain: &Chain) -> BTreeMap<Reason, Unknown> {
    let mut reasons = BTreeMap::new();
    let snapshots: Vec<&Snapshot> =
        last.into_iter().chain(chain.captures.iter().map(|capture| &capture.snapshot)).collect();
    for pair in snapshots.windows(2) {
        for row in intervals(pair[0], pair[1], Rules::default()) {
            let Interval::Unknown(reason) = row.interval else { continue };
            if !matches!(reason, Reason::FirstSight | Reason::Gone) {
                let first_unix_ns = pair[1].taken_unix_ns;
                let unknown = reasons.entry(reason).or_insert(Unknown { intervals: 0, first_unix_ns });
                unknown.intervals += 1;
            }
        }
    }
    reasons
}

impl Imported {
    fn files_max(&self) -> usize {
        self.chain.captures.iter().map(|capture| capture.snapshot.samples.len()).max().unwrap_or(0)
    }

    fn times_unix_ns(&self) -> Option<(u64, u64)> {
        let captures = &self.chain.captures;
        Some((captures.first()?.snapshot.taken_unix_ns, captures.last()?.snapshot.taken_unix_ns))
    }

    fn text(&self, dry_run: bool) -> String {
        let Chain { captures, known, older, differing } = &self.chain;
        let count = |n: usize| if n == 1 { "1 capture".to_owned() } else { format!("{n} captures") };
        let verb = if dry_run { "would be imported: nothing was kept (--dry-run)" } else { "imported" };
        let mut lines = vec![match self.times_unix_ns() {
            Some((from, until)) => {
                let numbers = match self.ids.as_slice() {
                    [] => String::new(),
                    [one] => format!(", capture {one}"),
                    [first, .., last] => format!(", captures {first} to {last}"),
                };
                let files = self.files_max();
                format!(
                    "{}: {} of up to {files} files {verb}, {} to {}{numbers}",
                    self.source,
                    count(captures.len()),
                    kept::format_time(from),
                    kept::format_time(until)
                )
            }
            None => format!("{}: nothing new in it", self.source),
        }];
        if *known > 0 {
            lines.push(format!("  {} known from before", count(*known)));
        }
        if *older > 0 {
            lines.push(format!(
                "  {} left out: older than the newest that is kept of this source. Import the oldest export \
                 first, or all of them at once into a history of their own (--history FILE)",
                count(*older)
            ));
        }
        if *differing > 0 {
            lines.push(format!(
                "  {} kept before with another number of files (an export that was cut off?): they stay as they are",
                count(*differing)
            ));
        }
        for (reason, unknown) in &self.unknown {
            let intervals = match unknown.intervals {
                1 => "1 interval of a file is".to_owned(),
                n => format!("{n} intervals of files are"),
            };
            let first = kept::format_time(unknown.first_unix_ns);
            lines.push(format!("  {intervals} unknown: {reason} (the first one before {first})"));
        }
        lines.join("\n") + "\n"
    }

    fn json(&self) -> serde_json::Value {
        let unknown: Vec<_> = self
            .unknown
            .iter()
            .map(|(reason, unknown)| {
                serde_json::json!({
                    "reason": reason,
                    "intervals": unknown.intervals,
                    "first_unix_ns": unknown.first_unix_ns,
                })
            })
            .collect();
        serde_json::json!({
            "source": self.source,
            "format": self.format.to_string(),
            "from": self.files,
            "captures": self.ids,
            "new": self.chain.captures.len(),
            "known": self.chain.known,
            "older": self.chain.older,
            "differing": self.chain.differing,
            "files": self.files_max(),
            "first_unix_ns": self.times_unix_ns().map(|(from, _)| from),
            "last_unix_ns": self.times_unix_ns().map(|(_, until)| until),
            "unknown": unknown,
        })
    }
}

/// Results of all imports, for people.
pub fn text(imported: &[Imported], dry_run: bool) -> String {
    let mut text: String = imported.iter().map(|one| one.text(dry_run)).collect();
    if imported.iter().any(|one| one.ids.len() > 1) {
        text.push_str("see them: headroom history captures, headroom history intervals\n");
    }
    text
}

/// Results of all imports, for programs.
pub fn json(imported: &[Imported]) -> Vec<serde_json::Value> {
    imported.iter().map(Imported::json).collect()
}
