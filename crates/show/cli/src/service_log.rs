//! The log of a subcommand that runs for weeks, and how it is ended.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use terminal::interrupt;

/// Writes a line of the log to stderr. Under systemd the line begins with the priority by sd-daemon(3), and the journal adds
/// the time.
pub fn log(priority: u8, text: &str) {
    let text = terminal::escape::escape_line(text);
    let line = if std::env::var_os("JOURNAL_STREAM").is_some() {
        format!("<{priority}>{text}\n")
    } else {
        format!("{} {text}\n", jiff::Zoned::now().strftime("%F %T"))
    };
    // A closed stderr cannot be reported.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// A flag that Ctrl-C sets.
pub fn stop_on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let set = stop.clone();
    std::thread::spawn(move || {
        while !interrupt::requested() {
            std::thread::sleep(Duration::from_millis(50));
        }
        set.store(true, Relaxed);
    });
    stop
}
