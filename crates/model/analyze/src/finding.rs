use crate::Direction;
use filestats::{FileIdentity, TimeSeries};
use findings::{Fact, Weight, words};
use serde::{Deserialize, Serialize};
use workload::Unit;

/// Kinds of finding, one for each rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "AnalysisFindingKind"))]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// Slower than the service level.
    Breach,
    /// Slower than the service level because its I/Os are large.
    LargeIos,
    /// Slower than usual at this hour.
    Slower,
    /// More I/O than usual at this hour.
    More,
    /// One I/O at a time.
    Serial,
    /// Data that is read repeatedly.
    Reread,
    /// Sessions wait longer than the files took.
    NotTheDisk,
    /// One file has most of the time waited.
    Busiest,
    /// Looks like checkpoints.
    Checkpoint,
    /// Looks like a vacuum.
    Vacuum,
    /// Looks like a backup.
    Backup,
    /// Looks like an index rebuild.
    IndexRebuild,
    /// No other day shows the usual values.
    NoNormal,
    /// Nothing was recorded for a while.
    Gap,
    /// Counters started from zero again or are unknown for another reason.
    Epoch,
    /// Whether the service level was kept.
    ServiceLevel,
    /// More was found than is listed.
    NotListed,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Span {
    /// When it began, nanoseconds since 1970.
    pub from_unix_ns: u64,
    /// When it ended.
    pub until_unix_ns: u64,
}

/// Finding of one rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "AnalysisFinding"))]
pub struct Finding {
    /// The rule.
    pub kind: FindingKind,
    /// How it bears on the storage and its users.
    pub weight: Weight,
    /// Instance whose file it is about; `None` where it is about the source.
    pub instance: Option<String>,
    /// The file.
    pub path: Option<String>,
    /// Operations that it is about.
    pub direction: Option<Direction>,
    /// One sentence with its numbers.
    pub text: String,
    /// The numbers.
    pub facts: Vec<Fact>,
    /// When it was so, the longest stretches first; empty: all the time.
    pub when: Vec<Span>,
    /// In how many stretches, with those that are not listed.
    pub stretches: usize,
    /// Time waited in it, all operations together; 0 where it is not about time waited.
    pub stall_ns: u64,
    /// The next thing to examine.
    pub next: Option<String>,
}

/// Facts of a breach, which its summary states.
pub(crate) const SLOW_MEAN: &str = "mean latency in them";
pub(crate) const SLOW_TIME: &str = "time";
pub(crate) const SLOW_LEVEL: &str = "service level";

impl Finding {
    /// The file that it is about, with its instance.
    pub fn file(&self) -> Option<(&str, &str)> {
        self.instance.as_deref().zip(self.path.as_deref())
    }

    /// The finding in one short sentence, in which paths are written by `path`.
    pub fn summary(&self, path: impl Fn(&str) -> String) -> String {
        let breach = (self.kind == FindingKind::Breach).then(|| self.breach_summary(path)).flatten();
        breach.unwrap_or_else(|| self.text.clone())
    }

    /// "reads of /data/orders averaged 38.7 ms for 2.0 h; the service level is 20 ms"
    fn breach_summary(&self, path: impl Fn(&str) -> String) -> Option<String> {
        let fact = |what: &str| Some(self.facts.iter().find(|fact| fact.what == what)?.value);
        let (mean_ns, time_ns, level_ns) = (fact(SLOW_MEAN)?, fact(SLOW_TIME)?, fact(SLOW_LEVEL)?);
        Some(format!(
            "{} of {} averaged {} for {}; the service level is {}",
            self.direction?.plural(),
            path(self.path.as_deref()?),
            words::time(mean_ns),
            words::length(time_ns),
            words::time(level_ns)
        ))
    }

    pub(crate) fn new(kind: FindingKind, weight: Weight, text: impl Into<String>) -> Finding {
        Finding {
            kind,
            weight,
            instance: None,
            path: None,
            direction: None,
            text: text.into(),
            facts: Vec::new(),
            when: Vec::new(),
            stretches: 0,
            stall_ns: 0,
            next: None,
        }
    }

    pub(crate) fn about(mut self, file: &FileIdentity, direction: Option<Direction>) -> Finding {
        self.instance = Some(file.instance.clone());
        self.path = Some(file.path.clone());
        self.direction = direction;
        self
    }

    /// A number that is not finite is none, and left out.
    pub(crate) fn fact(mut self, what: &str, value: f64, unit: Unit) -> Finding {
        if value.is_finite() {
            self.facts.push(Fact { what: what.into(), value, unit });
        }
        self
    }

    pub(crate) fn when(mut self, spans: Vec<Span>) -> Finding {
        self.stretches = spans.len();
        self.when = spans;
        self.when.sort_by_key(|span| std::cmp::Reverse(span.length_ns()));
        self.when.truncate(crate::limits::STRETCHES_MAX);
        self
    }

    pub(crate) fn stall(mut self, stall_ns: u64) -> Finding {
        self.stall_ns = stall_ns;
        self
    }

    pub(crate) fn next(mut self, next: impl Into<String>) -> Finding {
        self.next = Some(next.into());
        self
    }
}

impl Span {
    /// From the start of one interval of a series to the end of another.
    pub(crate) fn of_ticks(series: &TimeSeries, first: usize, last: usize) -> Span {
        Span { from_unix_ns: series.span_unix_ns(first).0, until_unix_ns: series.span_unix_ns(last).1 }
    }

    /// Nanoseconds; 0 where the clock was set back.
    pub fn length_ns(&self) -> u64 {
        self.until_unix_ns.saturating_sub(self.from_unix_ns)
    }
}

/// An instant in words.
pub(crate) fn at(unix_ns: u64) -> String {
    let at = jiff::Timestamp::from_nanosecond(i128::from(unix_ns)).unwrap_or_default();
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// A share that is not all of it, however near.
pub(crate) fn share(value: f64) -> String {
    if value > 0.995 && value < 1.0 { "over 99 %".into() } else { words::share(value) }
}

/// "1 stretch", "4 stretches".
pub(crate) fn stretches(count: usize) -> String {
    if count == 1 { "1 stretch".into() } else { format!("{count} stretches") }
}
