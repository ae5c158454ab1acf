//! `headroom-manual DIR` writes manual pages and shell completions below a directory; `headroom-manual --options` prints the
//! reference of all options, `headroom-manual --json` that of all JSON; `headroom-manual --json-schema DIR` writes JSON Schema.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: headroom-manual DIR | --options | --json | --json-schema DIR";

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(|argument| argument.to_str().unwrap_or_default()).collect();
    let (directory, result) = match words[..] {
        ["--options"] => {
            print!("{}", manual::options());
            return ExitCode::SUCCESS;
        }
        ["--json"] => {
            print!("{}", manual::json::page());
            return ExitCode::SUCCESS;
        }
        ["--json-schema", _] => (&arguments[1], manual::json::write_schemas(Path::new(&arguments[1]))),
        [word] if !word.starts_with("--") => (&arguments[0], manual::write_all(Path::new(&arguments[0]))),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: cannot write to {}: {error}", directory.display());
            ExitCode::from(3)
        }
    }
}
