//! Entries of a legend.

use crate::palette::Ink;

/// How something is drawn, for the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A solid line.
    Line,
    /// A dashed line.
    Dashed,
    /// A dotted line.
    Dotted,
    /// A surface.
    Area,
    /// A dot.
    Dot,
    /// A circle.
    Ring,
    /// A square.
    Square,
    /// A surface with lines across it.
    Hatched,
}

/// An entry of a legend.
pub type Key = (Mark, Ink, String);
