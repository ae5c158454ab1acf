//! An embeddable, crash-safe page store whose transaction log can be seen into.
//!
//! ```text
//! Store::create / open ── write() ── WriteTx: page_mut, allocate, free; create_table, put, delete ── commit(Full | Delayed)
//!                     ├── transact(Full | Delayed, |tx| ...)              as that, and commits by itself
//!                     └── read() ─── ReadTx: page; table, get, range              a snapshot, whatever is committed
//! Store::open_with(..., |progress| ...)                                   as open, and tells how far recovery is
//! directory   control   two copies of what opening needs             control.rs
//!             data      pages of 4, 8 or 16 KiB, checksummed         page.rs
//!             log       virtual log files of blocks of records       log.rs, log/block.rs, log/record.rs
//!             lock      one process at a time
//! ```
//! **The design.** One transaction writes at a time, on copies of pages. Its commit appends what changed to the log
//! (a page's first change since it was last written to the data file as a whole *image*, later ones as the bytes
//! that differ) and waits until the block is on the medium. The data file is written by checkpoints alone, after the
//! log; the log before a checkpoint is freed by a certificate: every write's completion, the sync and the control file
//! were checked. As every page that differs from the data file has an image in the log, a torn page needs no second
//! copy, recovery reads no page, an uncommitted or unwritten page may leave the cache (so a transaction may be larger
//! than memory), and a crashed store opens before anything is redone: its pages are simply dirty. There is no undo:
//! nothing uncommitted reaches the data file.
//!
//! Pure, and tested with plain values: `log::writer` (records in, writes out, completions in), `cache` (versions,
//! chains, what may leave), `delta`, and the formats. `journal`, `checkpoint` and `recovery` do the I/O through
//! [`disk::Disk`]: real files, or [`sim`]'s that lose and tear; the crash laboratory is there too.
//!
//! Of many threads that commit, one at a time has the turn to change pages; whoever waits for durability and finds no
//! log write in flight does the next for all who have come, and one call wakes those whom it made durable. A thread that
//! commits alone has its processor kept awake meanwhile, where that is found to pay (`Options::keep_awake`).
//!
//! What an open store counts (its I/O, the parts of its commits' time, on demand the state of its log) lies in shared
//! memory, where any process reads it: the crate `pagestore-counters`.
//!
//! ```
//! # let place = std::env::temp_dir().join(format!("pagestore-doc-{}", std::process::id()));
//! # let directory = place.as_path();
//! use pagestore::{Durability, Layout, Options, Store, Tables};
//!
//! let store = Store::create(directory, Layout::default(), Options::default())?;
//! let mut tx = store.write()?;
//! let orders = tx.create_table("orders")?;
//! tx.put(orders, b"2026-11-22/1", b"3 pears")?;
//! tx.commit(Durability::Full)?;
//! let reader = store.read()?;
//! assert_eq!(reader.get(orders, b"2026-11-22/1")?, Some(b"3 pears".to_vec()));
//! # drop(reader);
//! # drop(store);
//! # std::fs::remove_dir_all(directory).unwrap();
//! # Ok::<(), pagestore::Error>(())
//! ```
//! `examples/shop.rs` shows the rest.
//!
//! It never writes into a directory that holds something else, never asks again after a failed write or sync, and
//! never returns a page that it cannot vouch for.

mod aligned;
mod awake;
mod background;
mod cache;
mod checkpoint;
mod codec;
mod control;
mod delta;
pub mod disk;
mod error;
pub mod inspect;
mod journal;
pub mod kill;
mod log;
mod log_space;
mod options;
mod pace;
mod page;
mod recovery;
mod redo;
#[cfg(test)]
mod schedules;
pub mod sim;
mod store;
mod sync;
mod tree;
mod tx;
mod types;

pub use awake::AwakeTrial;
pub use cache::Page;
pub use error::{Error, Result};
pub use options::{Apply, Durability, KeepAwake, Layout, Options, Recovery};
pub use page::PAGE_HEADER_BYTES;
pub use pagestore_counters::{Certificate, CommitTimes, FileStatistics, Lsn, PageNo};
pub use recovery::{RecoveryEnd, RecoveryPhase, RecoveryProgress, RecoveryReport};
pub use store::{LogHolders, Stats, Store};
pub use tree::{Range, Table, Tables};
pub use tx::{Committed, Pages, ReadTx, WriteTx};
