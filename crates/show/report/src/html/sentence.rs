use charts::escape;

/// A sentence, escaped, whose numbers keep their units on the same line. Text between backticks is code.
pub fn sentence(text: &str) -> String {
    let mut safe = with_code(&escape(text));
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

/// The text with `code` as an element; a backtick without a second one stays.
fn with_code(text: &str) -> String {
    let mut html = String::new();
    let mut rest = text;
    while let Some((before, code, after)) = rest
        .split_once('`')
        .and_then(|(before, from)| from.split_once('`').map(|(code, after)| (before, code, after)))
    {
        html.push_str(&format!("{before}<code>{code}</code>"));
        rest = after;
    }
    html + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backticks_become_code_and_a_single_one_stays() {
        assert_eq!(
            sentence("Run `headroom measure <DIR>`, 5 ms."),
            "Run <code>headroom measure &lt;DIR&gt;</code>, 5\u{a0}ms."
        );
        assert_eq!(sentence("a ` b"), "a ` b");
    }
}
