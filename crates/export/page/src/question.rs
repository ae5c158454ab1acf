//! A request, checked before any work is done for it, so that the cost of its answer is bounded.
//!
//! One request names one volume, at most [`POINTS_MAX`] points and [`DAYS_MAX`] days; of each volume the history keeps a month
//! of minutes. Times are rounded to the points of a chart, so that requests of about the same stretch are one question.

use crate::answer::Refused;
use crate::query::Query;
use std::time::Duration;
use timeline::{Grid, POINTS_MAX, Span};

/// A request that can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub(crate) topic: Topic,
}

/// The subject of a question; volumes by their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    State,
    Curve { volume: String },
    Series { volume: String, grid: Grid },
    Verdicts { volume: String, grid: Grid },
    Files { volume: String, path: Option<String> },
    Waits { volume: String },
    Devices { volume: String },
    Incidents,
    Incident { id: i64 },
    Capabilities,
}

/// The default stretch of a chart.
const SERIES_NS: i128 = 900_000_000_000;
/// The default stretch of verdicts: a day.
const VERDICTS_NS: i128 = 86_400_000_000_000;
/// Points of a chart, where no number is given; verdicts begin and end at them too.
const POINTS: usize = 900;
/// The longest stretch of a request: the longest that the page shows.
const DAYS_MAX: u64 = 400;
const DAY_NS: u64 = 86_400_000_000_000;
/// Bytes of a query: the longest path of a file, each byte of it escaped, and some numbers.
const QUERY_BYTES_MAX: usize = 16 << 10;
/// An answer of the history is given again for this long, and for no longer than a point of its chart lasts: the history gets a row a
/// minute.
const KEPT_MAX: Duration = Duration::from_secs(10);
const KEPT_MIN: Duration = Duration::from_secs(1);
pub(crate) const NAMED: &str = "/api/v1/state names the volumes";

impl Question {
    /// Reads a path below `/api/v1/` and its query, at this time.
    pub(crate) fn parse(path: &str, query: &str, now_ns: u64) -> Result<Question, Refused> {
        if query.len() > QUERY_BYTES_MAX {
            let error = format!("the query has {} bytes, more than {QUERY_BYTES_MAX}", query.len());
            return Err(Refused::wrong(error, "a shorter path"));
        }
        let query = Query(query);
        let volume = || query.text("volume").ok_or_else(|| Refused::wrong("which volume is not said", NAMED));
        let topic = match path {
            "state" => Topic::State,
            "curve" => Topic::Curve { volume: volume()? },
            "series" => {
                let grid = Grid::new(span(&query, SERIES_NS, now_ns)?, points(&query)?);
                Topic::Series { volume: volume()?, grid }
            }
            "verdicts" => {
                let grid = Grid::new(span(&query, VERDICTS_NS, now_ns)?, POINTS);
                Topic::Verdicts { volume: volume()?, grid }
            }
            "files" => Topic::Files { volume: volume()?, path: query.text("path") },
            "waits" => Topic::Waits { volume: volume()? },
            "devices" => Topic::Devices { volume: volume()? },
            "incidents" => Topic::Incidents,
            "capabilities" => Topic::Capabilities,
            _ => match path.strip_prefix("incidents/") {
                Some(id) => Topic::Incident { id: incident(id)? },
                None => {
                    return Err(Refused::not_found(
                        "there is no such thing",
                        "state, series, verdicts, curve, files, waits, devices, incidents, capabilities and stream exist",
                    ));
                }
            },
        };
        Ok(Question { topic })
    }

    /// Equal for requests that have the same answer at the same time.
    pub fn key(&self) -> String {
        let stretch = |grid: &Grid| format!("{} {} {}", grid.from_ns, grid.step_ns, grid.count);
        match &self.topic {
            Topic::State => "state".to_owned(),
            Topic::Curve { volume } => format!("curve {volume}"),
            Topic::Series { volume, grid } => format!("series {} {volume}", stretch(grid)),
            Topic::Verdicts { volume, grid } => format!("verdicts {} {volume}", stretch(grid)),
            Topic::Files { volume, path: None } => format!("files {volume}"),
            Topic::Files { volume, path: Some(path) } => format!("file {path}\0{volume}"),
            Topic::Waits { volume } => format!("waits {volume}"),
            Topic::Devices { volume } => format!("devices {volume}"),
            Topic::Incidents => "incidents".to_owned(),
            Topic::Incident { id } => format!("incident {id}"),
            Topic::Capabilities => "capabilities".to_owned(),
        }
    }

    /// Whether its answer reads much of the history, and takes longer than one from memory.
    pub fn reads_history(&self) -> bool {
        match self.topic {
            Topic::Series { .. }
            | Topic::Verdicts { .. }
            | Topic::Incidents
            | Topic::Incident { .. }
            | Topic::Capabilities => true,
            Topic::State
            | Topic::Curve { .. }
            | Topic::Files { .. }
            | Topic::Waits { .. }
            | Topic::Devices { .. } => false,
        }
    }

    /// How long its answer may be given again.
    pub fn kept_for(&self) -> Duration {
        match &self.topic {
            Topic::Series { grid, .. } | Topic::Verdicts { grid, .. } => {
                Duration::from_nanos(grid.step_ns).clamp(KEPT_MIN, KEPT_MAX)
            }
            _ if self.reads_history() => KEPT_MIN,
            _ => Duration::ZERO,
        }
    }

    /// The volume that it names.
    pub(crate) fn volume(&self) -> Option<&str> {
        match &self.topic {
            Topic::Curve { volume }
            | Topic::Series { volume, .. }
            | Topic::Verdicts { volume, .. }
            | Topic::Files { volume, .. }
            | Topic::Waits { volume }
            | Topic::Devices { volume } => Some(volume),
            Topic::State | Topic::Incidents | Topic::Incident { .. } | Topic::Capabilities => None,
        }
    }
}

fn points(query: &Query<'_>) -> Result<usize, Refused> {
    let points = usize::try_from(query.number("points", POINTS as i128)?).ok();
    points
        .filter(|points| (1..=POINTS_MAX).contains(points))
        .ok_or_else(|| Refused::wrong("points is out of range", format!("1 to {POINTS_MAX}")))
}

/// `from` and `to`, by default the newest stretch of a length. Negative ones are before now.
fn span(query: &Query<'_>, length: i128, now_ns: u64) -> Result<Span, Refused> {
    let now = i128::from(now_ns);
    let absolute = |value: i128| if value <= 0 { now.checked_add(value) } else { Some(value) };
    let out_of_range = || Refused::wrong("a time is out of range", "nanoseconds since 1970");
    let to = absolute(query.number("to", 0)?).ok_or_else(out_of_range)?;
    let from = match query.text("from") {
        None => to.checked_sub(length),
        Some(_) => absolute(query.number("from", 0)?),
    };
    let in_range = |ns: Option<i128>| ns.and_then(|ns| u64::try_from(ns).ok()).ok_or_else(out_of_range);
    let span = Span { from_ns: in_range(from)?, to_ns: in_range(Some(to))? };
    if span.len_ns() == 0 {
        return Err(Refused::wrong("from is not before to", "from=-900000000000"));
    }
    // A page that follows the present names its end some time before it is read here.
    if span.len_ns() >= (DAYS_MAX + 1) * DAY_NS {
        let error = format!(
            "from {} to {} is {} days, more than {DAYS_MAX}",
            span.from_ns,
            span.to_ns,
            span.len_ns() / DAY_NS
        );
        return Err(Refused::wrong(error, format!("from=-{}", DAYS_MAX * DAY_NS)));
    }
    Ok(span)
}

fn incident(id: &str) -> Result<i64, Refused> {
    id.parse().map_err(|_| {
        Refused::wrong(format!("no number of an incident: {id}"), "/api/v1/incidents lists those there are")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const NOW: u64 = 1_760_000_000 * SECOND;

    fn parse(path: &str, query: &str) -> Result<Question, Refused> {
        Question::parse(path, query, NOW)
    }

    #[test]
    fn what_costs_more_than_a_page_asks_for_is_refused_with_the_limit_and_the_remedy() {
        let long = format!("volume=a&path={}", "x".repeat(QUERY_BYTES_MAX));
        for (path, query, limit, remedy) in [
            ("series", "volume=a&points=4001", "points", "1 to 4000"),
            ("series", "volume=a&points=0", "points", "1 to 4000"),
            (
                "series",
                "volume=a&from=-35000000000000000",
                "405 days, more than 400",
                "from=-34560000000000000",
            ),
            ("verdicts", "volume=a&from=1", "more than 400", "from=-34560000000000000"),
            ("files", &long, "more than 16384", "shorter"),
        ] {
            let refused = parse(path, query).unwrap_err();
            assert!(refused.status == 400 && refused.error.contains(limit), "{path}: {refused:?}");
            assert!(refused.remedy.contains(remedy), "{path}: {refused:?}");
        }
    }

    #[test]
    fn the_longest_and_finest_request_of_the_page_is_answered() {
        // LONGEST_S and POINTS of overtime.js, and a path of 4,095 bytes.
        let longest = format!("volume=a&from=-{}&points=900", 400 * DAY_NS);
        assert!(parse("series", &longest).is_ok());
        let path = "%20".repeat(4_095);
        assert!(parse("files", &format!("volume=0123456789abcdef&path={path}")).is_ok());
    }

    #[test]
    fn requests_of_the_same_points_are_one_question() {
        let key = |query: &str, now_ns: u64| Question::parse("series", query, now_ns).unwrap().key();
        let month = "volume=a&from=-2592000000000000&points=900";
        assert_eq!(key(month, NOW), key(month, NOW + SECOND));
        assert_eq!(key("volume=a", NOW), key("points=900&volume=a&to=0&from=-900000000000", NOW));
        assert_ne!(key(month, NOW), key("volume=b&from=-2592000000000000&points=900", NOW));
        assert_ne!(key("volume=a", NOW), key("volume=a", NOW + SECOND));
    }

    #[test]
    fn numbers_at_the_end_of_their_range_are_refused() {
        for number in [i128::MIN, i128::MAX, i128::from(u64::MAX) + 1, i128::from(i64::MIN)] {
            for query in [format!("volume=a&from={number}"), format!("volume=a&to={number}")] {
                assert_eq!(parse("series", &query).unwrap_err().status, 400, "{query}");
            }
        }
    }
}
