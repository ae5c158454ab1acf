//! Text for a terminal.

mod commits;
mod footprint;
mod recoveries;

pub use commits::commits;
pub use footprint::footprint;
pub use recoveries::recoveries;
