use crate::failure::Failure;
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Where answers and progress go: answers to stdout, progress to stderr and only to a terminal.
pub struct Output {
    json: bool,
    terminal: bool,
    shown: Option<Instant>,
    not_written: Option<std::io::Error>,
}

/// Progress is drawn this often.
const DRAW: Duration = Duration::from_millis(100);

impl Output {
    /// An output that prints text, or JSON.
    pub fn new(json: bool) -> Output {
        Output { json, terminal: std::io::stderr().is_terminal(), shown: None, not_written: None }
    }

    /// JSON from now on.
    pub fn print_json(&mut self) {
        self.json = true;
    }

    /// How text is to look on stdout: no colours into a pipe or with `NO_COLOR` set.
    pub fn style(&self) -> report::text::Style {
        let width = terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0));
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        report::text::Style { color: std::io::stdout().is_terminal() && !no_color, width }
    }

    /// Prints the answer: text or JSON, whichever was asked for. Only that one is made.
    pub fn answer(
        &mut self,
        text: impl FnOnce(&report::text::Style) -> String,
        json: impl FnOnce() -> serde_json::Value,
    ) {
        self.clear_progress();
        let mut answer = if self.json {
            // A value of ours has only string keys, so that writing it cannot fail.
            serde_json::to_string_pretty(&json()).unwrap_or_default()
        } else {
            text(&self.style())
        };
        if !answer.ends_with('\n') {
            answer.push('\n');
        }
        let mut stdout = std::io::stdout();
        let written = stdout.write_all(answer.as_bytes()).and_then(|()| stdout.flush());
        // A reader that went away (`| head`) is no error.
        self.not_written = written.err().filter(|error| error.kind() != std::io::ErrorKind::BrokenPipe);
    }

    /// Takes the line of progress away, and says whether the answer got where it should.
    pub fn finish(&mut self) -> Result<(), Failure> {
        self.clear_progress();
        match self.not_written.take() {
            None => Ok(()),
            Some(error) => Err(Failure::new(format_args!("cannot write the answer to stdout: {error}"))),
        }
    }

    /// Draws a line of progress with the time left over the previous one.
    pub fn progress(&mut self, doing: impl Display, left: Option<Duration>) {
        let due = self.shown.is_none_or(|shown| shown.elapsed() >= DRAW);
        if !self.terminal || !due {
            return;
        }
        self.shown = Some(Instant::now());
        let left = left.map_or(String::new(), |left| format!(" · {} left", in_words(left)));
        to_stderr(format_args!("\r\x1b[2K{doing}{left}"));
    }

    /// Takes the line of progress away.
    pub fn clear_progress(&mut self) {
        if self.shown.take().is_some() {
            to_stderr("\r\x1b[2K");
        }
    }

    /// Tells the person at the terminal what is done and why.
    pub fn tell(&mut self, what: impl Display) {
        self.clear_progress();
        if self.terminal {
            to_stderr(format_args!("{what}\n"));
        }
    }

    /// Tells something on stderr that must not be missed.
    pub fn warn(&mut self, warning: impl Display) {
        self.clear_progress();
        to_stderr(format_args!("warning: {warning}\n"));
    }
}

/// `eprint!` panics where stderr is closed, as in `2>&1 | head`.
fn to_stderr(text: impl Display) {
    let _ = std::io::stderr().write_all(text.to_string().as_bytes());
}

fn in_words(left: Duration) -> String {
    let seconds = left.as_secs_f64().round() as u64;
    if seconds >= 60 { format!("{} min {:02} s", seconds / 60, seconds % 60) } else { format!("{seconds} s") }
}
