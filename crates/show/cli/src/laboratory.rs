//! `headroom lab` and `headroom log`: they are the program `headroom-lab`, a package and a workspace of its own, so that
//! this one is built without engines. It gets all arguments unchanged and takes the place of this process.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use terminal::{Done, Failure};

const PROGRAM: &str = "headroom-lab";

const INSTALL: &str = "install the package headroom-lab; from source: cd lab && cargo build --release";

/// The program's subcommands.
const SUBCOMMANDS: [&str; 2] = ["lab", "log"];

/// Arguments of a subcommand of `headroom-lab`, which parses them.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    all: Vec<OsString>,
}

/// Whether the command line names a subcommand of `headroom-lab`, possibly after global options or `help`.
pub fn is_named(arguments: impl IntoIterator<Item = OsString>) -> bool {
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--json" | "help") => {}
            Some("--history") => drop(arguments.next()),
            Some(option) if option.starts_with("--history=") => {}
            Some(word) => return SUBCOMMANDS.contains(&word),
            None => return false,
        }
    }
    false
}

/// Runs `headroom-lab` in the place of this process: its exit code and signals are those of this one. It is the file
/// beside this program, or the first on `PATH`.
pub fn run() -> Done {
    let program = beside().unwrap_or_else(|| PathBuf::from(PROGRAM));
    Err(failure(&program, &Command::new(&program).args(std::env::args_os().skip(1)).exec()))
}

/// Whether [`run`] finds the program.
pub fn is_installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    beside().is_some() || std::env::split_paths(&path).any(|directory| directory.join(PROGRAM).is_file())
}

fn beside() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    Some(own.with_file_name(PROGRAM)).filter(|path| path.exists())
}

fn failure(program: &Path, error: &io::Error) -> Failure {
    let name = SUBCOMMANDS.join(" and headroom ");
    match error.kind() {
        io::ErrorKind::NotFound => Failure::new(format_args!(
            "cannot run {PROGRAM}, the program of headroom {name}: it is neither beside headroom nor on PATH"
        ))
        .with_remedy(INSTALL),
        _ => Failure::new(format_args!("cannot run {}: {error}", program.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subcommands_are_found_behind_global_options_and_help() {
        let named = |line: &str| is_named(line.split(' ').map(OsString::from));
        for line in
            ["lab", "log why /s", "--json lab crash", "--history h.db log", "--history=h lab", "help lab"]
        {
            assert!(named(line), "{line}");
        }
        for line in ["", "check lab", "--history lab", "--help lab", "-V", "help", "help check", "laboratory"]
        {
            assert!(!named(line), "{line}");
        }
    }

    #[test]
    fn a_missing_program_is_named_with_the_command_that_builds_it() {
        let failure = failure(Path::new(PROGRAM), &io::ErrorKind::NotFound.into()).to_string();
        assert!(failure.contains("neither beside") && failure.contains("cd lab && cargo build --release"));
    }
}
