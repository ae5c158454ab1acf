//! How figures are written, the same on axes, in tables and in sentences.

use filestats::Figure;
use jiff::Timestamp;
use jiff::tz::TimeZone;
/// A whole number with thousands apart.
pub use workload::format_count as count;

/// Stands for an unknown figure.
pub const NONE: &str = "-";

/// A time: "85.3 us".
pub fn time(ns: f64) -> String {
    match ns.abs() {
        _ if !ns.is_finite() => NONE.into(),
        // Longer than thirty years: no figure of storage.
        v if v >= 1e18 => format!("{:.2e} s", ns / 1e9),
        _ => workload::format_ns(ns),
    }
}

/// A time in milliseconds of which a clock of milliseconds counted none.
pub const BELOW_MILLISECOND: &str = "< 1";

/// A time in milliseconds without its unit, three significant digits.
pub fn millis(ns: f64) -> String {
    rate(ns / 1e6)
}

fn grouped(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", count(value.abs().round() as u64))
}

/// A rate, a count or a ratio: three significant digits where there is a fraction, thousands apart from 100
/// on: "0.250", "14.2", "8", "12,696".
pub fn rate(value: f64) -> String {
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
pub fn share(value: f64) -> String {
    let percent = value * 100.0;
    match percent.abs() {
        _ if !percent.is_finite() => NONE.into(),
        p if p >= 1e15 => format!("{percent:.2e} %"),
        p if p > 0.0 && p < 0.05 => "< 0.1 %".into(),
        p if p < 9.95 && p > 0.0 => format!("{percent:.1} %"),
        _ => format!("{} %", grouped(percent)),
    }
}

/// A share of a whole that is not all of it, however near: never rounded to 100 %.
pub fn share_of_whole(value: f64) -> String {
    if value > 0.995 && value < 1.0 { "over 99 %".into() } else { share(value) }
}

/// A change as percent with its sign: "+2.5 %", "-12 %".
pub fn change(value: f64) -> String {
    format!("{}{}", if value > 0.0 { "+" } else { "" }, share(value))
}

/// A change in whole percent: "+20 %", "0 %".
pub fn whole_change(value: f64) -> String {
    match (value * 100.0).round() {
        0.0 => "0 %".into(),
        percent => format!("{percent:+.0} %"),
    }
}

/// A round share at an axis: "2.5 %".
pub fn tick_share(value: f64) -> String {
    format!("{} %", tick((value * 1e8).round() / 1e6))
}

/// A factor: "1.03 x".
pub fn times(value: f64) -> String {
    if value.is_finite() { format!("{} x", rate(value)) } else { NONE.into() }
}

/// Bytes that were averaged: "8.2 KiB".
pub fn bytes(value: f64) -> String {
    if value.is_finite() { workload::format_bytes(value.max(0.0).round() as u64) } else { NONE.into() }
}

/// A figure written by `write`, or a dash.
pub fn or_dash<T>(figure: Figure<T>, write: impl Fn(T) -> String) -> String {
    figure.known().map_or(NONE.into(), write)
}

/// An instant in UTC: "2026-11-21 09:14:03 UTC"; 0 stands for none.
pub fn instant(unix_ns: u64) -> String {
    zoned(unix_ns, "%Y-%m-%d %H:%M:%S UTC")
}

/// The time of day in UTC, without seconds where they are all zero.
pub fn time_of_day(unix_ns: u64, whole_minutes: bool) -> String {
    zoned(unix_ns, if whole_minutes { "%H:%M" } else { "%H:%M:%S" })
}

/// The day in UTC.
pub fn day(unix_ns: u64) -> String {
    zoned(unix_ns, "%Y-%m-%d")
}

/// A round number at an axis: "2.5k", "10k", "2M".
pub fn tick(value: f64) -> String {
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
pub fn tick_time(ns: f64) -> String {
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
pub fn rfc3339(unix_ns: u64) -> Option<String> {
    let at = Timestamp::from_nanosecond(i128::from(unix_ns)).ok()?;
    (unix_ns > 0).then(|| at.to_string())
}

/// How long something lasted: "45 s", "12 min", "3.5 h".
pub fn duration(seconds: f64) -> String {
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
    fn figures_have_three_digits_or_thousands_apart() {
        assert_eq!(rate(97_012.4), "97,012");
        assert_eq!(rate(14.25), "14.2");
        assert_eq!(rate(0.0), "0");
        assert_eq!(rate(f64::NAN), "-");
        assert_eq!(share(0.974), "97 %");
        assert_eq!(share(0.0042), "0.4 %");
        assert_eq!(share(0.00001), "< 0.1 %");
        assert_eq!([share_of_whole(0.999), share_of_whole(1.0)], ["over 99 %", "100 %"]);
        assert_eq!([change(0.025), change(-0.12), change(0.0)], ["+2.5 %", "-12 %", "0 %"]);
        assert_eq!([whole_change(0.204), whole_change(-0.004)], ["+20 %", "0 %"]);
        assert_eq!(tick_share(0.025), "2.5 %");
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
