//! Prometheus remote-write 1.0 (<https://prometheus.io/docs/specs/prw/remote_write_spec/>), before its compression.
//!
//! ```text
//! WriteRequest   { repeated TimeSeries timeseries = 1; repeated MetricMetadata metadata = 3 }
//! TimeSeries     { repeated Label labels = 1 (by name); repeated Sample samples = 2 }
//! Label          { string name = 1; string value = 2 }
//! Sample         { double value = 1; int64 timestamp = 2 (ms) }
//! MetricMetadata { MetricType type = 1; string metric_family_name = 2; string help = 4; string unit = 5 }
//! ```
//!
//! A counter that is sent for the first time has a sample before it, when it was zero: without it `rate()` would not see what was
//! counted in between. A series that ends is marked by a last sample, as a server that scrapes does by itself: without it queries
//! would return the last value for five minutes more.

use crate::families::{Family, FamilyKind, Series};
use crate::protobuf::Message;
use crate::pushed::{SentSeries, Stamp};
use std::collections::BTreeSet;

/// The bits of the value that marks the end of a series, one of the many that are not a number.
const STALE_MARKER_BITS: u64 = 0x7ff0_0000_0000_0002;
/// A zero that is older is not sent: servers refuse a whole request for a sample that is too old.
const ZERO_AGE_MAX_NS: u64 = 300_000_000_000;
const NS_PER_MS: u64 = 1_000_000;

/// The families as a WriteRequest: the series of `/metrics`, with the labels `job` and `instance` that a scrape adds.
pub(crate) fn write(families: &[Family], stamp: &Stamp, sent: &mut SentSeries) -> Vec<u8> {
    let mut request = Message::default();
    let mut written = BTreeSet::new();
    for family in families {
        for series in family.series() {
            let labels = labels(&series, stamp);
            let now = (series.value.to_bits(), stamp.at_unix_ns);
            let zero = (!sent.series.contains(&labels)).then(|| zero_before(&series, stamp, sent)).flatten();
            let samples: Vec<(u64, u64)> = zero.into_iter().chain([now]).collect();
            write_series(&mut request, &labels, &samples);
            written.insert(labels);
        }
    }
    for ended in sent.series.difference(&written) {
        write_series(&mut request, ended, &[(STALE_MARKER_BITS, stamp.at_unix_ns)]);
    }
    families.iter().filter(|family| !family.points.is_empty()).for_each(|family| {
        request.message(3, |metadata| write_metadata(metadata, family));
    });
    *sent = SentSeries { series: written, at_unix_ns: stamp.at_unix_ns };
    request.into_bytes()
}

impl SentSeries {
    /// A WriteRequest that marks all of them as ended.
    pub fn ended(&mut self, stamp: &Stamp) -> Vec<u8> {
        write(&[], stamp, self)
    }
}

/// When a series that is new to the server was zero; `None` where it was not since the last request.
fn zero_before(series: &Series<'_>, stamp: &Stamp, sent: &SentSeries) -> Option<(u64, u64)> {
    let oldest = sent.at_unix_ns.max(stamp.at_unix_ns.saturating_sub(ZERO_AGE_MAX_NS));
    let since = series.point.since_unix_ns?;
    // Two samples of one millisecond are one sample.
    let is_between = since > oldest && since / NS_PER_MS < stamp.at_unix_ns / NS_PER_MS;
    is_between.then(|| (0.0_f64.to_bits(), since))
}

/// By name. Remote-write takes an empty label for an absent one.
fn labels(series: &Series<'_>, stamp: &Stamp) -> Vec<(String, String)> {
    let own = series.point.labels.iter().map(|(name, value)| (*name, value.as_str()));
    let bound = series.bound.as_deref().map(|bound| ("le", bound));
    let added =
        [("__name__", series.name.as_str()), ("job", "headroom"), ("instance", &stamp.identity.instance)];
    let all = own.chain(bound).chain(added).chain(stamp.identity.labels.iter());
    let filled = all.filter(|(_, value)| !value.is_empty());
    let mut labels: Vec<(String, String)> =
        filled.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    labels.sort_unstable();
    labels
}

/// Samples are the bits of their values and their times in nanoseconds.
fn write_series(request: &mut Message, labels: &[(String, String)], samples: &[(u64, u64)]) {
    request.message(1, |series| {
        for (name, value) in labels {
            series.message(1, |label| {
                label.text(1, name);
                label.text(2, value);
            });
        }
        for (value_bits, at_unix_ns) in samples {
            series.message(2, |sample| {
                sample.fixed(1, *value_bits);
                sample.number(2, at_unix_ns / NS_PER_MS);
            });
        }
    });
}

fn write_metadata(metadata: &mut Message, family: &Family) {
    let (kind, suffix) = match family.kind {
        FamilyKind::Counter => (1, "_total"),
        FamilyKind::Gauge => (2, ""),
        FamilyKind::Histogram => (3, ""),
    };
    metadata.number(1, kind);
    metadata.text(2, &format!("{}{suffix}", family.name));
    metadata.text(4, family.help);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AgentState, ExtraLabels, Identity, SourceState};

    const MARKER: [u8; 8] = STALE_MARKER_BITS.to_le_bytes();

    fn stamp(at_unix_ms: u64) -> Stamp {
        let labels = ExtraLabels::new([("cluster".to_owned(), "east".to_owned())]).unwrap();
        let identity = Identity { instance: "db1:9187".into(), labels, ..Identity::default() };
        Stamp { at_unix_ns: at_unix_ms * NS_PER_MS, identity }
    }

    /// An agent that watches a source since then.
    fn state(since_unix_ms: u64, failures: u64) -> AgentState {
        let source =
            SourceState { since_unix_ns: since_unix_ms * NS_PER_MS, failures, ..SourceState::default() };
        AgentState { sources: [("engine".to_owned(), source)].into(), ..AgentState::default() }
    }

    fn holds(body: &[u8], bytes: &[u8]) -> bool {
        body.windows(bytes.len()).any(|part| part == bytes)
    }

    /// A sample as it is encoded.
    fn sample(value: f64, at_unix_ms: u64) -> Vec<u8> {
        let mut message = Message::default();
        message.fixed(1, value.to_bits());
        message.number(2, at_unix_ms);
        message.into_bytes()
    }

    #[test]
    fn a_series_has_the_identity_of_its_host_and_ends_with_a_marker() {
        let mut sent = SentSeries::default();
        let first = state(0, 0).remote_write(&stamp(1), &mut sent);
        for part in ["cluster", "east", "db1:9187", "headroom_source_failures_total", "engine"] {
            assert!(holds(&first, part.as_bytes()), "{part}");
        }
        assert!(!holds(&first, &MARKER));
        // A series that was sent and is gone is marked once.
        let second = AgentState::default().remote_write(&stamp(2), &mut sent);
        assert!(holds(&second, &MARKER) && holds(&second, b"headroom_source_failures_total"));
        assert!(!holds(&AgentState::default().remote_write(&stamp(3), &mut sent), b"engine"));
        state(0, 0).remote_write(&stamp(4), &mut sent);
        assert!(holds(&sent.ended(&stamp(5)), &MARKER) && sent.ended(&stamp(6)).is_empty());
    }

    #[test]
    fn a_counter_that_is_new_was_zero_before_and_one_that_is_older_than_the_last_request_was_not() {
        let mut sent = SentSeries::default();
        let first = state(5_000, 3).remote_write(&stamp(9_000), &mut sent);
        assert!(holds(&first, &sample(0.0, 5_000)) && holds(&first, &sample(3.0, 9_000)));
        let second = state(5_000, 4).remote_write(&stamp(10_000), &mut sent);
        assert!(!holds(&second, &sample(0.0, 5_000)) && holds(&second, &sample(4.0, 10_000)));
        let old = state(5_000, 3).remote_write(&stamp(900_000), &mut SentSeries::default());
        assert!(!holds(&old, &sample(0.0, 5_000)), "a server refuses samples that are too old");
    }

    #[test]
    fn each_family_is_described() {
        let body = state(0, 0).remote_write(&stamp(1), &mut SentSeries::default());
        let mut metadata = Message::default();
        metadata.number(1, 1);
        metadata.text(2, "headroom_source_failures_total");
        metadata.text(4, "samples that gave nothing");
        assert!(holds(&body, &metadata.into_bytes()));
    }
}
