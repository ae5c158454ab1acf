//! Parts of which other crates draw their charts.

pub use crate::axis::Axis;
pub use crate::chart::grouped;
pub use crate::drawing::{Anchor, Canvas, Pixel, text_pixels};
pub use crate::palette::SERIES_INKS;
pub use crate::plot::{Margins, Plot, Stroke, Values};
