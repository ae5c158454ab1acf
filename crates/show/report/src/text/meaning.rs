//! Findings, the worst first.

use super::style::{Ink, Style};
use super::wrap::wrap;
use crate::Tone;
use findings::{Finding, Weight};

/// Lines of one sentence.
const LINES_MAX: usize = 4;
/// Between a number and its unit while lines are broken: a private character, which no text contains.
const TIE: char = '\u{e000}';
const UNITS: [&str; 17] = [
    "%", "x", "ns", "us", "ms", "s", "min", "h", "days", "B", "KiB", "MiB", "GiB", "TiB", "IOPS", "MiB/s",
    "I/Os",
];

pub(super) fn meaning(findings: &[Finding], style: &Style) -> Vec<String> {
    if findings.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![style.heading("What it means")];
    for finding in findings {
        let (mark, ink) = match finding.weight {
            Weight::Good => ("+", Ink::Tone(Tone::Good)),
            Weight::Note => ("-", Ink::Bold),
            Weight::Warning if finding.invalidates() => ("!", Ink::Tone(Tone::Bad)),
            Weight::Warning => ("!", Ink::Tone(Tone::Warning)),
        };
        for (at, line) in broken_lines(&finding.text, style.columns() - 4).iter().enumerate() {
            let mark = if at == 0 { style.paint(ink, mark) } else { " ".into() };
            lines.push(format!("  {mark} {line}"));
        }
        if let Some(remedy) = &finding.remedy {
            let remedy = broken_lines(&format!("try: {remedy}"), style.columns() - 6);
            lines.extend(remedy.iter().map(|line| format!("      {}", style.paint(Ink::Dim, line))));
        }
    }
    lines
}

/// The text in lines, none of which begins with the unit of a number on the line before.
fn broken_lines(text: &str, columns: usize) -> Vec<String> {
    let mut tied = String::with_capacity(text.len());
    for word in text.split(' ') {
        let unit = UNITS.contains(&word.trim_end_matches([',', '.', ';', ':', ')']));
        if !tied.is_empty() {
            tied.push(if unit && tied.ends_with(|c: char| c.is_ascii_digit()) { TIE } else { ' ' });
        }
        tied.push_str(word);
    }
    wrap(&tied, columns, LINES_MAX).iter().map(|line| line.replace(TIE, " ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stays_with_its_unit() {
        assert_eq!(broken_lines("within 5 % or 12 s.", 10), ["within 5 %", "or 12 s."]);
        assert_eq!(broken_lines("rather 12 MiB/s, fell", 14), ["rather", "12 MiB/s, fell"]);
    }
}
