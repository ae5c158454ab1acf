//! Pages of HTML that need nothing else: no network, no fonts. Light, dark and print share one drawing, whose
//! colours are CSS variables.

mod analysis;
mod capability;
mod check;
mod comparison;
mod estimate;
mod fleet;
mod incident;
mod page;
mod runs;
mod sentence;
mod sweep;
mod table;
mod trace;

pub use self::analysis::{analysis, files_worth_a_chart};
pub use self::capability::capability;
pub use self::fleet::fleet;
pub use check::check;
pub use comparison::{Comparison, ComparisonRow, comparison, comparisons};
pub use estimate::estimate;
pub use incident::incident;
pub use page::SCRIPT;
pub use runs::{RunsPage, Validity, matrix, runs};
pub use sweep::sweeps;
pub use trace::trace;

/// Parts of which other crates make their pages. Cells of tables are HTML; all other texts are escaped.
pub mod parts {
    pub use super::page::{Tile, page, run_chart, tiles};
    pub use super::runs::{opening, repeat};
    pub use super::sentence::sentence;
    pub use super::table::{Table, figure};
}
