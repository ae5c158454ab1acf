//! Tables of a page.

use crate::{Tone, number};
use charts::escape;
use filestats::{Figure, Reason};

/// The contents of a column, as the class of its cells.
const TEXT: &str = " class=\"l\"";
const LONG: &str = " class=\"l long\"";
const SOURCE: &str = " class=\"l long source\"";
const NUMBER: &str = "";
const VALUE: &str = " class=\"value\"";

/// A table with a row for each item, made column by column. Its cells are HTML; its titles are escaped.
pub struct Table<R> {
    items: Vec<R>,
    titles: String,
    classes: Vec<&'static str>,
    rows: Vec<String>,
}

impl<R> Table<R> {
    /// A table with a row for each item, and no column yet.
    pub fn from_items(items: impl IntoIterator<Item = R>) -> Table<R> {
        let items: Vec<R> = items.into_iter().collect();
        Table { rows: vec![String::new(); items.len()], items, titles: String::new(), classes: Vec::new() }
    }

    /// Adds a column of words: its title, and an item's cell in it.
    #[must_use]
    pub fn text(self, title: &str, cell: impl Fn(&R) -> String) -> Self {
        self.column(title, TEXT, cell)
    }

    /// Adds a column of words that may be many.
    #[must_use]
    pub fn long(self, title: &str, cell: impl Fn(&R) -> String) -> Self {
        self.column(title, LONG, cell)
    }

    /// Adds a column of sentences after the figures, wide enough that it does not make rows high.
    pub(super) fn source(self, title: &str, cell: impl Fn(&R) -> String) -> Self {
        self.column(title, SOURCE, cell)
    }

    /// Adds a column of paths. On a narrow screen their middle is left out, so that figures stay on it.
    pub(super) fn path(self, title: &str, path: impl Fn(&R) -> String) -> Self {
        self.column(title, LONG, |item| shortened(&path(item)))
    }

    /// Adds a column of figures.
    #[must_use]
    pub fn number(self, title: &str, cell: impl Fn(&R) -> String) -> Self {
        self.column(title, NUMBER, cell)
    }

    /// Adds the column of figures that matters most.
    #[must_use]
    pub fn value(self, title: &str, cell: impl Fn(&R) -> String) -> Self {
        self.column(title, VALUE, cell)
    }

    fn column(mut self, title: &str, class: &'static str, cell: impl Fn(&R) -> String) -> Self {
        let title_class = if [TEXT, LONG, SOURCE].contains(&class) { TEXT } else { "" };
        // A heading without words is none for a screen reader.
        let tag = if title.is_empty() { "td" } else { "th" };
        self.titles.push_str(&format!("<{tag}{title_class}>{}</{tag}>", escape(title)));
        self.classes.push(class);
        let rows = self.rows.iter_mut().zip(&self.items);
        rows.for_each(|(row, item)| row.push_str(&format!("<td{class}>{}</td>", cell(item))));
        self
    }

    /// Adds a row of its own below the others.
    pub fn push(&mut self, cells: &[String]) {
        let cells = self.classes.iter().zip(cells);
        self.rows.push(cells.map(|(class, cell)| format!("<td{class}>{cell}</td>")).collect());
    }

    /// It can be scrolled by keyboard where it is wider than the screen.
    pub fn html(&self) -> String {
        let rows: String = self.rows.iter().map(|row| format!("<tr>{row}</tr>\n")).collect();
        let titles = match self.titles.contains("<th") {
            true => format!("<thead><tr>{}</tr></thead>\n", self.titles),
            false => String::new(),
        };
        format!(
            "<div class=\"scroll card flush\" tabindex=\"0\"><table>\n{titles}<tbody>\n{rows}</tbody>\n</table></div>\n"
        )
    }
}

/// Tables of more rows are closed at first.
const ROWS_OPEN: usize = 12;

/// A table under a summary that opens and closes it.
pub(super) fn folded<R>(summary: &str, table: &Table<R>) -> String {
    let open = if table.rows.len() <= ROWS_OPEN { " open" } else { "" };
    format!("<details{open}>\n<summary>{}</summary>\n{}</details>\n", escape(summary), table.html())
}

/// A path in two parts, of which the first gives way where there is no room.
fn shortened(path: &str) -> String {
    /// Characters of the end of a path that are always shown.
    const END_MAX: usize = 10;
    let name = path.rsplit('/').next().unwrap_or(path).chars().count();
    let length = path.chars().count();
    let (head, tail): (String, String) = {
        let at = length - name.min(END_MAX);
        (path.chars().take(at).collect(), path.chars().skip(at).collect())
    };
    let path = escape(path);
    format!(
        "<span class=\"path\" title=\"{path}\"><span>{}</span><span>{}</span></span>",
        escape(&head),
        escape(&tail)
    )
}

/// A figure, or a dash with the reason beside it.
pub fn figure(figure: Figure<f64>, write: impl Fn(f64) -> String) -> String {
    match figure {
        Figure::Known(value) => write(value),
        Figure::Unknown { unknown: Reason::NoOperations } => number::NONE.into(),
        Figure::Unknown { unknown } => format!("<span class=\"why\">{}</span>", escape(&unknown.to_string())),
    }
}

/// A word in the colour of a good or a bad answer.
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
