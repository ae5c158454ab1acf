//! An open store: its page table, transactions, trees, checkpoints and background threads.
//!
//! ```text
//! store        Store: create, open, close                    background   the threads, and when a checkpoint is due
//! tree         tables, on the pages of a transaction         log_space    space in the log before a transaction appends
//! tx           transactions: snapshots, the writer           checkpoint   dirty pages to the data file
//! read, redo   a page from the data file or the log          inner        what all threads share
//! ```
//! A module uses those below it only: `store`, `tree`, `tx`, `log_space`, `background`, `checkpoint`, `read`, `redo`,
//! `state`, `inner`, `cache`.

pub(crate) mod background;
pub(crate) mod cache;
pub(crate) mod checkpoint;
pub(crate) mod inner;
pub(crate) mod log_space;
mod pace;
mod read;
mod redo;
pub(crate) mod state;
pub(crate) mod store;
pub(crate) mod tree;
pub(crate) mod tx;
mod wake;
