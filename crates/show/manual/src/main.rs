//! `headroom-manual DIR` writes manual pages and shell completions below a directory; `headroom-manual --options` prints the
//! reference of all options.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(directory), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: headroom-manual DIR, or headroom-manual --options");
        return ExitCode::from(2);
    };
    if directory == "--options" {
        print!("{}", manual::options::page());
        return ExitCode::SUCCESS;
    }
    match manual::write_all(Path::new(&directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: cannot write to {}: {error}", directory.display());
            ExitCode::from(3)
        }
    }
}
