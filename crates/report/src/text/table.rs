//! Columns that line up, one of which gives way where the terminal is narrow.

use super::{Ink, Style, clip, clip_start};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

pub(super) struct Cell {
    text: String,
    ink: Ink,
}

pub(super) struct Table {
    titles: Vec<(&'static str, Align)>,
    rows: Vec<Vec<Cell>>,
    /// The column that gives way, its text cut at the beginning.
    flexible: Option<usize>,
}

const INDENT: &str = "  ";

impl Cell {
    pub(super) fn inked(text: impl Into<String>, ink: Ink) -> Cell {
        Cell { text: super::clean(&text.into()), ink }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell::inked(text, Ink::Plain)
    }
}

impl Table {
    pub(super) fn new(titles: &[(&'static str, Align)]) -> Table {
        Table { titles: titles.to_vec(), rows: Vec::new(), flexible: None }
    }

    pub(super) fn flexible(mut self, column: usize) -> Table {
        self.flexible = Some(column);
        self
    }

    pub(super) fn push(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Title line and rows, each within the style's columns.
    pub(super) fn lines(&self, style: &Style) -> Vec<String> {
        let widths = self.widths(style);
        let mut lines = Vec::new();
        if self.titles.iter().any(|(title, _)| !title.is_empty()) {
            let titles =
                self.titles.iter().map(|(title, _)| Cell::inked(*title, Ink::Dim)).collect::<Vec<_>>();
            lines.push(self.line(&titles, &widths, style));
        }
        lines.extend(self.rows.iter().map(|row| self.line(row, &widths, style)));
        lines
    }

    fn widths(&self, style: &Style) -> Vec<usize> {
        let mut widths: Vec<usize> = self.titles.iter().map(|(title, _)| title.chars().count()).collect();
        for row in &self.rows {
            // A row that ends early says why in its last cell, which may run over the columns left empty.
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
            let runs_over = at + 1 == cells.len() && cells.len() < widths.len();
            let width = if runs_over { &0 } else { width };
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
