//! Ctrl-C ends the work and keeps what was measured; a second one ends the program at once.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Exit code after Ctrl-C: 128 and the signal's number, as in a shell.
pub const CODE: u8 = 130;

/// Handles Ctrl-C, SIGTERM and SIGHUP, for work that polls [`requested`]. Without a call of it they end the program at
/// once.
pub fn install() {
    let handler = || {
        if REQUESTED.swap(true, Relaxed) {
            std::process::exit(CODE.into());
        }
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        eprintln!("warning: Ctrl-C will not keep what was measured: {error}");
    }
}

/// Whether the work is to end.
pub fn requested() -> bool {
    REQUESTED.load(Relaxed)
}

/// The same as a break.
pub fn break_if_requested() -> ControlFlow<()> {
    if requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// The flag, for code that polls it.
pub fn flag() -> &'static AtomicBool {
    &REQUESTED
}
