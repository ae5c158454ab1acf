//! What the server answers, as text, read into numbers. It is outside data: what is not of the expected form
//! is `None`, like NULL.

use tokio_postgres::{SimpleQueryMessage, SimpleQueryRow};

/// The rows of one statement.
pub(super) type Table = Vec<SimpleQueryRow>;

/// The tables of a batch, one for each statement that has columns or not.
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
    /// As text; `None` for NULL and for a column that is not there.
    fn text(&self, name: &str) -> Option<&str>;

    /// A count.
    fn count(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// Milliseconds with a fraction, as nanoseconds.
    fn ms_as_ns(&self, name: &str) -> Option<u64> {
        ns_of_ms(self.text(name)?)
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
        // Its `get` panics on an unknown name.
        let at = self.columns().iter().position(|column| column.name() == name)?;
        self.try_get(at).ok()?
    }
}

/// The server's double, exact to the microsecond it counts in up to 2^53 of them (285 years). Rounding keeps
/// the order: what grew there does not fall here.
fn ns_of_ms(text: &str) -> Option<u64> {
    let ns = (text.parse::<f64>().ok()? * 1e6).round();
    (ns.is_finite() && ns >= 0.0).then_some(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn milliseconds_become_whole_nanoseconds() {
        assert_eq!(ns_of_ms("0.25"), Some(250_000));
        assert_eq!(ns_of_ms("1e+15"), Some(u64::MAX), "more than 584 years saturates");
        assert_eq!(ns_of_ms("-1"), None);
        assert_eq!(ns_of_ms("NaN"), None);
        assert_eq!(ns_of_ms("soon"), None);
    }

    proptest! {
        #[test]
        fn what_grew_in_milliseconds_grew_in_nanoseconds(a in 0.0..1e15_f64, b in 0.0..1e15_f64) {
            let (low, high) = (a.min(b), a.max(b));
            prop_assert!(ns_of_ms(&low.to_string()) <= ns_of_ms(&high.to_string()));
        }
    }
}
