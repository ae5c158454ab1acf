//! Pages of HTML that need nothing else: no network, no fonts. Light, dark and print share one drawing, whose
//! colours are CSS variables.

mod analysis;
mod capability;
mod check;
mod commits;
mod comparison;
mod estimate;
mod fleet;
mod incident;
mod page;
mod recoveries;
mod runs;
mod sentence;
mod sweep;
mod table;
mod trace;

pub use self::analysis::{analysis, files_worth_a_chart};
pub use self::capability::capability;
pub use self::fleet::fleet;
pub use check::check;
pub use commits::commits;
pub use comparison::{Comparison, ComparisonRow, comparison, comparisons};
pub use estimate::estimate;
pub use incident::incident;
pub use page::SCRIPT;
pub use recoveries::recoveries;
pub use runs::{RunsPage, Validity, matrix, runs};
pub use sweep::sweeps;
pub use trace::trace;
