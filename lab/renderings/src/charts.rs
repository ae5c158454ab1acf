//! A chart of each study.

mod commits;
mod recoveries;

pub use commits::commits;
pub use recoveries::recoveries;
