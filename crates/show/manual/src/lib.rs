//! The manual pages and shell completions of `headroom`, written for packages, and two pages of its documentation. A program
//! of its own, so that `headroom` is built without the code that writes them.
//!
//! ```text
//! headroom::arguments ──> reference::write_all      manual pages and completions
//!                     ──> reference::options_page   all options as a page of the documentation
//! json::Outputs           the schema of what each command prints with --json
//!   json::page            all of them as a page of the documentation
//!   json::write_schemas   a JSON Schema file for each command
//! ```

pub mod json;

use std::io;
use std::path::Path;

const OPENING: &str = "\
# Options

Every command and its options, as `headroom help COMMAND` prints them. Written from the program:
`cargo run -p manual --bin headroom-manual -- --options > docs/reference/options.md`; a test compares it.

Sizes are `4K`, `1M`, `2G`; times `500ms`, `15s`, `2m`. Every command also takes:
";

/// Whether a manual page is this package's: those of `headroom lab` and `headroom log` are of the package headroom-lab.
fn is_written(name: &str) -> bool {
    !matches!(name, "headroom-lab" | "headroom-log")
}

/// The reference of all options, as a page of the documentation.
#[must_use]
pub fn options() -> String {
    reference::options_page(headroom::arguments(), OPENING)
}

/// Writes the pages to `man/man1` and the completions to `bash`, `zsh` and `fish` below a directory.
///
/// # Errors
/// If a file or directory cannot be written.
pub fn write_all(directory: &Path) -> io::Result<()> {
    reference::write_all(&headroom::arguments(), "headroom", is_written, directory)
}
