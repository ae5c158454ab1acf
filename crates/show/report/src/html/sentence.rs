use charts::escape;

/// A sentence, escaped, whose numbers keep their units on the same line.
pub(super) fn sentence(text: &str) -> String {
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
