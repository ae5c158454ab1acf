//! The manual pages and shell completions of `headroom`, written for packages. A program of its own, so that `headroom` is
//! built without the code that writes them.
//!
//! ```text
//! command_tree()           headroom's subcommands, with those of headroom-lab in the place of `lab` and `log`
//!   page::write            one subcommand -> man1/headroom-check.1
//!     after_help::parse    its text after the options -> paragraphs, exit codes, examples
//!   completions::write     bash, zsh and fish, under the names that they are looked up by
//!   options::page          all options as a page of the documentation
//! json::Outputs            the schema of what each command prints with --json
//!   json::page             all of them as a page of the documentation
//!   json::write_schemas    a JSON Schema file for each command
//! ```

mod after_help;
mod completions;
pub mod json;
pub mod options;
mod page;

use clap::Command;
use std::fs;
use std::io;
use std::path::Path;

/// The program whose pages and completions these are.
pub const PROGRAM: &str = "headroom";

/// Subcommands that `headroom` leaves to `headroom-lab`.
const OF_LAB: [&str; 2] = ["lab", "log"];

/// All subcommands of `headroom` as its users see them.
///
/// # Panics
/// If a subcommand that is left to `headroom-lab` is missing in one of them.
pub fn command_tree() -> Command {
    let lab = headroom_lab::arguments();
    OF_LAB.iter().fold(headroom::arguments(), |tree, name| {
        tree.mut_subcommand(name, |placeholder| {
            let real = lab.find_subcommand(name).expect("headroom-lab has it").clone();
            real.display_order(placeholder.get_display_order())
        })
    })
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set())
}

/// Writes the pages to `man/man1` and the completions to `bash`, `zsh` and `fish` below a directory.
///
/// # Errors
/// If a file or directory cannot be written.
pub fn write_all(directory: &Path) -> io::Result<()> {
    let pages = directory.join("man/man1");
    fs::create_dir_all(&pages)?;
    page::write(&pages)?;
    completions::write(directory)
}
