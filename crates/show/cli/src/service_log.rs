//! The log of a subcommand that runs for weeks.

use std::io::Write;

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
