use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;

/// Unit of a number that supports a finding or a verdict.
///
/// In JSON its symbol, as in [`Unit::symbol`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Events a second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// MiB a second.
    MibPerSecond,
    /// A share, 1 = all.
    Share,
    /// A ratio.
    Times,
    /// Percent.
    Percent,
    /// I/Os.
    Ios,
    /// Blocks.
    Blocks,
    /// Files.
    Files,
    /// Rows of a series.
    Rows,
    /// Intervals between captures.
    Intervals,
    /// Cores.
    Cores,
    /// Days.
    Days,
    /// The number of a thing, not how many there are.
    Number,
    /// The rank on a scale, 0 = best.
    Rank,
    /// Without a unit.
    None,
}

impl Unit {
    const ALL: [Unit; 18] = [
        Unit::Ns,
        Unit::PerSecond,
        Unit::Bytes,
        Unit::BytesPerSecond,
        Unit::MibPerSecond,
        Unit::Share,
        Unit::Times,
        Unit::Percent,
        Unit::Ios,
        Unit::Blocks,
        Unit::Files,
        Unit::Rows,
        Unit::Intervals,
        Unit::Cores,
        Unit::Days,
        Unit::Number,
        Unit::Rank,
        Unit::None,
    ];

    /// As it is written behind the number and in JSON.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Ns => "ns",
            Unit::PerSecond => "1/s",
            Unit::Bytes => "B",
            Unit::BytesPerSecond => "B/s",
            Unit::MibPerSecond => "MiB/s",
            Unit::Share => "share",
            Unit::Times => "times",
            Unit::Percent => "percent",
            Unit::Ios => "I/Os",
            Unit::Blocks => "blocks",
            Unit::Files => "files",
            Unit::Rows => "rows",
            Unit::Intervals => "intervals",
            Unit::Cores => "cores",
            Unit::Days => "days",
            Unit::Number => "number",
            Unit::Rank => "rank",
            Unit::None => "",
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol())
    }
}

impl Serialize for Unit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.symbol())
    }
}

impl<'de> Deserialize<'de> for Unit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Unit, D::Error> {
        let symbol = String::deserialize(deserializer)?;
        let found = Unit::ALL.into_iter().find(|unit| unit.symbol() == symbol);
        found.ok_or_else(|| D::Error::custom(format!("unknown unit '{symbol}'")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read_as_it_was_written() {
        for unit in Unit::ALL {
            let text = serde_json::to_string(&unit).unwrap();
            assert_eq!(serde_json::from_str::<Unit>(&text).unwrap(), unit, "{text}");
        }
        assert!(serde_json::from_str::<Unit>("\"parsecs\"").is_err());
    }
}
