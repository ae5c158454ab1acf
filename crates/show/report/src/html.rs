//! One page of HTML that needs nothing else: no network, no fonts, no script. Light, dark and print share
//! one drawing, whose colours are CSS variables.

mod analysis;
mod capability;
mod check;
mod commits;
mod comparison;
mod estimate;
mod page;
mod recoveries;
mod runs;
mod sweep;
mod table;
mod trace;

pub use self::analysis::{analysis, worth_a_chart};
pub use self::capability::capability;
pub use check::check;
pub use commits::commits;
pub use comparison::{Comparison, ComparisonRow, compared, comparison};
pub use estimate::estimate;
pub(crate) use page::page_colour;
pub use recoveries::recoveries;
pub use runs::{RunsPage, matrix, runs};
pub use sweep::sweeps;
pub use trace::trace;

/// Outside text, harmless in HTML and in attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in harmless(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// A sentence, escaped, whose numbers keep their units on the same line.
fn sentence(text: &str) -> String {
    let mut safe = escape(text);
    for unit in ["%", "ns", "us", "ms", "KiB", "MiB", "IOPS", "I/Os", "x"] {
        for end in ["", " ", ",", ".", ";", ":", ")"] {
            let found = format!(" {unit}{end}");
            // Without an end the unit must be the last word, else "x" would bind every word with an x.
            if end.is_empty() {
                if let Some(head) = safe.strip_suffix(&found) {
                    safe = format!("{head}\u{a0}{unit}");
                }
            } else {
                safe = safe.replace(&found, &format!("\u{a0}{unit}{end}"));
            }
        }
    }
    safe
}

/// Outside text without control characters and without marks that reverse the order of what follows.
pub(crate) fn harmless(text: &str) -> String {
    let harmful = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if harmful(c) { '\u{fffd}' } else { c }).collect()
}
