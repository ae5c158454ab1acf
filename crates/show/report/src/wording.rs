//! Sentences that every format for people writes in the same words.

pub(crate) mod analysis;
pub(crate) mod capability;
pub(crate) mod comparison;
pub(crate) mod evidence;
pub(crate) mod fleet;
pub(crate) mod members;
pub(crate) mod sweep;
pub(crate) mod waits;
pub(crate) mod workload;
