//! Charts as SVG, drawn with plotters: of checks and capabilities for their pages, of runs for pages and files.
//!
//! ```text
//! canvas   ink and shapes in pixels -> SVG; an ink is a CSS variable of the page
//! axis     a range with its ticks: linear, logarithmic, of time, of nines
//! plot     axes, grid and shapes in the units of the data      cells   the same for a grid of cells
//! one file a chart:  curve_latency, curve_iops, latency_over_time, iops_over_time       a check's
//!                    load_curve, heat_map, percentiles, run_course, latency_map, histogram   a run's
//!                    sweep, sweep_course                                               a sweep's
//!                    difference                                                     a comparison's
//!                    recoveries                                              crashed engines opened again
//!                    commits                                                 an experiment's with commits
//!                    traced                                                            a trace's
//!                    stretch                                                        a file of the history
//! ```
//!
//! Main path of a run's chart: [`Shown`] (results with their names) -> [`RunChart::draw`] -> [`Chart`] ->
//! a page of [`html`](crate::html), [`svg_file`] or [`png_file`].
//!
//! What no chart does: smooth, leave out a zero line or a logarithm unsaid, draw a missing value as zero, or
//! a percentile without enough I/Os behind it as if it were known.

mod axis;
mod canvas;
mod cells;
mod commits;
mod course;
mod curve_iops;
mod curve_latency;
mod difference;
mod factor;
mod file;
mod heat_map;
mod histogram;
mod iops_over_time;
mod kind;
mod latency_map;
mod latency_over_time;
mod load_curve;
mod percentiles;
mod plot;
#[cfg(feature = "png")]
mod png;
mod recoveries;
mod run_course;
mod shown;
mod stretch;
mod sweep;
mod sweep_course;
mod traced;

pub use self::file::{Theme, svg_file};
#[cfg(feature = "png")]
pub use self::png::{PngError, png_file};
pub use factor::{Factor, Measure};
pub use kind::{RunChart, UnknownChart};
pub use shown::Shown;

pub(crate) use canvas::Ink;
pub(crate) use commits::commits;
pub(crate) use course::Course;
pub(crate) use curve_iops::curve_iops;
pub(crate) use curve_latency::curve_latency;
pub(crate) use difference::{Difference, difference};
pub(crate) use iops_over_time::iops_over_time;
pub(crate) use latency_over_time::latency_over_time;
pub(crate) use recoveries::recoveries;
pub(crate) use shown::{asked, labels};
pub(crate) use stretch::{INKS, Stretch};
pub(crate) use sweep::sweeps;
pub(crate) use traced::traced;

/// Pixels of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

impl Size {
    /// Across a page.
    pub(crate) const WIDE: Size = Size { width: 1040, height: 300 };
    /// Half a page.
    pub(crate) const HALF: Size = Size { width: 512, height: 320 };
    /// Across a phone.
    pub(crate) const NARROW: Size = Size { width: 372, height: 270 };
}

/// How a thing is drawn, for the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Line,
    Dashed,
    Dotted,
    Area,
    Dot,
    /// A surface with lines across it.
    Hatched,
}

/// What one mark of a panel means.
pub(crate) type Key = (Mark, Ink, String);

/// A chart of runs, ready to be drawn at any size and in any theme.
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// In words: of what, and what was left out.
    pub(crate) notes: Vec<String>,
    pub(crate) panels: Vec<Panel>,
    /// What was run, for those who find the file years later: (name, value).
    pub settings: Vec<(String, String)>,
}

/// One pair of axes of a chart.
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) note: String,
    pub(crate) legend: Vec<Key>,
    /// On a page and in a file.
    pub(crate) size: Size,
    /// On narrow screens and on paper, where it is drawn anew.
    pub(crate) narrow: Size,
    pub(crate) draw: Box<dyn Fn(Size) -> String>,
}

impl Chart {
    pub(crate) fn new(title: &str, runs: &[Shown]) -> Chart {
        Chart { title: title.into(), notes: Vec::new(), panels: Vec::new(), settings: shown::settings(runs) }
    }

    /// Whether there is nothing to draw: [`notes`](Chart::notes) say why.
    pub fn is_empty(&self) -> bool {
        self.panels.is_empty()
    }

    /// What the chart says in words: of what it is, and what was left out.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// The picture of a trace: where its I/Os were, and how long they took.
pub fn of_trace(traced: &crate::Traced) -> Chart {
    traced::traced(traced)
}

/// Several panels of a chart: the first so many, and how many were left out.
fn first<T>(mut of: Vec<T>, most: usize) -> (Vec<T>, usize) {
    let left_out = of.len().saturating_sub(most);
    of.truncate(most);
    (of, left_out)
}
