//! The seconds of a volume, as a stream of events sends them.

use crate::Instant;
use crate::answer::short;
use serde_json::{Value, json};
use timeline::{Ring, Span};

/// Moments that a stream sends next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moments {
    /// Each as JSON, the oldest first; one at least.
    pub json: Vec<String>,
    /// The end of the newest second that was sent.
    pub newest_unix_ns: u64,
}

/// A sample that is older than this is not the newest second.
const FRESH_NS: u64 = 3_000_000_000;
/// A stream that was late sends this many seconds at once. A page that misses more asks for the series again.
const MOMENTS_MAX: usize = 60;

impl Moments {
    /// Those that are later than a time; where there are none, the newest again, or why it is not known.
    pub(crate) fn after(after_unix_ns: u64, ring: &Ring<Instant>, now_ns: u64) -> Moments {
        let newest = ring.samples().next_back();
        let fresh = newest.filter(|(span, _)| now_ns.saturating_sub(span.to_ns) <= FRESH_NS);
        let late = || match newest {
            Some((span, _)) => {
                format!("no sample for {} s", now_ns.saturating_sub(span.to_ns) / 1_000_000_000)
            }
            None => "no sample yet".to_owned(),
        };
        let Some(newest) = fresh.filter(|_| ring.failing().is_none()) else {
            let gap = ring.failing().map_or_else(late, str::to_owned);
            return Moments { json: vec![unknown(now_ns, &gap)], newest_unix_ns: after_unix_ns };
        };
        let earlier = ring.samples().rev().skip(1).take(MOMENTS_MAX - 1);
        let missed = earlier.take_while(|(span, _)| after_unix_ns > 0 && span.to_ns > after_unix_ns);
        let mut json: Vec<String> = std::iter::once(newest).chain(missed).map(known).collect();
        json.reverse();
        Moments { json, newest_unix_ns: newest.0.to_ns }
    }
}

fn known((span, instant): &(Span, Instant)) -> String {
    let mut moment = json!({ "unix_ns": span.to_ns, "gap": Value::Null });
    for (name, figure) in timeline::Reading::FIGURES {
        moment[name] = json!(short(figure(&instant.sample.reading)));
    }
    moment["place"] = json!(instant.place.as_ref().map(|place| json!({
        "outstanding": short(Some(place.outstanding)),
        "iops": short(Some(place.iops)),
        "latency_ns": short(Some(place.latency_ns)),
        "expected_latency_ns": short(Some(place.expected_ns)),
    })));
    moment.to_string()
}

fn unknown(now_ns: u64, gap: &str) -> String {
    let mut moment = json!({ "unix_ns": now_ns, "gap": gap, "place": Value::Null });
    for (name, _) in timeline::Reading::FIGURES {
        moment[name] = Value::Null;
    }
    moment.to_string()
}
