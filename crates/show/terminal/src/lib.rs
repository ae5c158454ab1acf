//! Code that the programs `headroom` and `headroom-lab` share at a terminal.
//!
//! ```text
//! stdout  <- Output::answer      text or JSON, once
//! stderr  <- Output::progress    a line with the time left, only on a terminal
//!            Output::warn        what must not be missed
//!            Failure::print      what failed and why, facts, what to do
//!            both through `escape`: no text of a server or a file acts on the terminal
//! file    <- page::write         an HTML page, never over a file that is not Headroom's
//! ```
//!
//! A subcommand parses its arguments, calls [`interrupt::install`], opens [`workspace`] and history ([`kept`]), does its
//! work and gives [`Output::answer`] the result. It returns [`Done`]: an exit code, or the [`Failure`] that `main` prints.
//!
//! It measures nothing and judges nothing.

pub mod escape;
pub mod failure;
pub mod interrupt;
pub mod kept;
mod output;
pub mod page;
pub mod source_argument;
pub mod text_file;
pub mod workspace;

pub use failure::Failure;
pub use output::{Output, is_read};
pub use source_argument::SourceName;
use std::process::ExitCode;

/// How a subcommand ended.
pub type Done = Result<ExitCode, Failure>;

/// Everything went well and the news is good.
pub const FINE: ExitCode = ExitCode::SUCCESS;

/// A problem was found.
pub fn problem_found() -> ExitCode {
    ExitCode::from(1)
}

/// There is no answer.
pub fn no_answer() -> ExitCode {
    ExitCode::from(3)
}

/// Ends a program: flushes the answer, prints a failure, and returns the exit code; after Ctrl-C always
/// [`interrupt::CODE`], so that scripts do not go on as if all had been done.
pub fn finish(done: Done, mut out: Output) -> ExitCode {
    out.clear_progress();
    let code = done.and_then(|code| out.finish().map(|()| code)).unwrap_or_else(|failure| {
        failure.print();
        failure.code()
    });
    if interrupt::requested() { ExitCode::from(interrupt::CODE) } else { code }
}
