//! Colours and widths of a terminal.

use super::wrap::wrap;
use crate::Tone;

/// How text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Colours and bold by ANSI sequences. The caller obeys `NO_COLOR` and checks for a terminal.
    pub color: bool,
    /// Columns of the terminal; at least 80.
    pub width: usize,
}

/// Longer lines are hard to read.
const WIDTH_MAX: usize = 132;

/// The meaning of a part of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ink {
    /// As the terminal does.
    #[default]
    Plain,
    /// Headings and answers.
    Bold,
    /// Titles of columns and remarks.
    Dim,
    /// In the colour of good or bad news.
    Tone(Tone),
}

impl Style {
    /// Columns that lines may fill.
    pub fn columns(&self) -> usize {
        self.width.clamp(80, WIDTH_MAX)
    }

    pub(super) fn paint(&self, ink: Ink, text: &str) -> String {
        let code = match ink {
            Ink::Bold => "1",
            Ink::Dim => "2",
            Ink::Tone(Tone::Good) => "32",
            Ink::Tone(Tone::Warning) => "33",
            Ink::Tone(Tone::Bad) => "31",
            Ink::Plain | Ink::Tone(Tone::Neutral) => return text.into(),
        };
        if self.color && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
    }

    /// The text in lines within the terminal's width, at most `lines_max`, `indent` columns to the right.
    pub fn paragraph(&self, ink: Ink, text: &str, indent: usize, lines_max: usize) -> Vec<String> {
        let lines = wrap(text, self.columns() - indent, lines_max).into_iter();
        lines.map(|line| format!("{}{}", " ".repeat(indent), self.paint(ink, &line))).collect()
    }

    /// A paragraph under a word that stands before its first line, painted already and `indent` columns wide.
    pub(super) fn marked(&self, mark: &str, text: &str, indent: usize, lines_max: usize) -> Vec<String> {
        let mut lines = wrap(text, self.columns() - indent, lines_max).into_iter();
        let first = lines.next().map(|line| format!("{mark}{line}"));
        first.into_iter().chain(lines.map(|line| format!("{}{line}", " ".repeat(indent)))).collect()
    }

    /// A remark below a table.
    pub fn note(&self, note: &str) -> Vec<String> {
        self.paragraph(Ink::Dim, &format!("note: {note}"), 0, 6)
    }

    pub(super) fn heading(&self, text: &str) -> String {
        self.paint(Ink::Bold, text)
    }
}

impl Default for Style {
    fn default() -> Self {
        Style { color: false, width: 100 }
    }
}
