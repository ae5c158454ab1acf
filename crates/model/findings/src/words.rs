//! How sentences write their numbers.

use workload::format_count;

pub use workload::format_bytes as bytes;

/// A time: "85.3 us".
pub fn time(ns: f64) -> String {
    if ns.is_finite() && ns < 1e18 { workload::format_ns(ns) } else { "an endless time".into() }
}

/// A point or length of a run's time: "12 s", "1.5 s", "34 min", "5.0 h".
pub fn length(ns: f64) -> String {
    match ns / 1e9 {
        s if !s.is_finite() || s > 1e9 => "more than 30 years".into(),
        s if s < 1.0 => time(ns),
        s if s < 9.95 && (s.fract() - 0.5).abs() < 0.45 => format!("{s:.1} s"),
        s if s < 119.5 => format!("{s:.0} s"),
        s if s < 7170.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{} days", rate(s / 86_400.0)),
    }
}

/// "1 read", "27,000 reads".
pub fn counted(value: u64, noun: &str) -> String {
    format!("{} {noun}{}", format_count(value), if value == 1 { "" } else { "s" })
}

/// A rate or an average: three digits, thousands apart.
pub fn rate(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "no".into(),
        v if v >= 99.95 && value < 1e18 => {
            format!("{}{}", if value < 0.0 { "-" } else { "" }, format_count(v.round() as u64))
        }
        v if v >= 1e18 => format!("{value:.2e}"),
        v if v >= 9.995 || v == v.round() => format!("{value:.1}").trim_end_matches(".0").into(),
        _ => format!("{value:.2}"),
    }
}

/// A share as percent: "0.4 %", "97 %".
pub fn share(value: f64) -> String {
    let percent = value * 100.0;
    match percent.abs() {
        p if p > 0.0 && p < 0.05 => "under 0.1 %".into(),
        p if p < 9.95 && p > 0.0 => format!("{percent:.1} %"),
        _ => format!("{} %", rate(percent.round())),
    }
}

/// A spread: "within 3.1 %", "within 0.1 %" where it is less.
pub fn within(value: f64) -> String {
    format!("within {}", share(if value > 0.0 && value < 0.001 { 0.001 } else { value }))
}

/// A change as percent with its sign: "-3.1 %", "+12 %".
pub fn change(value: f64) -> String {
    if value.abs() < 0.0005 {
        return "0 %".into();
    }
    let sign = if value < 0.0 { "-" } else { "+" };
    format!("{sign}{}", share(value.abs()))
}

/// "first, second and third".
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_say_them() {
        assert_eq!([length(12e9), length(1.5e9), length(2_040e9)], ["12 s", "1.5 s", "34 min"]);
        assert_eq!([rate(9000.0), rate(2.69), rate(4.0)], ["9,000", "2.69", "4"]);
        assert_eq!([share(0.974), share(0.0042), share(0.0)], ["97 %", "0.4 %", "0 %"]);
        assert_eq!(
            [within(0.031), within(0.0003), within(0.0)],
            ["within 3.1 %", "within 0.1 %", "within 0 %"]
        );
        assert_eq!([change(-0.031), change(0.12), change(0.0)], ["-3.1 %", "+12 %", "0 %"]);
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
        assert_eq!(counted(1, "read"), "1 read");
    }
}
