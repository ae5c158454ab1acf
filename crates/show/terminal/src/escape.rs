//! Text that leaves for a terminal. Error texts of servers and names of files may contain sequences that a terminal executes
//! and marks that reverse the order of what follows: each such character is written as `\u001b`, which is harmless, and which
//! JSON and TOML read as the same character.

use report::text::{Style, is_harmful};
use std::borrow::Cow;
use std::fmt::Write;

/// The styles that Headroom and clap print: reset, bold, dim, underlined, red, green, yellow.
const STYLES: [&str; 7] = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[4m", "\x1b[31m", "\x1b[32m", "\x1b[33m"];

/// Escapes all but line breaks and tabs.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_answer(text, &Style::default())
}

/// Escapes a text in a style: its colours stay.
pub fn escape_answer<'t>(text: &'t str, style: &Style) -> Cow<'t, str> {
    let harmful = |c: char| is_harmful(c) && !matches!(c, '\n' | '\t');
    if !text.contains(harmful) {
        return text.into();
    }
    let mut escaped = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let sequence = STYLES.into_iter().find(|sequence| style.color && rest.starts_with(sequence));
        let taken = sequence.map_or(c.len_utf8(), str::len);
        if sequence.is_none() && harmful(c) {
            // Writing into a String cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push_str(&rest[..taken]);
        }
        rest = &rest[taken..];
    }
    escaped.into()
}

/// Escapes a part of a message. Its further lines are indented, so that none can be taken for a line of ours.
pub fn escape_part(text: &str) -> String {
    escape(text).replace('\n', "\n    ")
}

/// Escapes a text that must stay in one line.
pub fn escape_line(text: &str) -> String {
    escape(text).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\x1b]0;title\x07\r\u{9b}2J\u{202e}b\u{2066}\u{61c}\x7f\nc\td ü";

    #[test]
    fn nothing_that_a_terminal_executes_or_reorders_is_left() {
        let escaped = r"a\u001b]0;title\u0007\u000d\u009b2J\u202eb\u2066\u061c\u007f";
        assert_eq!(escape(HOSTILE), format!("{escaped}\nc\td ü"));
        assert_eq!(escape_line(HOSTILE), format!("{escaped} c d ü"));
        assert_eq!(escape_part("no\nerror: yes"), "no\n    error: yes");
        assert!(matches!(escape("plain\n\tü"), Cow::Borrowed(_)));
    }

    #[test]
    fn colours_stay_where_there_are_colours() {
        let text = "\x1b[31mbad\x1b[0m \x1b[8mhidden \x1b[31";
        let coloured = Style { color: true, ..Style::default() };
        assert_eq!(escape_answer(text, &coloured), "\x1b[31mbad\x1b[0m \\u001b[8mhidden \\u001b[31");
        assert_eq!(escape(text), r"\u001b[31mbad\u001b[0m \u001b[8mhidden \u001b[31");
    }

    #[test]
    fn escaped_json_means_the_same() {
        let value = serde_json::json!({ "path": HOSTILE });
        let text = serde_json::to_string(&value).unwrap();
        assert!(text.contains('\u{202e}') && !escape(&text).contains('\u{202e}'));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escape(&text)).unwrap(), value);
    }
}
