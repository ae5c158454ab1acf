//! The formats of the control and the data file, and what all formats share.

pub(crate) mod codec;
pub(crate) mod control;
pub(crate) mod delta;
pub(crate) mod geometry;
pub(crate) mod page;
