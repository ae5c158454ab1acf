//! The everyday workload: a small shop in SQLite, made to be observed while it runs and while its indexes are rebuilt.
//!
//! ```text
//! customers (id, name, email, balance_cents, profile)        customers_by_email
//! orders    (id, customer_id, reference, placed_unix_s,      orders_by_customer, orders_by_reference
//!            status, total_cents, note)                      5 for each customer
//!
//! of 100 transactions:  50 point reads   a customer and the latest orders
//!                       10 range reads   100 consecutive orders
//!                       25 updates       a balance and an order's status
//!                       15 inserts       an order, and the balance it is charged to
//! ```
//!
//! ```text
//! counted_sqlite          count the I/Os of the SQLite that is linked in, through a VFS of its own
//! prepare                 the database: about 150 MiB, three secondary indexes, nothing cached
//! Observer::new           the database's files and the devices below them
//! experiment              run the clients at a steady pace, then rebuild the indexes; sample both every second
//! Observer::observations  what a verdict is made of, one for each volume
//! judge_volumes           the verdict on each, by what the history knows of it
//! ```
//!
//! `headroom check` observes the whole and judges once; the agent observes a window and judges it every few seconds. Both call
//! the same functions.
//!
//! `examples/scenario.rs` is a program as a user might have one, with traits that a verdict must find:
//! idle, many readers, one committer, nearly nothing.
//!
//! It never writes into a file that it did not make.

mod clients;
mod counted;
pub mod database;
mod division;
mod error;
mod experiment;
mod judged;
mod kernel;
mod log_watch;
mod low_priority;
mod moment_files;
mod neighbours;
mod observer;
mod page_cache;
mod plan;
mod prepare;
mod processors;
mod random;
mod recent;
mod volumes;

pub use clients::run;
pub use counted::counted_sqlite;
pub use error::Error;
pub use experiment::{Listener, Phase, experiment, rebuild_indexes};
pub use judged::{JudgedVolume, Known, judge_volumes};
pub use observer::{Extent, Observer};
pub use page_cache::PageCache;
pub use plan::{Counts, Plan};
pub use prepare::prepare;
pub use random::Random;
pub use volumes::Scope;
