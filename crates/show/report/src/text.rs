//! Text for a terminal. Colours only where the [`Style`] says so.

mod analysis;
mod capability;
mod check;
mod comparison;
mod course;
mod discover;
mod doctor;
mod errors;
mod estimate;
mod fleet;
mod incidents;
mod intervals;
mod known_storage;
mod matrix;
mod meaning;
mod percentiles;
mod phases;
mod run;
mod shares;
mod sketch;
mod style;
mod sweep;
mod table;
mod trace;
mod waits;
mod watch;
mod wrap;

pub use self::analysis::analysis;
pub use self::capability::capability;
pub use self::fleet::{fleet, fleet_host, fleet_incidents};
pub use self::matrix::{forecast, matrix};
pub use crate::wording::waits::reconciliation;
pub use check::check;
pub use comparison::comparison;
pub use discover::{DiscoveredDatabase, DiscoveredVolume, discover};
pub use doctor::{SourceFinding, doctor};
pub use estimate::{estimate, simulation};
pub use incidents::{incident, incidents};
pub use intervals::intervals;
pub use known_storage::known_storage;
pub use phases::phases;
pub use run::run;
pub use style::Style;
pub use sweep::sweeps;
pub use trace::{TraceLines, trace, trace_letters};
pub use watch::{SHORT_MARK, align_decimals, band_tone, device_load, time_of_day, watch, watched_figures};
pub use wrap::is_harmful;

/// Parts of which other crates make their texts.
pub mod parts {
    pub use super::style::Ink;
    pub use super::table::{Cell, Table};
    pub use super::wrap::{clean, wrap};
}
