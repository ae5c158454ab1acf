//! The rows of the [table](crate::table): each says whether its verdict holds, and on what grounds.

mod burst;
mod cannot_say;
mod healthy;
mod nobody_waits;
mod saturated_or_degraded;
mod serialized;
mod throttled;

pub(crate) use burst::burst;
pub(crate) use cannot_say::cannot_say;
pub(crate) use healthy::healthy;
pub(crate) use nobody_waits::nobody_waits;
pub(crate) use saturated_or_degraded::{demand_exceeds_capability, not_storage, storage_degraded};
pub(crate) use serialized::serialized;
pub(crate) use throttled::throttled;
