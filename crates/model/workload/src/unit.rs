use serde::{Deserialize, Serialize};
use std::fmt;

/// Unit of a number that supports a finding or a verdict.
///
/// Shown as its symbol, which JSON has too.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Events a second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// Bytes.
    #[serde(rename = "B")]
    Bytes,
    /// Bytes a second.
    #[serde(rename = "B/s")]
    BytesPerSecond,
    /// MiB a second.
    #[serde(rename = "MiB/s")]
    MibPerSecond,
    /// A share, 1 = all.
    Share,
    /// A ratio.
    Times,
    /// Percent.
    Percent,
    /// I/Os.
    #[serde(rename = "I/Os")]
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
    #[serde(rename = "")]
    None,
    /// Of a result that another version stored.
    #[serde(untagged)]
    Other(String),
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_read_as_it_was_written_and_one_of_another_version_is_kept() {
        for symbol in ["ns", "1/s", "B", "B/s", "MiB/s", "share", "I/Os", "intervals", "rank", "", "parsecs"]
        {
            let unit: Unit = serde_json::from_value(symbol.into()).unwrap();
            assert_eq!(
                (unit.to_string(), serde_json::to_value(&unit).unwrap()),
                (symbol.into(), symbol.into())
            );
            assert_eq!(matches!(unit, Unit::Other(_)), symbol == "parsecs", "{symbol}");
        }
    }
}
