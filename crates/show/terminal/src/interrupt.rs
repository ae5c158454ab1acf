//! Ctrl-C ends the work and keeps the measured results; a second one ends the program at once.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

static REQUESTED: AtomicBool = AtomicBool::new(false);
static RELOAD: AtomicBool = AtomicBool::new(false);
static FIRST: OnceLock<Instant> = OnceLock::new();

/// A signal that follows the first one within this time is the same one: GNU `timeout` sends one to its child and one to its
/// process group, to which the child belongs.
const SAME_SIGNAL: Duration = Duration::from_millis(200);

/// Exit code after Ctrl-C: 128 and the signal's number, as in a shell.
pub const CODE: u8 = 130;

/// Handles Ctrl-C, SIGTERM and SIGHUP, for work that polls [`requested`]. Without a call of it they end the program at
/// once.
pub fn install() {
    if let Err(error) = ctrlc::set_handler(request) {
        eprintln!("warning: Ctrl-C will not keep what was measured: {error}");
    }
}

/// Handles Ctrl-C and SIGTERM as [`install`] does, and SIGHUP as a request to read the configuration again.
pub fn install_for_service() {
    match Signals::new([SIGINT, SIGTERM, SIGHUP]) {
        Ok(mut signals) => drop(std::thread::spawn(move || {
            for signal in signals.forever() {
                match signal {
                    SIGHUP => RELOAD.store(true, Relaxed),
                    _ => request(),
                }
            }
        })),
        Err(error) => eprintln!("warning: Ctrl-C will not keep what was judged: {error}"),
    }
}

/// Whether the configuration is to be read again. Each request is returned once.
pub fn take_reload() -> bool {
    RELOAD.swap(false, Relaxed)
}

fn request() {
    let now = Instant::now();
    REQUESTED.store(true, Relaxed);
    if is_another(*FIRST.get_or_init(|| now), now) {
        std::process::exit(CODE.into());
    }
}

fn is_another(first: Instant, now: Instant) -> bool {
    now.saturating_duration_since(first) >= SAME_SIGNAL
}

/// Whether the work is to end.
pub fn requested() -> bool {
    REQUESTED.load(Relaxed)
}

/// A break if the work is to end.
pub fn break_if_requested() -> ControlFlow<()> {
    if requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// The flag, for code that polls it.
pub fn flag() -> &'static AtomicBool {
    &REQUESTED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_signal_within_200_ms_is_the_same_one() {
        let first = Instant::now();
        let after = |ms| is_another(first, first + Duration::from_millis(ms));
        assert!(!after(0) && !after(199) && after(200) && after(5000));
    }
}
