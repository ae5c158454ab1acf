//! `headroom-lab-manual DIR` writes manual pages and shell completions below a directory; `headroom-lab-manual --options` prints
//! the reference of all options.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: headroom-lab-manual DIR | --options";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [argument] = &arguments[..] else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if argument == "--options" {
        print!("{}", lab_manual::options());
        return ExitCode::SUCCESS;
    }
    match lab_manual::write_all(Path::new(argument)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: cannot write to {}: {error}", Path::new(argument).display());
            ExitCode::from(3)
        }
    }
}
