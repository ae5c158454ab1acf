//! Outside text made harmless, cut and wrapped.

/// Whether a terminal would execute a character, break the line at it, hide it, or reverse the order of what follows.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Makes outside text harmless in a terminal: no escape sequences, no line breaks, no reversed order.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if is_harmful(c) { '\u{fffd}' } else { c }).collect()
}

/// A source and a colon. The source of all processes, `process:`, ends in one already.
pub(super) fn source_heading(source: &str) -> String {
    format!("{}:", source.trim_end_matches(':'))
}

/// The text cut to that many columns at its end.
pub(super) fn clip(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.into();
    }
    match columns.checked_sub(1) {
        Some(kept) => format!("{}…", text.chars().take(kept).collect::<String>().trim_end()),
        None => String::new(),
    }
}

/// The text cut at its beginning: the end of a path identifies the file.
pub(super) fn clip_start(text: &str, columns: usize) -> String {
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
pub fn wrap(text: &str, columns: usize, lines_max: usize) -> Vec<String> {
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
    fn a_source_is_followed_by_one_colon() {
        assert_eq!(["process:", "sqlite:/a.db"].map(source_heading), ["process:", "sqlite:/a.db:"]);
    }

    #[test]
    fn a_name_contains_no_escape_sequence() {
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
