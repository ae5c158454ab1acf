//! Ctrl-C ends what runs and keeps what was measured; a second one ends the program at once.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Exit code of what was ended by Ctrl-C: 128 and the signal's number, as shells have it.
pub const CODE: u8 = 130;

/// Takes over Ctrl-C, SIGTERM and SIGHUP: for work that asks now and then whether to go on. All else they
/// end at once, as they should.
pub fn install() {
    let handler = || {
        if ASKED.swap(true, Relaxed) {
            std::process::exit(CODE.into());
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
