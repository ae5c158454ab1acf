use crate::Failure;
use crate::escape::{escape, escape_answer, escape_line, escape_part};
use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Where answers and progress go: answers to stdout, progress to stderr and only to a terminal.
pub struct Output {
    json: bool,
    terminal: bool,
    progress_drawn: Option<Instant>,
    /// The preliminary answer that is on the screen.
    drawn: Option<Drawn>,
    written: Result<bool, Failure>,
}

/// Text on the screen that may be drawn over.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Drawn {
    lines: usize,
    /// Of the terminal when it was drawn.
    size: (u16, u16),
}

/// The line of progress is drawn at most this often.
const DRAW_INTERVAL: Duration = Duration::from_millis(100);

impl Output {
    /// An output that prints answers as text, or as JSON.
    pub fn new(json: bool) -> Output {
        let terminal = std::io::stderr().is_terminal();
        Output { json, terminal, progress_drawn: None, drawn: None, written: Ok(true) }
    }

    /// Prints JSON from now on.
    pub fn print_json(&mut self) {
        self.json = true;
    }

    /// Style of text on stdout: no colours into a pipe or with `NO_COLOR` set.
    pub fn style(&self) -> report::text::Style {
        let width = terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0));
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        report::text::Style { color: std::io::stdout().is_terminal() && !no_color, width }
    }

    /// Shows an answer that a better one will follow: on a terminal as the answer itself, which [`Output::answer`] then draws
    /// over. A pipe or a file gets only the last answer; a terminal beside it gets `remark`.
    pub fn preliminary(&mut self, text: impl FnOnce(&report::text::Style) -> String, remark: impl Display) {
        self.clear_progress();
        if self.json || !std::io::stdout().is_terminal() {
            self.note(remark);
            return;
        }
        let style = self.style();
        let mut answer = escape_answer(&text(&style), &style).into_owned();
        if !answer.ends_with('\n') {
            answer.push('\n');
        }
        let replaced = self.take_drawn();
        let size = terminal_size::terminal_size().map(|(width, height)| (width.0, height.0));
        self.drawn = size.map(|size| Drawn { lines: answer.lines().count(), size });
        let mut stdout = std::io::stdout();
        self.written =
            is_read(stdout.write_all((replaced + &answer).as_bytes()).and_then(|()| stdout.flush()));
    }

    /// A line follows the preliminary answer, which is not drawn over then.
    fn leave_drawn(&mut self) {
        self.drawn.iter_mut().for_each(|drawn| drawn.lines = usize::MAX);
    }

    /// The text that removes the preliminary answer from the screen, or separates the next one from it.
    fn take_drawn(&mut self) -> String {
        let size = terminal_size::terminal_size().map(|(width, height)| (width.0, height.0));
        self.drawn.take().map_or(String::new(), |drawn| drawn.removal(size))
    }

    /// Prints the answer as text or as JSON. Only the one that is printed is made.
    pub fn answer(
        &mut self,
        text: impl FnOnce(&report::text::Style) -> String,
        json: impl FnOnce() -> serde_json::Value,
    ) {
        self.clear_progress();
        let style = self.style();
        let mut answer = if self.json {
            // A value of ours has only string keys, so that writing it cannot fail.
            escape(&serde_json::to_string_pretty(&json()).unwrap_or_default()).into_owned()
        } else {
            escape_answer(&text(&style), &style).into_owned()
        };
        if !answer.ends_with('\n') {
            answer.push('\n');
        }
        let replaced = self.take_drawn();
        let mut stdout = std::io::stdout();
        self.written =
            is_read(stdout.write_all((replaced + &answer).as_bytes()).and_then(|()| stdout.flush()));
    }

    /// Removes the line of progress and checks that the answer was written.
    ///
    /// # Errors
    /// The answer could not be written to stdout.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.clear_progress();
        self.written.map(drop)
    }

    /// Draws a line of progress, with the time left, over the previous one.
    pub fn progress(&mut self, doing: impl Display, left: Option<Duration>) {
        let due = self.progress_drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW_INTERVAL);
        if !self.terminal || !due {
            return;
        }
        self.progress_drawn = Some(Instant::now());
        let left = left.map_or(String::new(), |left| format!(" · {} left", format_duration(left)));
        let columns = terminal_size::terminal_size_of(std::io::stderr());
        let columns = columns.map_or(COLUMNS_UNKNOWN, |(width, _)| usize::from(width.0));
        let line = fitted(&escape_line(&doing.to_string()), &left, columns);
        to_stderr(format_args!("\r\x1b[2K{line}"));
    }

    /// Removes the line of progress.
    pub fn clear_progress(&mut self) {
        if self.progress_drawn.take().is_some() {
            to_stderr("\r\x1b[2K");
        }
    }

    /// Prints a remark on stderr, only on a terminal: what is done and why.
    pub fn note(&mut self, what: impl Display) {
        self.clear_progress();
        if self.terminal {
            self.leave_drawn();
            to_stderr(format_args!("{}\n", escape_part(&what.to_string())));
        }
    }

    /// Prints a warning on stderr.
    pub fn warn(&mut self, warning: impl Display) {
        self.clear_progress();
        self.leave_drawn();
        to_stderr(format_args!("warning: {}\n", escape_part(&warning.to_string())));
    }
}

impl Drawn {
    /// Moves to its first line and clears the rest, as long as all of it is still where it was drawn: the terminal has the same
    /// size, and more lines than it. Else the next answer stands below it.
    fn removal(&self, size: Option<(u16, u16)>) -> String {
        let fits = size == Some(self.size) && self.lines < usize::from(self.size.1);
        if fits { format!("\x1b[{}A\r\x1b[J", self.lines) } else { "\n".into() }
    }
}

/// Whether stdout is still read, after a write to it: a closed pipe (`| head`) is no error.
///
/// # Errors
/// The write failed otherwise.
pub fn is_read(written: std::io::Result<()>) -> Result<bool, Failure> {
    match written {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::new(format_args!("cannot write the answer to stdout: {error}"))),
    }
}

/// `eprint!` panics where stderr is closed, as in `2>&1 | head`.
fn to_stderr(text: impl Display) {
    let _ = std::io::stderr().write_all(text.to_string().as_bytes());
}

/// Of a terminal that does not say how wide it is.
const COLUMNS_UNKNOWN: usize = 80;

/// A line of progress that does not wrap: a line that wrapped could not be drawn over. Its parts are left out from the end,
/// the time left never.
fn fitted(doing: &str, left: &str, columns: usize) -> String {
    const BETWEEN: &str = " · ";
    let width = |text: &str| text.chars().count();
    // The last column stays free: some terminals wrap when it is written.
    let space = columns.saturating_sub(1).saturating_sub(width(left));
    let mut doing = doing;
    while width(doing) > space
        && let Some((shorter, _)) = doing.rsplit_once(BETWEEN)
    {
        doing = shorter;
    }
    if width(doing) <= space {
        return format!("{doing}{left}");
    }
    let cut: String = doing.chars().take(space.saturating_sub(1)).collect();
    format!("{cut}…{left}")
}

fn format_duration(left: Duration) -> String {
    let seconds = left.as_secs_f64().round() as u64;
    if seconds >= 60 { format!("{} min {:02} s", seconds / 60, seconds % 60) } else { format!("{seconds} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preliminary_answer_is_drawn_over_only_where_all_of_it_is_on_the_screen() {
        let drawn = Drawn { lines: 30, size: (100, 40) };
        assert_eq!(drawn.removal(Some((100, 40))), "\x1b[30A\r\x1b[J");
        for other in [Some((80, 40)), Some((100, 24)), None] {
            assert_eq!(drawn.removal(other), "\n", "the terminal is another than it was");
        }
        assert_eq!(
            Drawn { lines: 40, ..drawn }.removal(Some((100, 40))),
            "\n",
            "its first line scrolled off"
        );
    }

    #[test]
    fn time_left_is_in_seconds_and_from_a_minute_on_in_minutes() {
        let text = |ms| format_duration(Duration::from_millis(ms));
        assert_eq!([text(0), text(1_499), text(59_499)], ["0 s", "1 s", "59 s"]);
        assert_eq!([text(60_000), text(125_000)], ["1 min 00 s", "2 min 05 s"]);
    }

    #[test]
    fn a_line_of_progress_never_wraps_and_keeps_the_time_left() {
        let doing = "random read 8 KiB · 2000 IOPS · p50 85.3 us · p99 2.00 ms · max 12.3 ms · 15.6 MiB/s · 31 outstanding";
        let left = " · 40 s left";
        assert_eq!(fitted(doing, left, 200), format!("{doing}{left}"));
        let narrow = "random read 8 KiB · 2000 IOPS · p50 85.3 us · p99 2.00 ms · 40 s left";
        assert_eq!(fitted(doing, left, 80), narrow);
        assert_eq!(fitted(doing, left, 25), "random read… · 40 s left");
        for columns in 14..120 {
            let line = fitted(doing, left, columns);
            assert!(line.chars().count() < columns && line.ends_with(left), "{columns}: {line}");
        }
    }
}
