//! An engine in files that this program works on itself: what it must provide.

use super::child::Reporter;
use super::victim::Recovered;
use super::work::{Crash, Order};
use super::{Context, Strategy};
use crate::Error;
use std::convert::Infallible;
use std::path::Path;

/// Creates the data file, then commits until it is killed.
pub(super) type Write = fn(&Path, &Order, &mut Reporter) -> Result<Infallible, Error>;
/// Opens and recovers a killed engine's files.
pub(super) type Recover = fn(&Path, Strategy, &Crash, &Context) -> Result<Recovered, Error>;

pub(super) struct Files {
    pub write: Write,
    pub recover: Recover,
    pub strategies: &'static [Strategy],
    pub page_bytes: u64,
    /// Space that it takes, as a multiple of its data.
    pub data_times: u64,
    /// Bytes of log in an image, where that is not what the writer reported.
    pub log_bytes: Option<fn(&Path) -> u64>,
}
