//! The server's answers, parsed from text. A malformed value is `None`, like NULL.

use tokio_postgres::{SimpleQueryMessage, SimpleQueryRow};

/// The rows of one statement.
pub(super) type Table = Vec<SimpleQueryRow>;

/// The tables of a batch, one for each statement, with or without columns.
pub(super) fn tables(messages: Vec<SimpleQueryMessage>) -> Vec<Table> {
    let mut tables = Vec::new();
    let mut rows = Table::new();
    for message in messages {
        match message {
            SimpleQueryMessage::Row(row) => rows.push(row),
            SimpleQueryMessage::CommandComplete(_) => tables.push(std::mem::take(&mut rows)),
            _ => {}
        }
    }
    tables
}

/// A column by name.
pub(super) trait Columns {
    /// As text; `None` for NULL and for a missing column.
    fn text(&self, name: &str) -> Option<&str>;

    /// A count.
    fn count(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// Milliseconds with a fraction, as nanoseconds.
    fn ms_as_ns(&self, name: &str) -> Option<u64> {
        ms_to_ns(self.text(name)?)
    }

    /// `t` or `f`, `on` or `off`.
    fn flag(&self, name: &str) -> Option<bool> {
        match self.text(name)? {
            "t" | "on" => Some(true),
            "f" | "off" => Some(false),
            _ => None,
        }
    }
}

impl Columns for SimpleQueryRow {
    fn text(&self, name: &str) -> Option<&str> {
        // `get` panics on an unknown name.
        let at = self.columns().iter().position(|column| column.name() == name)?;
        self.try_get(at).ok()?
    }
}

/// Converts the server's double, which is exact to its microseconds up to 2^53 of them (285 years). Rounding is monotonic: a
/// counter that grows there does not fall here.
fn ms_to_ns(text: &str) -> Option<u64> {
    let ns = (text.parse::<f64>().ok()? * 1e6).round();
    (ns.is_finite() && ns >= 0.0).then_some(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn milliseconds_become_whole_nanoseconds() {
        assert_eq!(ms_to_ns("0.25"), Some(250_000));
        assert_eq!(ms_to_ns("1e+15"), Some(u64::MAX), "more than 584 years saturates");
        assert_eq!(ms_to_ns("-1"), None);
        assert_eq!(ms_to_ns("NaN"), None);
        assert_eq!(ms_to_ns("soon"), None);
    }

    proptest! {
        #[test]
        fn the_conversion_to_nanoseconds_is_monotonic(a in 0.0..1e15_f64, b in 0.0..1e15_f64) {
            let (low, high) = (a.min(b), a.max(b));
            prop_assert!(ms_to_ns(&low.to_string()) <= ms_to_ns(&high.to_string()));
        }
    }
}
