//! An embeddable, crash-safe page store with a transaction log that can be inspected.
//!
//! ```text
//! Store::create / open ── write() ── WriteTx: page_mut, allocate, free; create_table, put, delete, cursor_mut ── commit(Full | Delayed)
//!                     ├── transact(Full | Delayed, |tx| ...)      the same in one call
//!                     ├── read() ─── ReadTx: page; table, get, len, range, cursor      a snapshot
//!                     └── compact(pages)                          a step towards shorter files
//! Store::open_with(..., |progress| ...)                           as open, and reports the progress of recovery
//! inspect::Inspection::open                                       reads the log without opening the store
//! directory   control   two copies of what opening needs, the log's directory     format/control.rs, log/directory.rs
//!             data      pages of 4, 8 or 16 KiB, checksummed                      format/page.rs
//!             log       virtual log files of blocks of records                    log.rs, log/block.rs, log/record.rs
//!             lock      one process at a time
//! ```
//! One transaction writes at a time, on copies of pages; its commit appends the changes to the log and waits until they
//! are durable. A page's first change since it was written to the data file is logged as a full *image*, later ones as
//! deltas. So a torn page needs no second copy, redo reads no page, dirty pages can be evicted, and a crashed store opens
//! before anything is redone. Only checkpoints write the data file. There is no undo: what a transaction larger than
//! memory sets aside, in a file without a name, is gone with it. Readers find cached pages without a lock, in huge
//! pages of the processor where the kernel has any.
//!
//! Modules import downwards only; `log::writer`, `engine::cache` and `format` do no I/O:
//!
//! ```text
//! view        statistics of an open store, the log of any               view/inspect.rs, view/stats.rs
//! engine      store, trees, transactions, checkpoints, page table       engine.rs draws it
//! recovery    from a crashed log to a writer and the pages to redo      recovery.rs
//! log         records in, durable positions out; reading it back        log/writer.rs, log/journal.rs, log/scan.rs
//! disk        real files, counted I/O; simulated ones: `crashlab`       disk/real.rs, disk/counted.rs
//! format      control file, pages, deltas, dimensions                   format/
//! ```
//! It never writes into a directory that holds something else, never retries a failed write or sync, and never returns
//! a page that fails its checks.

pub mod disk;
mod engine;
mod error;
mod format;
#[doc(hidden)]
pub mod internals;
mod log;
mod options;
mod recovery;
#[cfg(test)]
mod schedules;
mod sync;
mod types;
mod view;

pub use engine::cache::Page;
pub use engine::checkpoint::{Checkpoint, SyncedCheckpoint};
pub use engine::compaction::{Compaction, CompactionHolder};
pub use engine::state::LogHolders;
pub use engine::store::Store;
pub use engine::tree::{Cursor, ExtractIf, Range, Table, Tables, Value};
pub use engine::tx::{Committed, Pages, ReadTx, WriteTx};
pub use error::{Error, Result};
pub use format::page::PAGE_HEADER_BYTES;
pub use log::idle_guard::AwakeTrial;
pub use options::{Apply, Durability, KeepAwake, Layout, Options, Recovery};
pub use pagestore_counters::{Certificate, CommitTimes, FileStatistics, Lsn, PageNo};
pub use recovery::{RecoveryEnd, RecoveryPhase, RecoveryProgress, RecoveryReport};
pub use view::inspect;
pub use view::stats::Stats;
