//! The manual pages and shell completions of `headroom-lab`, written for its package, and the page OPTIONS.md.
//!
//! ```text
//! headroom_lab::arguments ──> reference::write_all      headroom-lab-crash.1 and others, completions
//!                         ──> reference::options_page   lab/OPTIONS.md
//! ```

use std::io;
use std::path::Path;

const OPENING: &str = "\
# Options of the laboratory

The commands of `headroom-lab`, which `headroom lab` and `headroom log` run. Written from the program, in `lab/`:
`cargo run -p lab-manual --bin headroom-lab-manual -- --options > OPTIONS.md`; a test compares it.

Sizes are `4K`, `1M`, `2G`; times `500ms`, `15s`, `2m`. Every command also takes:
";

/// Whether a manual page is this package's: `headroom.1` is of the package headroom.
fn is_written(name: &str) -> bool {
    name != "headroom"
}

/// The reference of all options.
#[must_use]
pub fn options() -> String {
    reference::options_page(headroom_lab::arguments(), OPENING)
}

/// Writes the pages to `man/man1` and the completions to `bash`, `zsh` and `fish` below a directory.
///
/// # Errors
/// If a file or directory cannot be written.
pub fn write_all(directory: &Path) -> io::Result<()> {
    reference::write_all(&headroom_lab::arguments(), "headroom-lab", is_written, directory)
}
