use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Mebibytes, for figures that people read.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mib(pub f64);

/// Text that is no size or no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}; {}", self.reason(), self.remedy())]
pub enum BadQuantity {
    /// Not a size.
    Size(String),
    /// Not a time.
    Time(String),
}

impl BadQuantity {
    /// The error.
    pub fn reason(&self) -> String {
        match self {
            BadQuantity::Size(text) => format!("'{text}' is not a size"),
            BadQuantity::Time(text) => format!("'{text}' is not a time"),
        }
    }

    /// The text to write instead.
    pub fn remedy(&self) -> &'static str {
        match self {
            BadQuantity::Size(_) => {
                "give bytes, or a number with K, M, G or T (powers of 1024), as in 4K or 1G"
            }
            BadQuantity::Time(_) => "give a number with ms, s, m or h, as in 500ms, 15s or 2m",
        }
    }
}

/// Reads a size: `512`, `4K`, `1.5G`, `64KiB`. Suffixes are powers of 1024.
///
/// # Errors
/// [`BadQuantity::Size`] where the text is something else or more than `u64` holds.
pub fn parse_bytes(text: &str) -> Result<u64, BadQuantity> {
    let wrong = || BadQuantity::Size(text.into());
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.trim_end_matches("ib").trim_end_matches('b');
    let (number, shift) = match digits.char_indices().last() {
        Some((at, 'k')) => (&digits[..at], 10),
        Some((at, 'm')) => (&digits[..at], 20),
        Some((at, 'g')) => (&digits[..at], 30),
        Some((at, 't')) => (&digits[..at], 40),
        _ => (digits, 0),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(1 << shift).ok_or_else(wrong);
    }
    let fraction: f64 = number.parse().map_err(|_| wrong())?;
    let bytes = fraction * (1_u64 << shift) as f64;
    let fits = fraction.is_finite() && fraction >= 0.0 && bytes < u64::MAX as f64;
    if fits && number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        Ok(bytes as u64)
    } else {
        Err(wrong())
    }
}

/// Reads a time: `500ms`, `15s`, `2m`, `1h`; a bare number is seconds.
///
/// # Errors
/// [`BadQuantity::Time`] where the text is something else or longer than a year.
pub fn parse_duration(text: &str) -> Result<Duration, BadQuantity> {
    let wrong = || BadQuantity::Time(text.into());
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(wrong()),
    };
    let seconds = number.parse::<f64>().map_err(|_| wrong())? * scale;
    if seconds.is_finite() && seconds <= 366.0 * 86_400.0 {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(wrong())
    }
}

/// A size as people write it: `8 KiB`, `1.5 GiB`, `100 B`.
pub fn format_bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 {
        format!("{value} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// A whole number with thousands apart: `27,000`.
pub fn format_count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A time as people write it, with three significant digits: `85.3 us`, `1.24 ms`, `12.0 s`.
pub fn format_ns(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => return format!("{ns:.0} ns"),
        ns if ns < 999.5e3 => (ns / 1e3, "us"),
        ns if ns < 999.5e6 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    match value {
        v if v < 9.995 => format!("{v:.2} {unit}"),
        v if v < 99.95 => format!("{v:.1} {unit}"),
        v => format!("{v:.0} {unit}"),
    }
}

impl fmt::Display for Mib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} MiB", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_and_times_are_read_as_people_write_them() {
        assert_eq!(parse_bytes("4K"), Ok(4096));
        assert_eq!(parse_bytes("64KiB"), Ok(65536));
        assert_eq!(parse_bytes("1.5G"), Ok(3 << 29));
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "K", "-4K", "4X", "99999999999T", "1e3", "nan"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "s", "-1s", "5 parsecs", "9999999h"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn figures_are_written_with_three_digits() {
        let written = [812.0, 85_312.0, 999_700.0, 12_345_678.0, 1.2e10].map(format_ns);
        assert_eq!(written, ["812 ns", "85.3 us", "1.00 ms", "12.3 ms", "12.0 s"]);
        assert_eq!(format_bytes(8192), "8 KiB");
        assert_eq!(format_bytes(1_600_000), "1.5 MiB");
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text in ".{0,12}") {
            let _ = (parse_bytes(&text), parse_duration(&text));
        }
    }
}
