//! An embeddable, crash-safe page store whose transaction log can be seen into.
#![allow(dead_code)]

mod aligned;
mod codec;
mod control;
mod delta;
pub mod disk;
mod error;
mod log;
mod lsn;
mod page;

pub use error::{Error, Result};
pub use log::vlf::Certificate;
pub use lsn::{Lsn, PageNo};
