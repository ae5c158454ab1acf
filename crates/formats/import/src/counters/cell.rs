//! Values of cells: whole numbers that stay exact, decimals, instants, words. Nothing is guessed: a number that
//! was shortened, or a date that may be read in two ways, is refused.

use crate::ImportError;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

const EXPORT_AGAIN: &str =
    "export it again as plain CSV, without opening it in Excel, which shortens numbers";
const DATES: &str =
    "export dates as 2026-05-01 10:00:00, as the view headroom.file_stats_csv, bcp and SSMS do";

/// The error of a cell, and its remedy; its place is added by the reader of its row.
fn wrong(reason: String, remedy: &str) -> ImportError {
    ImportError::new(reason).remedy(remedy)
}

/// Whether a cell stands for no value.
pub(crate) fn is_null(cell: &str) -> bool {
    matches!(cell, "" | "\\N" | "NULL" | "null" | "(null)")
}

/// A counter. "12.0" is 12; "1.2E+07" is not exact, and "1,234" may be two things.
pub(crate) fn whole(cell: &str) -> Result<u64, ImportError> {
    let digits = match cell.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => whole,
        _ => cell,
    };
    if let Some(number) = digits.strip_prefix('-')
        && is_digits(number)
    {
        return Err(wrong(format!("'{cell}' is negative, and a counter cannot be"), EXPORT_AGAIN));
    }
    if !is_digits(digits) {
        return Err(wrong(format!("'{cell}' is not an exact whole number"), EXPORT_AGAIN));
    }
    digits.parse().map_err(|_| wrong(format!("'{cell}' is larger than 64 bits hold"), EXPORT_AGAIN))
}

/// A whole number that may be negative.
pub(crate) fn signed(cell: &str) -> Result<i64, ImportError> {
    let number = match cell.strip_prefix('-').filter(|number| is_digits(number)) {
        Some(_) => cell.parse().ok(),
        None => i64::try_from(whole(cell)?).ok(),
    };
    number.ok_or_else(|| wrong(format!("'{cell}' is no 64-bit number"), EXPORT_AGAIN))
}

/// A decimal number, by a point or by one comma; `None` for what is no number.
pub(crate) fn decimal(cell: &str) -> Option<f64> {
    let number = match cell.matches(',').count() {
        0 => cell.parse::<f64>(),
        1 if !cell.contains('.') => cell.replace(',', ".").parse(),
        _ => return None,
    };
    number.ok().filter(|number| number.abs() <= DECIMAL_MAX)
}

/// Far above any rate, and far below where sums of products end.
const DECIMAL_MAX: f64 = 1e18;

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// An instant, nanoseconds since 1970. With an offset from UTC it is known; without one it is taken as UTC.
pub(crate) fn instant(cell: &str) -> Result<u64, ImportError> {
    let (text, offset) = split_offset(cell);
    unix_ns(civil(text).map_err(|reason| wrong(format!("'{cell}' {reason}"), DATES))?, offset)
        .ok_or_else(|| wrong(format!("'{cell}' is not a time between 1970 and 2554"), DATES))
}

/// A civil time as nanoseconds since 1970.
pub(crate) fn unix_ns(civil: DateTime, offset: Offset) -> Option<u64> {
    let timestamp: Timestamp = civil.to_zoned(TimeZone::fixed(offset)).ok()?.timestamp();
    u64::try_from(timestamp.as_nanosecond()).ok()
}

/// A time without zone, the same text however the export wrote it.
pub(crate) fn local(cell: &str) -> Result<String, ImportError> {
    let civil = civil(cell).map_err(|reason| wrong(format!("'{cell}' {reason}"), DATES))?;
    Ok(civil.strftime("%Y-%m-%dT%H:%M:%S%.f").to_string())
}

/// "2026-05-01 10:00:00.1234567 +02:00" ends in its offset, and so does "…Z".
fn split_offset(cell: &str) -> (&str, Offset) {
    if let Some(text) = cell.strip_suffix('Z') {
        return (text.trim_end(), Offset::UTC);
    }
    let sign = cell.rfind(['+', '-']).filter(|at| cell[..*at].contains(':'));
    let offset = sign.and_then(|at| {
        let (hours, minutes) = cell[at + 1..].split_once(':')?;
        let both_digits = hours.len() == 2 && minutes.len() == 2 && is_digits(hours) && is_digits(minutes);
        let seconds = if both_digits {
            hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60
        } else {
            return None;
        };
        let seconds = if cell[at..].starts_with('-') { -seconds } else { seconds };
        Some((cell[..at].trim_end(), Offset::from_seconds(seconds).ok()?))
    });
    offset.unwrap_or((cell, Offset::UTC))
}

/// "2026-05-01 10:00:00.123", with T or a blank, seconds and fraction or not; "01.05.2026 10:00:00", where dots say
/// that the day comes first. "5/1/2026" is in May or in January, and "05-01-2026" as well.
fn civil(text: &str) -> Result<DateTime, String> {
    let (date, time) =
        text.split_once(['T', ' ']).ok_or_else(|| "is no date with a time of day".to_owned())?;
    if date.contains('/') {
        return Err("may be a day of two months".into());
    }
    let date = match date.split('.').collect::<Vec<_>>().as_slice() {
        [day, month, year] if year.len() == 4 => format!("{year}-{month:0>2}-{day:0>2}"),
        _ => date.to_owned(),
    };
    let time = time.trim();
    let seconds = if time.matches(':').count() == 1 { ":00" } else { "" };
    // A fraction may have a comma where decimals have one.
    let text = format!("{date}T{}{seconds}", time.replace(',', "."));
    text.parse().map_err(|_| "is no date with a time of day".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_stay_exact_or_are_refused() {
        assert_eq!(whole("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(whole("12.00"), Ok(12));
        for wrong in
            ["1.23457E+11", "1,234", "1.234.567", "-5", "18446744073709551616", "12.5", "0x1f", "+3", ""]
        {
            assert!(whole(wrong).is_err(), "{wrong}");
        }
        assert_eq!(signed("-2147483648"), Ok(-2_147_483_648));
        assert!(signed("--1").is_err());
    }

    #[test]
    fn decimals_have_a_point_or_a_comma() {
        assert_eq!(decimal("6.4103E-05"), Some(6.4103e-5));
        assert_eq!(decimal("0,0123"), Some(0.0123));
        for wrong in ["1.234,5", "1,234,567", "NaN", "inf", "", "n/a"] {
            assert_eq!(decimal(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_instant_is_the_same_however_it_is_written() {
        let ten = 1_777_629_600_000_000_000;
        for text in [
            "2026-05-01T10:00:00.000",
            "2026-05-01 10:00",
            "2026-05-01 10:00:00.0000000 +00:00",
            "2026-05-01 12:00:00.0000000 +02:00",
            "2026-05-01 04:30:00 -05:30",
            "2026-05-01T10:00:00Z",
            "01.05.2026 10:00:00",
            "1.5.2026 10:00:00,000",
        ] {
            assert_eq!(instant(text), Ok(ten), "{text}");
        }
        assert_eq!(instant("2026-05-01 10:00:00.1234567"), Ok(ten + 123_456_700));
        assert_eq!(local("2026-05-01 08:00:01.1230000"), local("2026-05-01T08:00:01.123"));
    }

    #[test]
    fn a_date_that_can_be_read_in_two_ways_is_refused() {
        for wrong in [
            "5/1/2026 10:00:00 AM",
            "05-01-2026 10:00",
            "2026-05-01",
            "2026-13-01 10:00",
            "1899-01-01 10:00",
            "noon",
        ] {
            assert!(instant(wrong).is_err(), "{wrong}");
        }
    }
}
