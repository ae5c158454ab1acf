//! The log: virtual log files of blocks of records. See `block` and `record` for the formats.
//!
//! ```text
//! log file:   8 KiB unused | virtual log file (slot 0) | slot 1 | …      all of one size
//! slot:       header, 4 KiB | block | block | … | index                  blocks of 512 B to 60 KiB
//! ```
//! `writer` does no I/O: records go in, writes come out, completions go in, the durable position comes out. `scan`
//! reads a log from any disk, finds its end, and decides whether that is a torn end or damage.

pub(crate) mod block;
pub(crate) mod directory;
pub(crate) mod idle_guard;
pub(crate) mod index;
pub(crate) mod journal;
pub(crate) mod record;
pub(crate) mod scan;
pub(crate) mod segments;
pub(crate) mod writer;
