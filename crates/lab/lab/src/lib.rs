//! Experiments: engines doing known work in databases of our own, whose I/O is counted.
//!
//! ```text
//! commit::run            rows committed in batches by embedded engines and servers; what they ask of their logs
//! recover::run           scattered pages, a kill in the middle, and what it takes to serve again
//! footprint::footprint   what one query moves: values, rows, pages, files, storage, client
//! ```
//!
//! Each engine of an experiment is a file in its folder. SQLite is counted through the VFS of `sqlite-vfs`, the page
//! store by its own counters, servers by their processes' I/O.
//!
//! It judges nothing, and it never writes into a file that it did not make.

pub mod commit;
mod error;
pub mod footprint;
pub mod recover;

pub use error::Error;
