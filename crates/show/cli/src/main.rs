//! The binary `headroom`.

use std::process::ExitCode;

fn main() -> ExitCode {
    headroom::main()
}
