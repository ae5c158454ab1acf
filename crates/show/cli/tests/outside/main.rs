//! Headroom as its users meet it: the binary, run from outside, on real storage and a real database.

mod access;
mod agent;
mod analyze;
mod arguments;
mod capability;
mod chart;
mod compare;
mod dice;
mod discover;
mod diskspd;
mod doctor;
mod intervals;
#[cfg(feature = "schema")]
mod json_schema;
mod metrics;
mod packaging;
mod record;
mod servers;
mod situations;
mod soak;
mod study_a;
mod trace;
mod truth;
mod version;
mod wall_clock;
mod watch;
