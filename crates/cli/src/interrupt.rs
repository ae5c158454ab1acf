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

/// A mapped page that is no longer there, or that the storage fails to give, ends the program by SIGBUS, in the
/// middle of a copy: all that can be done is to say so.
pub fn tell_bus_errors() {
    extern "C" fn told(_: libc::c_int) {
        const TEXT: &[u8] = b"\nerror: a mapped file cannot be used where the load wants to (SIGBUS): another program \
            cut it, or the storage failed\n  try: the same without --mapped, which counts such failures and goes on\n";
        // SAFETY: both calls are async-signal-safe, and the text is static.
        unsafe {
            libc::write(libc::STDERR_FILENO, TEXT.as_ptr().cast(), TEXT.len());
            libc::_exit(3);
        }
    }
    // SAFETY: the handler only makes async-signal-safe calls and does not return.
    unsafe { libc::signal(libc::SIGBUS, told as extern "C" fn(libc::c_int) as libc::sighandler_t) };
}
