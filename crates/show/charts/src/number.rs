//! How figures are written, the same in every format.

use filestats::Figure;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use verdict::Evidence;
pub(crate) use workload::format_count as count;

/// Stands for a figure that is not there.
pub(crate) const NONE: &str = "-";

/// A time: "85.3 us".
pub(crate) fn time(ns: f64) -> String {
    match ns.abs() {
        _ if !ns.is_finite() => NONE.into(),
        // Longer than thirty years: no figure of storage.
        v if v >= 1e18 => format!("{:.2e} s", ns / 1e9),
        _ => workload::format_ns(ns),
    }
}

/// A time in milliseconds without its unit, three significant digits.
pub(crate) fn millis(ns: f64) -> String {
    rate(ns / 1e6)
}

fn grouped(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", count(value.abs().round() as u64))
}

/// A rate, a count or a ratio: three significant digits where there is a fraction, thousands apart from 100
/// on: "0.250", "14.2", "8", "12,696".
pub(crate) fn rate(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => NONE.into(),
        v if v >= 1e15 => format!("{value:.2e}"),
        v if v >= 99.95 || v.fract() == 0.0 => grouped(value),
        v if v >= 9.995 => format!("{value:.1}"),
        v if v >= 0.9995 => format!("{value:.2}"),
        v if v >= 0.00005 => format!("{value:.3}"),
        _ => "< 0.001".into(),
    }
}

/// A share as percent: "0.4 %", "97 %".
pub(crate) fn share(value: f64) -> String {
    let percent = value * 100.0;
    match percent.abs() {
        _ if !percent.is_finite() => NONE.into(),
        p if p >= 1e15 => format!("{percent:.2e} %"),
        p if p > 0.0 && p < 0.05 => "< 0.1 %".into(),
        p if p < 9.95 && p > 0.0 => format!("{percent:.1} %"),
        _ => format!("{} %", grouped(percent)),
    }
}

/// How many times: "1.03 x".
pub(crate) fn times(value: f64) -> String {
    if value.is_finite() { format!("{} x", rate(value)) } else { NONE.into() }
}

/// Bytes that were averaged: "8.2 KiB".
pub(crate) fn bytes(value: f64) -> String {
    if value.is_finite() { workload::format_bytes(value.max(0.0).round() as u64) } else { NONE.into() }
}

/// A figure written by `write`, or a dash.
pub(crate) fn or_dash<T>(figure: Figure<T>, write: impl Fn(T) -> String) -> String {
    figure.known().map_or(NONE.into(), write)
}

/// A piece of evidence with its unit.
pub(crate) fn evidence(evidence: &Evidence) -> String {
    let value = evidence.value;
    if !value.is_finite() {
        return NONE.into();
    }
    match evidence.unit.as_str() {
        "ns" => time(value),
        "share" => share(value),
        "times" => times(value),
        "1/s" => format!("{}/s", rate(value)),
        "B/s" => format!("{}/s", bytes(value)),
        "B" | "bytes" => bytes(value),
        unit => format!("{} {unit}", rate(value)),
    }
}

/// An instant for people, in UTC; 0 is none.
pub(crate) fn instant(unix_ns: u64) -> String {
    zoned(unix_ns, "%Y-%m-%d %H:%M:%S UTC")
}

/// The time of day in UTC, without seconds where they are all zero.
pub(crate) fn time_of_day(unix_ns: u64, whole_minutes: bool) -> String {
    zoned(unix_ns, if whole_minutes { "%H:%M" } else { "%H:%M:%S" })
}

/// The day in UTC.
pub(crate) fn day(unix_ns: u64) -> String {
    zoned(unix_ns, "%Y-%m-%d")
}

/// A round number at an axis: "2.5k", "10k", "2M".
pub(crate) fn tick(value: f64) -> String {
    match value.abs() {
        v if v >= 1e12 => format!("{value:.0e}"),
        v if v >= 1e9 => format!("{}G", value / 1e9),
        v if v >= 1e6 => format!("{}M", value / 1e6),
        v if v >= 1e3 => format!("{}k", (value / 1e3 * 1e3).round() / 1e3),
        v if v >= 1.0 || v == 0.0 => format!("{}", (value * 1e3).round() / 1e3),
        _ => format!("{value:.3}").trim_end_matches('0').trim_end_matches('.').to_owned(),
    }
}

/// A round time at an axis: "500 us", "2 ms".
pub(crate) fn tick_time(ns: f64) -> String {
    let text = time(ns);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

fn zoned(unix_ns: u64, form: &str) -> String {
    match Timestamp::from_nanosecond(i128::from(unix_ns)) {
        Ok(at) if unix_ns > 0 => at.to_zoned(TimeZone::UTC).strftime(form).to_string(),
        _ => NONE.into(),
    }
}

/// An instant by RFC 3339; `None` for 0, which stands for "never".
pub(crate) fn rfc3339(unix_ns: u64) -> Option<String> {
    let at = Timestamp::from_nanosecond(i128::from(unix_ns)).ok()?;
    (unix_ns > 0).then(|| at.to_string())
}

/// How long something lasted: "45 s", "12 min", "3.5 h".
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() => NONE.into(),
        s if s < 120.0 => format!("{} s", rate(s)),
        s if s < 7200.0 => format!("{} min", rate(s / 60.0)),
        s => format!("{} h", rate(s / 3600.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_people_read_them() {
        assert_eq!(rate(97_012.4), "97,012");
        assert_eq!(rate(14.25), "14.2");
        assert_eq!(rate(0.0), "0");
        assert_eq!(rate(f64::NAN), "-");
        assert_eq!(share(0.974), "97 %");
        assert_eq!(share(0.0042), "0.4 %");
        assert_eq!(share(0.00001), "< 0.1 %");
        assert_eq!(times(1.0 / 0.97), "1.03 x");
        assert_eq!(millis(1_240_000.0), "1.24");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(duration(90.0), "90 s");
    }

    #[test]
    fn an_instant_is_utc_and_zero_is_none() {
        assert_eq!(instant(1_795_252_443_000_000_000), "2026-11-21 09:14:03 UTC");
        assert_eq!(rfc3339(1_795_252_443_500_000_000).unwrap(), "2026-11-21T09:14:03.5Z");
        assert_eq!(instant(0), "-");
        assert_eq!(rfc3339(0), None);
    }
}
