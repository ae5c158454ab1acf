//! A chart: titled panels with their legends, and the settings of the runs that a file records.

use crate::drawing::{Drawing, Size};
use crate::legend::Key;
use crate::palette::SERIES_INKS;
use crate::plot::{Margins, replace_legend};

/// Draws a panel at a size.
pub type Draw = Box<dyn Fn(Size) -> Drawing>;

/// A chart, ready to be drawn at any size and in any theme.
pub struct Chart {
    /// Its title.
    pub title: String,
    /// Sentences: the contents, and the parts left out.
    pub notes: Vec<String>,
    /// In their order; of an empty chart the notes say why it is empty.
    pub panels: Vec<Panel>,
    /// Settings of the runs, for readers who find the file years later: (name, value).
    pub settings: Vec<(String, String)>,
}

/// One drawing of a chart.
pub struct Panel {
    /// Its title.
    pub title: String,
    /// Beside the title; may be empty.
    pub note: String,
    /// Meanings of the marks.
    pub legend: Vec<Key>,
    /// In the drawing of `size` the lines have these names at their ends: only the narrow one needs the legend.
    pub lines_are_named: bool,
    /// On a page and in a file.
    pub size: Size,
    /// On narrow screens and on paper, where it is drawn again.
    pub narrow: Size,
    /// Draws it.
    pub draw: Draw,
}

impl Chart {
    pub(crate) fn new(title: &str, settings: Vec<(String, String)>) -> Chart {
        Chart { title: title.into(), notes: Vec::new(), panels: Vec::new(), settings }
    }

    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.panels.is_empty()
    }

    /// As many lines as there are colours. A note says how many `what` ("more runs") are left out.
    pub(crate) fn distinguishable<T>(&mut self, mut lines: Vec<T>, what: &str) -> Vec<T> {
        let left_out = truncate(&mut lines, SERIES_INKS);
        if left_out > 0 {
            let note = format!("{left_out} {what} are not drawn: their colours could not be distinguished.");
            self.notes.push(note);
        }
        lines
    }
}

impl Panel {
    /// A panel without a legend or a note.
    pub fn new(title: impl Into<String>, size: Size, draw: impl Fn(Size) -> Drawing + 'static) -> Panel {
        Panel {
            title: title.into(),
            note: String::new(),
            legend: Vec::new(),
            lines_are_named: false,
            size,
            narrow: Size::NARROW,
            draw: Box::new(draw),
        }
    }

    /// Adds a legend, of which a drawing within `margins` names the lines as far as it has room.
    pub(crate) fn with_legend(self, legend: Vec<Key>, margins: &Margins) -> Panel {
        let lines_are_named = replace_legend(&legend, margins, self.size);
        Panel { legend, lines_are_named, ..self }
    }

    /// Whether two of it fit beside each other.
    pub fn is_half(&self) -> bool {
        self.size.width <= Size::HALF.width
    }
}

/// Keeps the first `most`; returns the number left out.
pub(crate) fn truncate<T>(all: &mut Vec<T>, most: usize) -> usize {
    let left_out = all.len().saturating_sub(most);
    all.truncate(most);
    left_out
}

/// Groups items by key. Groups are in the order of their first items.
pub fn grouped<K: PartialEq, T>(all: impl IntoIterator<Item = (K, T)>) -> Vec<(K, Vec<T>)> {
    let mut groups: Vec<(K, Vec<T>)> = Vec::new();
    for (key, one) in all {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(one),
            None => groups.push((key, vec![one])),
        }
    }
    groups
}
