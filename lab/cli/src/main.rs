//! The binary `headroom-lab`.

use std::process::ExitCode;

fn main() -> ExitCode {
    headroom_lab::main()
}
