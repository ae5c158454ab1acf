use serde::{Deserialize, Serialize};
use std::fmt;

/// A figure, or why there is none. In JSON a known figure is the bare value, an unknown one is
/// `{"unknown": "<reason>"}`: it cannot be mistaken for a zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Figure<T> {
    /// The figure.
    Known(T),
    /// The figure is unknown.
    Unknown {
        /// Why not.
        unknown: Reason,
    },
}

/// Why a figure or a whole interval cannot be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The file is in the later capture only: nothing to subtract from.
    FirstSight,
    /// The engine that counts restarted between the captures.
    Restart,
    /// The statistics were reset between the captures.
    StatsReset,
    /// The engine closed the file between the captures and opened it again: its counters started from zero.
    Reopened,
    /// The source lost events, and with them an unknown part of the figure.
    Lost,
    /// A counter is lower than before although the epoch is the same.
    CounterFell,
    /// The name belongs to another file now (replaced, restored, re-created).
    IdentityChanged,
    /// More time than the rules allow lies between the captures.
    GapTooLong,
    /// The engine does not time its I/O (or did not during a part of the interval).
    TimingOff,
    /// Nothing of the kind happened, so that it has no latency and no size.
    NoOperations,
    /// The source does not keep this counter.
    NotCounted,
    /// The file is in the earlier capture only.
    Gone,
    /// The source's clock did not advance between the captures.
    NoTimePassed,
    /// Operations were counted and their summed time is 0: they took less than the source's clock resolves. A latency only,
    /// which is computed and never kept.
    BelowResolution,
}

impl<T> Figure<T> {
    /// An unknown figure.
    pub const fn unknown(reason: Reason) -> Self {
        Figure::Unknown { unknown: reason }
    }

    /// The value, if there is one.
    pub fn known(self) -> Option<T> {
        match self {
            Figure::Known(value) => Some(value),
            Figure::Unknown { .. } => None,
        }
    }

    /// The value by reference, if there is one.
    pub fn as_known(&self) -> Option<&T> {
        match self {
            Figure::Known(value) => Some(value),
            Figure::Unknown { .. } => None,
        }
    }

    /// The reason, if there is no value.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Figure::Known(_) => None,
            Figure::Unknown { unknown } => Some(*unknown),
        }
    }

    /// Computes with the value; a reason passes through.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Figure<U> {
        match self {
            Figure::Known(value) => Figure::Known(f(value)),
            Figure::Unknown { unknown } => Figure::Unknown { unknown },
        }
    }

    /// Computes with two values; the first reason passes through.
    pub fn zip<U, V>(self, other: Figure<U>, f: impl FnOnce(T, U) -> V) -> Figure<V> {
        match (self, other) {
            (Figure::Known(a), Figure::Known(b)) => Figure::Known(f(a, b)),
            (Figure::Unknown { unknown }, _) | (_, Figure::Unknown { unknown }) => {
                Figure::Unknown { unknown }
            }
        }
    }
}

impl<T> Figure<Option<T>> {
    /// `None` where a known value is none.
    pub fn transpose(self) -> Option<Figure<T>> {
        match self {
            Figure::Known(value) => value.map(Figure::Known),
            Figure::Unknown { unknown } => Some(Figure::unknown(unknown)),
        }
    }
}

impl<T> Figure<Figure<T>> {
    /// Unknown where either is.
    pub fn flatten(self) -> Figure<T> {
        match self {
            Figure::Known(figure) => figure,
            Figure::Unknown { unknown } => Figure::unknown(unknown),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::FirstSight => "first seen in this capture",
            Reason::Restart => "the engine restarted",
            Reason::StatsReset => "the statistics were reset",
            Reason::Reopened => "the file was closed and opened again",
            Reason::Lost => "events were lost",
            Reason::CounterFell => "a counter fell",
            Reason::IdentityChanged => "the file was replaced",
            Reason::GapTooLong => "too much time between the captures",
            Reason::TimingOff => "I/O timing is off",
            Reason::NoOperations => "no operations",
            Reason::NotCounted => "not counted by this source",
            Reason::Gone => "gone in this capture",
            Reason::NoTimePassed => "no time passed between the captures",
            Reason::BelowResolution => "shorter than the source's clock resolves",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_figure_is_never_a_number_in_json() {
        let known: Figure<u64> = Figure::Known(7);
        let unknown: Figure<u64> = Figure::unknown(Reason::TimingOff);
        assert_eq!(serde_json::to_string(&known).unwrap(), "7");
        let text = serde_json::to_string(&unknown).unwrap();
        assert_eq!(text, r#"{"unknown":"timing-off"}"#);
        assert_eq!(serde_json::from_str::<Figure<u64>>(&text).unwrap(), unknown);
    }
}
