//! Pages that need nothing else.

mod commits;
mod recoveries;

pub use commits::commits;
pub use recoveries::recoveries;
