//! Charts: values of the model crates in, SVG text or PNG bytes out.
//!
//! ```text
//! RunResults ─ NamedRun ─> RunChart ─┐
//! Sweep, trace, difference ──────────┴> Chart ─> Panel ─> Drawing ─┬─> SVG in a page (colours are CSS variables)
//! Check, Curve, history ────────────────────────────────> Drawing ─┤
//!                          Chart ─> svg_file, png_file ────────────┴─> a file (colours of a theme)
//! ```
//!
//! ```text
//! palette   every colour, light and dark          number, words   how figures and words are written
//! drawing   shapes in pixels                      svg, png   write a drawing     font   letters as outlines
//! axis      a range with its ticks                plot   shapes in the units of the data     cells   a grid of cells
//! chart     titled panels with legends            file   a chart laid out as a file
//! run, factor, run_chart, runs/   charts of runs  check/   charts of a check and a capability
//! sweep, sweep/over_time, difference, trace, history   one chart each          parts      of which other crates draw theirs
//! ```
//!
//! Main path: [`NamedRun`] -> [`RunChart::draw`] -> [`Chart`] -> [`svg_file`] or [`png_file`].
//!
//! No chart smooths, uses an axis without zero or a logarithm without saying so, draws a missing value as zero, or shows
//! a percentile with too few I/Os behind it as if it were known. The crate does no I/O and reads no clock.

mod axis;
mod cells;
mod chart;
mod check;
mod difference;
mod drawing;
mod factor;
mod file;
#[cfg(feature = "png")]
mod font;
mod history;
mod incident;
mod legend;
pub mod number;
mod palette;
pub mod parts;
mod plot;
#[cfg(feature = "png")]
mod png;
mod run;
mod run_chart;
mod runs;
mod svg;
pub mod sweep;
mod trace;
pub mod words;

pub use self::file::svg_file;
#[cfg(feature = "png")]
pub use self::png::{PngError, png_file};
pub use chart::{Chart, Draw, Panel};
pub use check::curve::{curve_iops, curve_latency};
pub use check::over_time::{iops_over_time, latency_over_time};
pub use check::series::{CheckSeries, Instant};
pub use difference::{Difference, difference};
pub use drawing::{Drawing, Size};
pub use factor::{Factor, Measure};
pub use history::{HISTORY_INKS, HistorySeries};
pub use incident::{IncidentMinute, IncidentSeries};
pub use legend::{Key, Mark};
pub use palette::{Ink, Theme, css_variables};
pub use run::{NamedRun, labels, title, workload_words};
pub use run_chart::{RunChart, UnknownChart};
pub use svg::escape;
pub use trace::{TraceLabels, TracePicture, trace};
