use crate::figure::{Figure, Measure, Operations};
use serde::{Deserialize, Serialize};
use workload::{parse_bytes, parse_duration};

/// A figure stated by the user: "100000 IOPS", "read p99 1ms".
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stated {
    /// The figure.
    pub figure: Figure,
    /// Operations a second, MiB a second or nanoseconds.
    pub value: f64,
}

/// Text that states no figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' states no figure: {why}; give for example 'iops=100000', '500MiB/s' or 'read p99 1ms'")]
pub struct BadStated {
    text: String,
    why: &'static str,
}

impl Stated {
    /// Reads figures apart by commas: `iops=100000`, `100k IOPS`, `500MiB/s`, `3.5 GB/s`, `p99 1ms`,
    /// `write mean=80us`. k and M of operations are powers of 1000; of bytes KiB, MiB and GiB powers of 1024,
    /// KB, MB and GB powers of 1000, as vendors use them.
    ///
    /// # Errors
    /// [`BadStated`] names the part that is none.
    pub fn parse(text: &str) -> Result<Vec<Stated>, BadStated> {
        text.split(',').map(one).collect()
    }
}

fn one(text: &str) -> Result<Stated, BadStated> {
    let wrong = |why| BadStated { text: text.trim().into(), why };
    let lower = text.to_ascii_lowercase().replace(['=', ':'], " ");
    let (mut kind, mut measure, mut rest) = (Operations::All, None, String::new());
    for word in lower.split_whitespace() {
        match word {
            "read" | "reads" => kind = Operations::Reads,
            "write" | "writes" => kind = Operations::Writes,
            "sync" | "syncs" => kind = Operations::Syncs,
            "of" | "latency" | "at" | "least" | "most" => {}
            "iops" => measure = Some(Measure::Iops),
            "throughput" | "bandwidth" | "mib_per_s" => measure = Some(Measure::Throughput),
            "mean" => measure = Some(Measure::Mean),
            "p50" | "median" => measure = Some(Measure::P50),
            "p90" => measure = Some(Measure::P90),
            "p99" => measure = Some(Measure::P99),
            "p99.9" => measure = Some(Measure::P999),
            "p99.99" => measure = Some(Measure::P9999),
            value => rest.push_str(value),
        }
    }
    if rest.is_empty() {
        return Err(wrong("there is no number"));
    }
    let (rest, measure) = match (rest.strip_suffix("iops"), measure) {
        (Some(number), None | Some(Measure::Iops)) => (number.to_owned(), Measure::Iops),
        (_, Some(measure)) => (rest, measure),
        (_, None) if rest.ends_with("/s") => (rest, Measure::Throughput),
        (_, None) => return Err(wrong("it does not say of what")),
    };
    let value = match measure {
        Measure::Iops => rate_per_s(&rest),
        Measure::Throughput => mib_per_s(&rest),
        _ if rest.ends_with(|c: char| c.is_ascii_digit()) => return Err(wrong("a latency needs a unit")),
        _ => parse_duration(&rest).ok().map(|duration| duration.as_nanos() as f64),
    };
    match value {
        Some(value) if value.is_finite() && value > 0.0 => {
            Ok(Stated { figure: Figure { measure, operations: kind }, value })
        }
        _ => Err(wrong("the number cannot be read")),
    }
}

fn rate_per_s(text: &str) -> Option<f64> {
    let (number, scale) = match text.char_indices().last()? {
        (at, 'k') => (&text[..at], 1e3),
        (at, 'm') => (&text[..at], 1e6),
        _ => (text, 1.0),
    };
    plain(number).map(|number| number * scale)
}

fn mib_per_s(text: &str) -> Option<f64> {
    let text = text.strip_suffix("/s").unwrap_or(text);
    for (unit, bytes) in [("kb", 1e3), ("mb", 1e6), ("gb", 1e9), ("tb", 1e12)] {
        if let Some(number) = text.strip_suffix(unit) {
            return plain(number).map(|number| number * bytes / 1_048_576.0);
        }
    }
    if text.ends_with(|c: char| c.is_ascii_digit()) {
        return plain(text);
    }
    parse_bytes(text).ok().map(|bytes| bytes as f64 / 1_048_576.0)
}

/// Digits and a point; underscores for the eye.
fn plain(text: &str) -> Option<f64> {
    let digits = text.replace('_', "");
    digits.bytes().all(|b| b.is_ascii_digit() || b == b'.').then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> (String, f64) {
        let stated = Stated::parse(text).unwrap()[0];
        (stated.figure.to_string(), stated.value)
    }

    #[test]
    fn figures_are_read_as_vendors_write_them() {
        assert_eq!(read("iops=100000"), ("IOPS".into(), 100_000.0));
        assert_eq!(read("100k IOPS"), ("IOPS".into(), 100_000.0));
        assert_eq!(read("1.5M read IOPS"), ("read IOPS".into(), 1_500_000.0));
        assert_eq!(read("500MiB/s"), ("MiB/s".into(), 500.0));
        assert_eq!(read("write 1048.576 MB/s"), ("write MiB/s".into(), 1000.0));
        assert_eq!(read("p99 1ms"), ("p99 of I/Os".into(), 1e6));
        assert_eq!(read("write mean=80us"), ("mean of writes".into(), 80_000.0));
        assert_eq!(Stated::parse("iops=1000, p99.9=2ms").unwrap().len(), 2);
    }

    #[test]
    fn what_states_nothing_is_refused_with_the_reason() {
        let why = |text| Stated::parse(text).unwrap_err().to_string();
        assert!(why("fast").contains("does not say of what"));
        assert!(why("iops").contains("no number"));
        assert!(why("iops=1000,p99 3").contains("'p99 3' states no figure: a latency needs a unit"));
        assert!(why("iops=-5").contains("cannot be read"));
        assert!(why("iops=0").contains("cannot be read"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,20}") {
            let _ = Stated::parse(&text);
        }
    }
}
