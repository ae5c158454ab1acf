//! Figures over time, for a chart with fewer points than there are moments.
//!
//! ```text
//! Sample { span, reading } ─> Ring      the newest 15 minutes of 1 s, with its gaps and their reasons
//!                               │
//! rows of a minute ─────────────┴─> Grid::envelope()   min, mean, max of each bucket; unknown stays unknown
//! changes + watched spans ────────> stretches()        what held from when to when, and where nothing was watched
//! ```
//!
//! An envelope has the lowest and the highest value of each bucket, so that one bad second is in the picture at every zoom, and
//! its mean, weighted by time. A bucket without any known value has none: a gap never becomes 0.
//!
//! Pure: no clock is read. Times are nanoseconds since 1970.

mod envelope;
mod reading;
mod ring;
mod stretches;

pub use envelope::{Envelope, Grid, POINTS_MAX};
pub use reading::{Figure, Reading, Sample, Span};
pub use ring::{Gap, Ring, SAMPLES_MAX};
pub use stretches::{Stretch, joined, stretches};
