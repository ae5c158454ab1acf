//! Prometheus remote-write 1.0 (<https://prometheus.io/docs/specs/prw/remote_write_spec/>), before its compression.
//!
//! ```text
//! WriteRequest { repeated TimeSeries timeseries = 1 }
//! TimeSeries   { repeated Label labels = 1 (by name); repeated Sample samples = 2 }
//! Label        { string name = 1; string value = 2 }
//! Sample       { double value = 1; int64 timestamp = 2 (ms) }
//! ```

use crate::protobuf::Message;
use crate::{Stamp, Totals};

impl Totals {
    /// All totals as a WriteRequest: the series of `/metrics`, with the labels `job` and `instance` that a scrape adds.
    pub fn remote_write(&self, stamp: &Stamp) -> Vec<u8> {
        let mut request = Message::default();
        for family in self.families() {
            for (name, point, value) in family.series() {
                let mut labels: Vec<(&str, &str)> =
                    point.labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
                labels.extend([("__name__", name.as_str()), ("job", "headroom"), ("instance", &stamp.host)]);
                // Remote-write treats an empty label as absent.
                labels.retain(|(_, value)| !value.is_empty());
                labels.sort_unstable();
                request.message(1, |series| {
                    for (name, value) in labels {
                        series.message(1, |label| {
                            label.text(1, name);
                            label.text(2, value);
                        });
                    }
                    series.message(2, |sample| {
                        sample.double(1, value);
                        sample.number(2, stamp.at_unix_ns / 1_000_000);
                    });
                });
            }
        }
        request.into_bytes()
    }
}
