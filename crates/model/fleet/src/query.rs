//! Queries to the server: a fixed number, whatever the number of hosts.

use crate::Filter;
use std::fmt::Write;

/// One of the questions. Each is one query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Databases and volumes judged lately, and when last.
    Seen,
    /// Figures by which each is ranked and listed: verdict, headroom, utilisation.
    Figures,
    /// Where an incident is open.
    Open,
    /// When each volume was measured.
    Measured,
    /// Sources that give nothing.
    SilentSources,
    /// The agents that were seen lately.
    Agents,
    /// The daily 95th percentile of utilisation.
    Trend,
    /// Latencies and expected latencies.
    Latencies,
    /// Further figures: the range of headroom, confidence, demand.
    Details,
}

/// A query in PromQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// The expression.
    pub text: String,
    /// Several times instead of one: seconds from the first of them to now, and from one to the next.
    pub range: Option<(u64, u64)>,
}

/// Scope of the queries: the hosts, and how they are queried.
#[derive(Clone, Debug)]
pub struct Scope {
    /// Conditions on labels.
    pub filters: Vec<Filter>,
    /// Databases and volumes judged within this many seconds are listed at least as stale.
    pub lookback_s: u64,
    /// Compute the daily percentiles from the samples where no recording rule keeps them: slow for many hosts.
    pub trend_from_samples: bool,
}

/// The trend is that of this many days.
const TREND_DAYS: u64 = 60;
const DAY_S: u64 = 86_400;
/// The rule that keeps the daily percentiles: `headroom fleet rules` writes it.
const RECORDED_P95: &str = "instance_mount:headroom_utilisation_ratio:p95_1d";
/// Families of one value for each database and volume: what ranks it and stands in a list. The verdict is a label of the time
/// since which it holds: the state set `headroom_verdict` has nine series for the same.
const LISTED: &str = "headroom_headroom_ratio|headroom_utilisation_ratio|headroom_verdict_since_timestamp_seconds|\
                      headroom_binding";
/// Families of further figures.
const DETAILS: &str = "headroom_headroom_low_ratio|headroom_headroom_high_ratio|headroom_demand_outstanding|\
                       headroom_verdict_confidence|headroom_capability_contradicted_ratio";

impl Part {
    /// Parts that list and rank the fleet. A server that reads from others spends the same time on each series, so that the
    /// rest is requested only for the volumes that are shown.
    pub const RANKING: [Part; 6] =
        [Part::Seen, Part::Figures, Part::Measured, Part::SilentSources, Part::Agents, Part::Trend];
    /// All of them.
    pub const ALL: [Part; 9] = [
        Part::Seen,
        Part::Figures,
        Part::Measured,
        Part::SilentSources,
        Part::Agents,
        Part::Trend,
        Part::Open,
        Part::Latencies,
        Part::Details,
    ];

    /// The query.
    pub fn expression(self, scope: &Scope) -> Expression {
        let lookback = format!("[{}s]", scope.lookback_s);
        let of = |name: &str| scope.selector(name);
        let text = match self {
            Part::Seen => format!("last_over_time({}{lookback})", of("headroom_verdict_timestamp_seconds")),
            Part::Figures => scope.selector_of_names(LISTED),
            Part::Details => scope.selector_of_names(DETAILS),
            Part::Open => format!("{} > 0", of("headroom_incident_open")),
            Part::Latencies => {
                scope.selector_of_names("headroom_latency_seconds|headroom_expected_latency_seconds")
            }
            Part::Measured => of("headroom_capability_measured_timestamp_seconds"),
            Part::SilentSources => format!("{} == 0", of("headroom_source_up")),
            Part::Agents => format!("last_over_time({}{lookback})", of("headroom_build_info")),
            Part::Trend if scope.trend_from_samples => {
                format!("quantile_over_time(0.95, {}[1d])", of("headroom_utilisation_ratio"))
            }
            Part::Trend => format!("last_over_time({}[1d])", of(RECORDED_P95)),
        };
        let range = (self == Part::Trend).then_some((TREND_DAYS * DAY_S, DAY_S));
        Expression { text, range }
    }
}

impl Scope {
    /// A family's series of the hosts.
    fn selector(&self, name: &str) -> String {
        if self.filters.is_empty() { name.into() } else { format!("{name}{{{}}}", self.conditions()) }
    }

    /// The series of several families.
    fn selector_of_names(&self, names: &str) -> String {
        let and = if self.filters.is_empty() { "" } else { "," };
        format!("{{__name__=~\"{names}\"{and}{}}}", self.conditions())
    }

    fn conditions(&self) -> String {
        let mut text = String::new();
        for (at, filter) in self.filters.iter().enumerate() {
            // Writing into a String cannot fail.
            let _ = write!(text, "{}{filter}", if at == 0 { "" } else { "," });
        }
        text
    }
}

/// A period has this many parts at most: a server holds one value for each of them and each volume at one time, and
/// Prometheus refuses more than 50 million.
const PARTS_MAX: u64 = 720;
/// A shorter part might have no sample: agents are scraped every 15 s, at most every minute or two.
const PART_MIN_S: u64 = 120;

/// For how many of the last seconds an incident was open, of each database and volume with one.
///
/// ```text
/// the period   |    |    |    |####|#   |    |    |    sum of (the mean of each part that has samples) x (its length)
/// samples        none          ^ from here on
/// ```
///
/// The mean over all samples of the period would say nothing about the time before the first and after the last of them. One
/// that was opened after the last part began counts as 1 s.
pub fn incidents_within(scope: &Scope, seconds: u64) -> Expression {
    let part_s = (seconds / PARTS_MAX).max(PART_MIN_S);
    let open = scope.selector("headroom_incident_open");
    let parts = format!("(avg_over_time({open}[{part_s}s]) > 0)[{seconds}s:{part_s}s]");
    let text = format!("clamp_max({part_s} * sum_over_time({parts}), {seconds}) or {open} > 0");
    Expression { text, range: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(filters: &[&str]) -> Scope {
        let filters = filters.iter().map(|text| text.parse().unwrap()).collect();
        Scope { filters, lookback_s: 3600, trend_from_samples: false }
    }

    #[test]
    fn a_filter_is_in_each_query() {
        let scope = scope(&["cluster=a", "instance!=b"]);
        for part in Part::ALL {
            let text = part.expression(&scope).text;
            assert!(text.contains("cluster=\"a\",instance!=\"b\""), "{text}");
        }
    }

    #[test]
    fn there_is_no_empty_selector() {
        for part in Part::ALL {
            let text = part.expression(&scope(&[])).text;
            assert!(!text.contains("{}") && !text.contains(",}"), "{text}");
        }
    }

    #[test]
    fn a_period_has_a_bounded_number_of_parts() {
        let text = |seconds: u64| incidents_within(&scope(&[]), seconds).text;
        for (seconds, parts) in [(600, "[600s:120s]"), (86_400, "[86400s:120s]"), (604_800, "[604800s:840s]")]
        {
            assert!(text(seconds).contains(parts), "{}", text(seconds));
        }
    }
}
