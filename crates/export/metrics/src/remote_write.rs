//! Prometheus remote-write 1.0 (<https://prometheus.io/docs/specs/prw/remote_write_spec/>), before its compression.
//!
//! ```text
//! WriteRequest { repeated TimeSeries timeseries = 1 }
//! TimeSeries   { repeated Label labels = 1 (by name); repeated Sample samples = 2 }
//! Label        { string name = 1; string value = 2 }
//! Sample       { double value = 1; int64 timestamp = 2 (ms) }
//! ```
//!
//! A series that ends is marked by a last sample, as a server that scrapes does by itself: without it queries would return the
//! last value for five minutes more.

use crate::families::{Family, Point};
use crate::protobuf::Message;
use crate::pushed::{SentSeries, Stamp};
use std::collections::BTreeSet;

/// The bits of the value that marks the end of a series, one of the many that are not a number.
const STALE_MARKER_BITS: u64 = 0x7ff0_0000_0000_0002;

/// The families as a WriteRequest: the series of `/metrics`, with the labels `job` and `instance` that a scrape adds.
pub(crate) fn write(families: &[Family], stamp: &Stamp, sent: &mut SentSeries) -> Vec<u8> {
    let mut request = Message::default();
    let mut written = BTreeSet::new();
    for family in families {
        for (name, point, value) in family.series() {
            let labels = labels(&name, point, stamp);
            write_series(&mut request, &labels, value.to_bits(), stamp);
            written.insert(labels);
        }
    }
    for ended in sent.0.difference(&written) {
        write_series(&mut request, ended, STALE_MARKER_BITS, stamp);
    }
    sent.0 = written;
    request.into_bytes()
}

impl SentSeries {
    /// A WriteRequest that marks all of them as ended.
    pub fn ended(&mut self, stamp: &Stamp) -> Vec<u8> {
        write(&[], stamp, self)
    }
}

/// By name. Remote-write takes an empty label for an absent one.
fn labels(name: &str, point: &Point, stamp: &Stamp) -> Vec<(String, String)> {
    let own = point.labels.iter().map(|(name, value)| (*name, value.as_str()));
    let added = [("__name__", name), ("job", "headroom"), ("instance", &stamp.identity.instance)];
    let all = own.chain(added).chain(stamp.identity.labels.iter());
    let filled = all.filter(|(_, value)| !value.is_empty());
    let mut labels: Vec<(String, String)> =
        filled.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    labels.sort_unstable();
    labels
}

fn write_series(request: &mut Message, labels: &[(String, String)], value_bits: u64, stamp: &Stamp) {
    request.message(1, |series| {
        for (name, value) in labels {
            series.message(1, |label| {
                label.text(1, name);
                label.text(2, value);
            });
        }
        series.message(2, |sample| {
            sample.fixed(1, value_bits);
            sample.number(2, stamp.at_unix_ns / 1_000_000);
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExtraLabels, Identity, Pushed, Totals};

    fn stamp(at_unix_ms: u64) -> Stamp {
        let labels = ExtraLabels::new([("cluster".to_owned(), "east".to_owned())]).unwrap();
        let identity = Identity { instance: "db1:9187".into(), labels };
        Stamp { since_unix_ns: 0, at_unix_ns: at_unix_ms * 1_000_000, identity }
    }

    fn holds(body: &[u8], bytes: &[u8]) -> bool {
        body.windows(bytes.len()).any(|part| part == bytes)
    }

    #[test]
    fn a_series_has_the_identity_of_its_host_and_ends_with_a_marker() {
        let mut totals = Totals::default();
        totals.began("engine");
        let mut sent = SentSeries::default();
        let first = totals.remote_write(&stamp(1), &mut sent);
        for part in ["cluster", "east", "db1:9187", "headroom_source_up", "engine"] {
            assert!(holds(&first, part.as_bytes()), "{part}");
        }
        let marker = &STALE_MARKER_BITS.to_le_bytes()[..];
        assert!(!holds(&first, marker));
        // What was sent and is gone is marked once.
        let second = Totals::default().remote_write(&stamp(2), &mut sent);
        assert!(holds(&second, marker) && holds(&second, b"headroom_source_up"));
        assert!(Totals::default().remote_write(&stamp(3), &mut sent).is_empty());
        totals.remote_write(&stamp(4), &mut sent);
        assert!(holds(&sent.ended(&stamp(5)), marker) && sent.ended(&stamp(6)).is_empty());
    }
}
