//! Workload files: what to run, as people write it (TOML), read into a [`Plan`](workload::Plan) and back.
//!
//! ```text
//! [targets]                          what the workloads run on; without it, the command line's TARGET
//! data = { path = "/data", create = "4G" }
//!
//! [[phases]]                         one after the other
//! name = "load"
//! duration = "60s"
//! [[phases.workloads]]               at once
//! preset = "oltp"                    what databases do, by name; every key beside it replaces the preset's
//! writes = "50%"
//! rate = "2000/s"
//! ```
//!
//! Main path: [`read`] the text, [`write`] a plan as text, [`preset`] by name. A file, the presets (files
//! themselves) and the flags of the command line all go through the same two places: `values` reads what a person wrote
//! ("8K", "60s", "40%", "200M/s", "8K:70%, 64K:30%"), and [`Settings`] lays what was said over a workload.
//!
//! A crate of its own, not a module of `workload`: everybody uses those types, only the command line needs a
//! parser. It does no I/O, and never takes a key that it does not know for nothing: such a key is an error with
//! the nearest known one beside it.

mod error;
mod presets;
mod read;
mod settings;
mod table;
pub mod values;
mod write;

pub use error::FileError;
pub use presets::{PRESETS, Preset, preset};
pub use read::{FILE_BYTES_MAX, default_length, default_workload, read, read_with};
pub use settings::{ContentKind, ContentSettings, LengthSettings, Settings, content_kind};
pub use table::Table;
pub use write::write;
