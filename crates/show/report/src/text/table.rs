//! Aligned columns, one of which shrinks where the terminal is narrow.

use super::style::{Ink, Style};
use super::wrap::{clip, clip_start};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// A cell: harmless text and its ink.
pub struct Cell {
    text: String,
    ink: Ink,
}

/// Columns of cells. A table of items has a row for each of them and is made column by column.
pub struct Table<R = ()> {
    items: Vec<R>,
    titles: Vec<(&'static str, Align)>,
    rows: Vec<Vec<Cell>>,
    /// The column that shrinks, its text cut at the beginning.
    flexible: Option<usize>,
    /// Whether columns that do not fit are left out, and named in a line below.
    names_left_out: bool,
}

const INDENT: &str = "  ";

impl Cell {
    /// A cell of any ink.
    pub fn inked(text: impl Into<String>, ink: Ink) -> Cell {
        Cell { text: super::wrap::clean(&text.into()), ink }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::inked(text, Ink::Plain)
    }
}

impl Table {
    /// A table whose rows are pushed.
    pub(super) fn new(titles: &[(&'static str, Align)]) -> Table {
        Table { titles: titles.to_vec(), ..Table::from_items([]) }
    }
}

impl<R> Table<R> {
    /// A table with a row for each item, and no column yet.
    pub fn from_items(items: impl IntoIterator<Item = R>) -> Table<R> {
        let items: Vec<R> = items.into_iter().collect();
        let rows = items.iter().map(|_| Vec::new()).collect();
        Table { items, titles: Vec::new(), rows, flexible: None, names_left_out: false }
    }

    /// Adds a column of words: its title, and an item's cell in it.
    pub fn left<C: Into<Cell>>(self, title: &'static str, cell: impl Fn(&R) -> C) -> Self {
        self.column(title, Align::Left, cell)
    }

    /// Adds a column of figures.
    pub fn right<C: Into<Cell>>(self, title: &'static str, cell: impl Fn(&R) -> C) -> Self {
        self.column(title, Align::Right, cell)
    }

    fn column<C: Into<Cell>>(mut self, title: &'static str, align: Align, cell: impl Fn(&R) -> C) -> Self {
        self.titles.push((title, align));
        self.rows.iter_mut().zip(&self.items).for_each(|(row, item)| row.push(cell(item).into()));
        self
    }

    /// Lets that column shrink where the terminal is narrow; its text is cut at the beginning.
    #[must_use]
    pub fn flexible(mut self, column: usize) -> Self {
        self.flexible = Some(column);
        self
    }

    /// Leaves out the last columns where they do not fit, and names them in a line below.
    #[must_use]
    pub fn naming_left_out(mut self) -> Self {
        self.names_left_out = true;
        self
    }

    /// Whether it has no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a row below the others.
    pub fn push(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Title line and rows, each within the style's columns.
    pub fn lines(&self, style: &Style) -> Vec<String> {
        let mut widths = self.widths(style);
        let all = widths.len();
        if self.names_left_out {
            let mut end = 0;
            let fits = |width: &&usize| {
                end += INDENT.len() + **width;
                end <= style.columns()
            };
            let fitting = widths.iter().take_while(fits).count();
            widths.truncate(fitting.max(1));
        }
        let shown = widths.len();
        let mut lines = Vec::new();
        if self.titles.iter().any(|(title, _)| !title.is_empty()) {
            let titles =
                self.titles.iter().map(|(title, _)| Cell::inked(*title, Ink::Dim)).collect::<Vec<_>>();
            lines.push(self.line(&titles[..shown], &widths, style));
        }
        lines.extend(self.rows.iter().map(|row| self.line(&row[..shown.min(row.len())], &widths, style)));
        if shown < all {
            let missing: Vec<&str> = self.titles[shown..].iter().map(|(title, _)| *title).collect();
            let note = format!("no room here for: {}", missing.join(", "));
            lines.extend(
                super::wrap::wrap(&note, style.columns(), 3).iter().map(|line| style.paint(Ink::Dim, line)),
            );
        }
        lines
    }

    fn widths(&self, style: &Style) -> Vec<usize> {
        let mut widths: Vec<usize> = self.titles.iter().map(|(title, _)| title.chars().count()).collect();
        for row in &self.rows {
            // The last cell of a short row holds a reason, which may extend over the empty columns.
            let counted = if row.len() < widths.len() { row.len().saturating_sub(1) } else { row.len() };
            for (width, cell) in widths.iter_mut().zip(row.iter().take(counted)) {
                *width = (*width).max(cell.text.chars().count());
            }
        }
        let gaps = INDENT.len() + 2 * widths.len().saturating_sub(1);
        let total: usize = widths.iter().sum::<usize>() + gaps;
        if let Some(column) = self.flexible {
            let over = total.saturating_sub(style.columns());
            widths[column] = widths[column].saturating_sub(over).max(10);
        }
        widths
    }

    fn line(&self, cells: &[Cell], widths: &[usize], style: &Style) -> String {
        let mut line = String::from(INDENT);
        let mut left = style.columns() - INDENT.len();
        for (at, ((cell, width), (_, align))) in cells.iter().zip(widths).zip(&self.titles).enumerate() {
            if at > 0 {
                line.push_str(&INDENT[..left.min(2)]);
                left = left.saturating_sub(2);
            }
            let text =
                if self.flexible == Some(at) { clip_start(&cell.text, *width) } else { cell.text.clone() };
            let text = clip(&text, left);
            let extends = at + 1 == cells.len() && cells.len() < widths.len();
            let width = if extends { &0 } else { width };
            let pad = width.saturating_sub(text.chars().count()).min(left - text.chars().count().min(left));
            left -= (pad + text.chars().count()).min(left);
            let painted = style.paint(cell.ink, &text);
            match align {
                Align::Right => line.extend([" ".repeat(pad), painted]),
                Align::Left => line.extend([painted, " ".repeat(pad)]),
            }
        }
        line.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_do_not_fit_are_named() {
        let titles =
            [("engine", Align::Left), ("read", Align::Right), ("log", Align::Right), ("N", Align::Right)];
        let table = |engine: &str| {
            let mut table = Table::new(&titles).naming_left_out();
            table.push(vec![engine.into(), "12.0 ms".into(), "1.0 GiB".into(), "60.1".into()]);
            table.lines(&Style { color: false, width: 80 })
        };
        // 80 columns less the indent, the gaps and the other columns: 80 - 2 - 3 * 2 - 7 - 7 - 4.
        let all = table(&"e".repeat(54));
        assert!(all.len() == 2 && all[0].ends_with("  read      log     N"), "{all:?}");
        assert!(all[1].ends_with("  12.0 ms  1.0 GiB  60.1"), "{all:?}");
        let some = table(&"e".repeat(55));
        assert!(some[0].ends_with("  read      log") && some[1].ends_with("  1.0 GiB"), "{some:?}");
        assert_eq!(some[2..], ["no room here for: N"]);
        assert_eq!(table(&"e".repeat(65))[2..], ["no room here for: log, N"]);
    }
}
