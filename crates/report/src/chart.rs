//! Charts as SVG, drawn with plotters for an HTML page.
//!
//! ```text
//! canvas   ink and shapes in pixels -> SVG; an ink is a CSS variable of the page
//! axis     a range with its ticks, linear, logarithmic or of time
//! plot     axes, grid and shapes in the units of the data
//! one file a chart: curve_latency, curve_iops, latency_over_time, iops_over_time
//! ```

mod axis;
mod canvas;
mod course;
mod curve_iops;
mod curve_latency;
mod iops_over_time;
mod latency_over_time;
mod plot;

pub(crate) use canvas::Ink;
pub(crate) use course::Course;
pub(crate) use curve_iops::curve_iops;
pub(crate) use curve_latency::curve_latency;
pub(crate) use iops_over_time::iops_over_time;
pub(crate) use latency_over_time::latency_over_time;

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
