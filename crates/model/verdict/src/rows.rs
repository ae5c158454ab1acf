//! The rows of the [table](crate::table): each says whether its verdict holds, and on what grounds.

pub(crate) mod burst;
pub(crate) mod cannot_say;
pub(crate) mod failing;
pub(crate) mod healthy;
pub(crate) mod hung;
pub(crate) mod nobody_waits;
pub(crate) mod saturated_or_degraded;
pub(crate) mod seen;
pub(crate) mod serialized;
pub(crate) mod throttled;
