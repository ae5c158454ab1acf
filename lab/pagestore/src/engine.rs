//! An open store: its page table, transactions, trees, checkpoints and background threads.
//!
//! ```text
//! store        Store: create, open, close                    background   the threads, and when a checkpoint is due
//! tree         tables, on the pages of a transaction         log_space    space in the log before a transaction appends
//! tx           transactions: snapshots, the writer           checkpoint   dirty pages to the data file
//! compaction   moves pages to the front, cuts the files      log_size     a log that is not needed is shortened
//! roots        where compactions moved the roots of tables   inner        what all threads share
//! read, redo   a page from the data file or the log
//! ```
//! A module uses those below it only: `store`, `compaction`, `tree`, `tx`, `log_space`, `background`, `log_size`,
//! `checkpoint`, `read`, `redo`, `state`, `inner`, `roots`, `cache`.

pub(crate) mod background;
pub(crate) mod cache;
pub(crate) mod checkpoint;
pub(crate) mod compaction;
pub(crate) mod inner;
mod log_size;
pub(crate) mod log_space;
mod pace;
mod read;
mod redo;
mod roots;
pub(crate) mod state;
pub(crate) mod store;
pub(crate) mod tree;
pub(crate) mod tx;
mod wake;
