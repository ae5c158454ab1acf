//! Text for a terminal. Colours only where the [`Style`] says so.

mod analysis;
mod capability;
mod check;
mod commits;
mod comparison;
mod course;
mod errors;
mod estimate;
mod footprint;
mod intervals;
mod matrix;
mod meaning;
mod percentiles;
mod phases;
mod recoveries;
mod run;
mod shares;
mod sketch;
mod sweep;
mod table;
mod trace;
mod waits;
mod watch;

pub use self::analysis::analysis;
pub use self::capability::capability;
pub use self::matrix::{foretold, matrix};
pub use crate::wording::reconciled;
pub(crate) use analysis::{coverage, when};
pub use check::check;
pub use commits::commits;
pub use comparison::comparison;
pub(crate) use comparison::{word, written};
pub(crate) use estimate::advice;
pub use estimate::{estimate, simulation};
pub use footprint::footprint;
pub use intervals::intervals;
pub use phases::phases;
pub use recoveries::recoveries;
pub use run::run;
pub use sweep::sweeps;
pub use trace::{TraceLines, trace, trace_letters};
pub use watch::{SHORT_MARK, band_tone, watch, watched_figures};

use crate::Tone;

/// How text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Colours and bold by ANSI sequences; the caller obeys `NO_COLOR` and looks for a terminal.
    pub color: bool,
    /// Columns of the terminal; fewer than 80 are taken for 80.
    pub width: usize,
}

/// Wider lines than this are hard to read.
const WIDTH_MAX: usize = 132;

/// What a stretch of text stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Ink {
    #[default]
    Plain,
    Bold,
    Dim,
    Tone(Tone),
}

impl Style {
    fn columns(&self) -> usize {
        self.width.clamp(80, WIDTH_MAX)
    }

    fn paint(&self, ink: Ink, text: &str) -> String {
        let code = match ink {
            Ink::Bold => "1",
            Ink::Dim => "2",
            Ink::Tone(Tone::Good) => "32",
            Ink::Tone(Tone::Warning) => "33",
            Ink::Tone(Tone::Bad) => "31",
            Ink::Plain | Ink::Tone(Tone::Neutral) => return text.into(),
        };
        if self.color && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
    }

    fn heading(&self, text: &str) -> String {
        self.paint(Ink::Bold, text)
    }
}

impl Default for Style {
    fn default() -> Self {
        Style { color: false, width: 100 }
    }
}

/// Makes outside text harmless in a terminal: no escape sequences, no line breaks, no reversed order.
fn clean(text: &str) -> String {
    let harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}')
    };
    text.chars().map(|c| if harmful(c) { '\u{fffd}' } else { c }).collect()
}

/// A source, before what is said of it. That of all processes, `process:`, ends in a colon of its own.
fn of(source: &str) -> String {
    format!("{}:", source.trim_end_matches(':'))
}

/// The text cut to that many columns at its end.
fn clip(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.into();
    }
    match columns.checked_sub(1) {
        Some(kept) => format!("{}…", text.chars().take(kept).collect::<String>().trim_end()),
        None => String::new(),
    }
}

/// The text cut at its beginning: of a path, the end tells files apart.
fn clip_start(text: &str, columns: usize) -> String {
    let length = text.chars().count();
    if length <= columns {
        return text.into();
    }
    match columns.checked_sub(1) {
        Some(kept) => format!("…{}", text.chars().skip(length - kept).collect::<String>()),
        None => String::new(),
    }
}

/// The text in lines of that width, at most `lines_max` of them.
fn wrap(text: &str, columns: usize, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in clean(text).split_whitespace() {
        let needed = line.chars().count() + usize::from(!line.is_empty()) + word.chars().count();
        if !line.is_empty() && needed > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    if lines.len() > lines_max {
        lines.truncate(lines_max);
        if let Some(last) = lines.last_mut() {
            *last = clip(&format!("{last}…"), columns);
        }
    }
    lines.iter().map(|line| clip(line, columns)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_one_colon_before_what_is_said_of_it() {
        assert_eq!(["process:", "sqlite:/a.db"].map(of), ["process:", "sqlite:/a.db:"]);
    }

    #[test]
    fn a_name_cannot_command_the_terminal() {
        assert_eq!(clean("a\x1b[31mb\nc\u{202e}d"), "a\u{fffd}[31mb\u{fffd}c\u{fffd}d");
    }

    #[test]
    fn wrapped_text_keeps_to_its_columns_and_lines() {
        let lines = wrap("one two three four five six seven", 9, 2);
        assert_eq!(lines, ["one two", "three…"]);
        assert_eq!(wrap("", 10, 3), [""]);
    }

    #[test]
    fn a_long_path_keeps_its_end() {
        assert_eq!(clip_start("/data/sales/orders.db", 12), "…s/orders.db");
    }
}
