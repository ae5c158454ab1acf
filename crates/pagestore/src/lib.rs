//! An embeddable, crash-safe page store whose transaction log can be seen into.
#![allow(dead_code)]

mod aligned;
mod background;
mod cache;
mod checkpoint;
mod codec;
mod control;
mod delta;
pub mod disk;
mod error;
mod journal;
mod log;
mod lsn;
mod options;
mod page;
mod recovery;
pub mod sim;
mod store;
mod tree;
mod tx;

pub use cache::Page;
pub use error::{Error, Result};
pub use log::vlf::Certificate;
pub use lsn::{Lsn, PageNo};
pub use options::{Durability, Layout, Options, Recovery};
pub use page::PAGE_HEADER_BYTES;
pub use recovery::RecoveryReport;
pub use store::{LogHolders, Stats, Store};
pub use tree::{Range, Table, Tables};
pub use tx::{Committed, Pages, ReadTx, WriteTx};
