//! Each rule with plain values: it fires, it does not at its boundary, and what is unknown is not found.

mod build;
mod jobs;
mod never_from_unknown;
mod rules;
mod usual;
mod waits;
