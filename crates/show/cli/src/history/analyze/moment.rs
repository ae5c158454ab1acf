//! Points of time as people give them: `-2h`, `now`, `2026-11-20`, `2026-11-20 14:00`, RFC 3339.

use jiff::civil::DateTime;
use jiff::{Timestamp, tz::TimeZone};
use std::str::FromStr;
use workload_file::values;

/// A point of time, or how long before now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// This long ago, nanoseconds.
    Ago(u64),
    /// Then, nanoseconds since 1970.
    At(u64),
}

impl Moment {
    /// Nanoseconds since 1970.
    pub fn unix_ns(self, now: Timestamp) -> u64 {
        match self {
            Moment::Ago(ns) => u64::try_from(now.as_nanosecond()).unwrap_or(0).saturating_sub(ns),
            Moment::At(unix_ns) => unix_ns,
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Moment, String> {
        let wrong = || {
            format!(
                "'{text}' is not a point in time; give -2h, -7d, now, 2026-11-20, '2026-11-20 14:00' (UTC) or \
                 2026-11-20T14:00:00Z"
            )
        };
        if text == "now" {
            return Ok(Moment::Ago(0));
        }
        if let Some(ago) = text.strip_prefix('-') {
            return ago_ns(ago).map(Moment::Ago).ok_or_else(wrong);
        }
        let civil = || text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|at| at.timestamp());
        let at = text.parse::<Timestamp>().ok().or_else(civil).ok_or_else(wrong)?;
        u64::try_from(at.as_nanosecond()).map(Moment::At).map_err(|_| wrong())
    }
}

/// "2h", "90s", and days and weeks, which other times have no use for.
fn ago_ns(text: &str) -> Option<u64> {
    const DAY_S: u64 = 86_400;
    let days = [('d', DAY_S), ('w', 7 * DAY_S)];
    for (unit, seconds) in days {
        if let Some(count) = text.strip_suffix(unit) {
            return count.parse::<u64>().ok()?.checked_mul(seconds)?.checked_mul(1_000_000_000);
        }
    }
    let time = values::some_time(text).ok()?;
    u64::try_from(time.as_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_of_time_may_be_given_as_people_say_it() {
        const S: u64 = 1_000_000_000;
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let now_ns = now.as_nanosecond() as u64;
        let at = |text: &str| text.parse::<Moment>().unwrap().unix_ns(now);
        assert_eq!(at("now"), now_ns);
        assert_eq!([at("-2h"), at("-7d")], [now_ns - 7_200 * S, now_ns - 7 * 86_400 * S]);
        assert_eq!(at("2026-11-21"), now_ns - 12 * 3_600 * S);
        assert_eq!(at("2026-11-21 11:30"), now_ns - 1_800 * S);
        assert_eq!(at("2026-11-21T13:00:00+01:00"), now_ns);
        for wrong in ["", "yesterday", "-", "-2 moons", "2026-13-01", "1969-01-01", "-99999999999999d"] {
            assert!(wrong.parse::<Moment>().is_err(), "{wrong}");
        }
    }
}
