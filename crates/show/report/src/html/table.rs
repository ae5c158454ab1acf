//! Tables of a page.

use crate::{Tone, number};
use charts::escape;
use filestats::{Figure, Reason};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Text,
    Long,
    Number,
    Value,
}

/// A table whose cells are HTML.
pub(super) struct Table {
    columns: Vec<(String, Column)>,
    rows: String,
}

impl Table {
    /// By the names of the columns, which are escaped, and what they hold.
    pub(super) fn new(columns: &[(&str, Column)]) -> Table {
        let columns = columns.iter().map(|(title, column)| (escape(title), *column)).collect();
        Table { columns, rows: String::new() }
    }

    pub(super) fn push(&mut self, cells: &[String]) {
        self.rows.push_str("<tr>");
        for ((_, column), cell) in self.columns.iter().zip(cells) {
            let class = match column {
                Column::Text => " class=\"l\"",
                Column::Long => " class=\"l long\"",
                Column::Number => "",
                Column::Value => " class=\"value\"",
            };
            self.rows.push_str(&format!("<td{class}>{cell}</td>"));
        }
        self.rows.push_str("</tr>\n");
    }

    pub(super) fn html(&self) -> String {
        let title = |(title, column): &(String, Column)| {
            let class = if matches!(column, Column::Text | Column::Long) { " class=\"l\"" } else { "" };
            format!("<th{class}>{title}</th>")
        };
        let titles: String = self.columns.iter().map(title).collect();
        format!(
            "<div class=\"scroll card flush\"><table>\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{}</tbody>\n</table></div>\n",
            self.rows
        )
    }
}

/// Tables of more rows are closed at first.
const ROWS_OPEN: usize = 12;

/// A table under a summary that opens and closes it.
pub(super) fn folded(summary: &str, table: &Table, rows: usize) -> String {
    let open = if rows <= ROWS_OPEN { " open" } else { "" };
    format!("<details{open}>\n<summary>{}</summary>\n{}</details>\n", escape(summary), table.html())
}

/// A figure, or a dash with the reason beside it.
pub(super) fn figure(figure: Figure<f64>, write: impl Fn(f64) -> String) -> String {
    match figure {
        Figure::Known(value) => write(value),
        Figure::Unknown { unknown: Reason::NoOperations } => number::NONE.into(),
        Figure::Unknown { unknown } => format!("<span class=\"why\">{}</span>", escape(&unknown.to_string())),
    }
}

/// A word in the colour of good or bad news.
pub(super) fn tag(text: &str, tone: Tone) -> String {
    format!("<span class=\"tag {}\">{}</span>", class(tone), escape(text))
}

pub(super) fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Warning => "warning",
        Tone::Bad => "bad",
        Tone::Neutral => "neutral",
    }
}
