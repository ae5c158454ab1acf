//! Workload files: runs as people write them (TOML), read into a [`Plan`](workload::Plan) and back.
//!
//! ```text
//! [targets]                          the targets of the workloads; without it, the command line's TARGET
//! data = { path = "/data", create = "4G" }
//!
//! [[phases]]                         run sequentially
//! name = "load"
//! duration = "60s"
//! [[phases.workloads]]               at once
//! preset = "oltp"                    what databases do, by name; every key beside it replaces the preset's
//! writes = "50%"
//! rate = "2000/s"
//! ```
//!
//! Main path: [`read`] the text, [`write`] a plan as text, [`preset`] by name. Files, presets (which are files) and the
//! flags of the command line share two modules: `values` parses values ("8K", "60s", "40%", "200M/s", "8K:70%,
//! 64K:30%"), and [`Settings`] applies settings to a workload.
//!
//! The types are in `workload`, because all crates use them and only the command line needs a parser. This crate does no
//! I/O. An unknown key is an error that names the nearest known one.

mod error;
mod presets;
mod read;
mod settings;
mod table;
pub mod values;
mod write;

pub use error::FileError;
pub use presets::{PRESETS, Preset, preset};
pub use read::{FILE_BYTES_MAX, default_length, default_workload, read, read_setting, read_with};
pub use settings::{CONTENTS, ContentKind, ContentSettings, LengthSettings, Settings};
pub use table::Table;
pub use write::write;
