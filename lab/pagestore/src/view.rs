//! Views of a store: the statistics of an open one, and the log of any.

pub mod inspect;
pub(crate) mod stats;
