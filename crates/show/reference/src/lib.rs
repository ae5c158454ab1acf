//! A program's arguments as documents: manual pages, shell completions, a page of all options. A library of its own, so that
//! programs are built without what writes them.
//!
//! ```text
//! clap::Command
//!   page::write            one subcommand -> man1/headroom-check.1
//!     after_help::parse    its text after the options -> paragraphs, exit codes, examples
//!   completions::write     bash, zsh and fish, under the names that they are looked up by
//!   options::page          all options as a page of the documentation
//! ```

mod after_help;
mod completions;
mod options;
mod page;

use clap::Command;
use std::fs;
use std::io;
use std::path::Path;

/// The program that users call, in all pages.
const PROGRAM: &str = "headroom";

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set())
}

/// Writes manual pages to `man/man1` below a directory, those whose names (`headroom-check`) `is_written` accepts, and
/// completions for `program` to `bash`, `zsh` and `fish`.
///
/// # Errors
/// If a file or directory cannot be written.
pub fn write_all(
    tree: &Command,
    program: &str,
    is_written: fn(&str) -> bool,
    directory: &Path,
) -> io::Result<()> {
    let pages = directory.join("man/man1");
    fs::create_dir_all(&pages)?;
    page::write(tree, is_written, &pages)?;
    completions::write(tree, program, directory)
}

pub use options::page as options_page;
