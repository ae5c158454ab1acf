//! The percentiles that are shown, and how many I/Os each needs.

/// A row of the table of percentiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rung {
    /// As people write it: "99.9".
    pub name: &'static str,
    /// In percent.
    pub percent: f64,
    /// I/Os needed for ten of them to lie above it; with fewer it is little more than the maximum.
    pub ios_needed: u64,
}

/// From a quarter to nine nines, as diskspd prints them; min and max stand around them.
pub const LADDER: [Rung; 13] = [
    rung("25", 25.0, 14),
    rung("50", 50.0, 20),
    rung("75", 75.0, 40),
    rung("90", 90.0, 100),
    rung("95", 95.0, 200),
    rung("99", 99.0, 1_000),
    rung("99.9", 99.9, 10_000),
    rung("99.99", 99.99, 100_000),
    rung("99.999", 99.999, 1_000_000),
    rung("99.9999", 99.9999, 10_000_000),
    rung("99.99999", 99.99999, 100_000_000),
    rung("99.999999", 99.999999, 1_000_000_000),
    rung("99.9999999", 99.9999999, 10_000_000_000),
];

const fn rung(name: &'static str, percent: f64, ios_needed: u64) -> Rung {
    Rung { name, percent, ios_needed }
}

impl Rung {
    /// Whether at least ten of `ios` I/Os lie above it.
    pub fn stands(&self, ios: u64) -> bool {
        ios >= self.ios_needed
    }
}

/// The highest percentile with ten I/Os above it; `None` with fewer than 14 I/Os.
pub fn last_that_stands(ios: u64) -> Option<&'static Rung> {
    LADDER.iter().rev().find(|rung| rung.stands(ios))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rung_has_ten_ios_above_it_and_one_io_fewer_has_not() {
        for rung in LADDER {
            let above = |ios: u64| ios as f64 * (1.0 - rung.percent / 100.0);
            assert!(above(rung.ios_needed) > 9.999, "{}", rung.name);
            assert!(above(rung.ios_needed - 1) < 10.0, "{}", rung.name);
        }
    }

    #[test]
    fn the_last_percentile_that_stands_follows_the_count() {
        let of = |ios: u64| last_that_stands(ios).map(|rung| rung.name);
        assert_eq!([of(13), of(14), of(9_999), of(10_000)], [None, Some("25"), Some("99"), Some("99.9")]);
    }
}
