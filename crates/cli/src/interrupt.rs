//! Ctrl-C ends what runs and keeps what was measured; a second one ends the program at once.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Takes over Ctrl-C, SIGTERM and SIGHUP.
pub fn install() {
    let handler = || {
        if ASKED.swap(true, Relaxed) {
            std::process::exit(130);
        }
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        eprintln!("warning: Ctrl-C will not keep what was measured: {error}");
    }
}

/// Whether the user wants an end.
pub fn asked() -> bool {
    ASKED.load(Relaxed)
}

/// The flag itself, for who polls it.
pub fn flag() -> &'static AtomicBool {
    &ASKED
}
