//! Experiments: real engines doing known work in databases of our own, for Headroom to watch and to count.
//!
//! ```text
//! everyday::prepare      customers + orders, about 150 MiB, three secondary indexes, nothing cached
//! everyday::run          clients at a steady pace: point reads, range reads, updates, inserts
//! everyday::rebuild_indexes   the event that a cumulative figure smears over months
//!
//! commit::run            rows committed in batches by embedded engines and servers; what their logs are asked for
//! recover::run           scattered pages, a kill in the middle, and what it takes to serve again
//! footprint::footprint   what one query moves: values, rows, pages, files, storage, client
//!
//! database   making and opening such a file; a file that is not ours is never written to
//! PageCache  throws a file out of the page cache, so that reads reach the storage
//! Chance     random numbers and payloads from a seed
//! ```
//!
//! A connection is opened through the named VFS, which is how the I/O of an experiment is counted.
//!
//! `examples/scenario.rs` is a program as a user might have one, with traits that a verdict must find:
//! idle, many readers, one committer, nearly nothing.
//!
//! It judges nothing, and it never writes into a file that it did not make.

mod chance;
pub mod commit;
pub mod database;
mod error;
pub mod everyday;
pub mod footprint;
mod page_cache;
pub mod recover;

pub use chance::Chance;
pub use error::Error;
pub use page_cache::PageCache;

/// What must be known of the figures of an engine's own requests: not what devices did that nobody was told of, since
/// these have nothing of the block layer's.
fn notes_of_requests(snapshot: &filestats::Snapshot) -> impl Iterator<Item = &String> {
    snapshot.notes.iter().filter(|note| !note.contains("block layer's figures"))
}
