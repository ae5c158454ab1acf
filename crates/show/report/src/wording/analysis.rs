//! Sentences about a stored stretch.

use analyze::{Coverage, Finding, Span};
use charts::number;

/// Times that are listed with a finding; JSON has more.
const WHEN_MAX: usize = 3;

/// The known share of the stretch, in a sentence.
pub(crate) fn coverage(coverage: &Coverage) -> String {
    let every = coverage
        .interval_ns
        .map_or(String::new(), |ns| format!(", every {}", number::duration(ns as f64 / 1e9)));
    let known = match coverage.known_share {
        Some(share) => format!("{} of the files' time between them is known", number::share_of_whole(share)),
        None => "nothing is known between them".into(),
    };
    let mut text = format!(
        "{} captures{every}, cover {} of it; {known}; {}, {} of them used",
        number::count(coverage.captures as u64),
        number::share_of_whole(coverage.captured_share),
        counted(coverage.files),
        number::count(coverage.files_used as u64),
    );
    if coverage.files_untimed > 0 {
        text.push_str(&format!(", {} not (wholly) timed", number::count(coverage.files_untimed as u64)));
    }
    if coverage.files_unsized > 0 {
        text.push_str(&format!(
            ", {} of unknown size (re-reads and jobs are not looked for there)",
            number::count(coverage.files_unsized as u64)
        ));
    }
    text
}

fn counted(files: usize) -> String {
    format!("{} file{}", number::count(files as u64), if files == 1 { "" } else { "s" })
}

/// The last two parts of a long path: "…/16384/16400".
pub(crate) fn short_path(path: &str) -> String {
    /// Characters of a path that is shown whole.
    const WHOLE_MAX: usize = 32;
    let mut slashes = path.rmatch_indices('/').map(|(at, _)| at);
    match (path.chars().count() > WHOLE_MAX, slashes.nth(1)) {
        (true, Some(at)) if at > 0 => format!("…{}", &path[at..]),
        _ => path.to_owned(),
    }
}

/// The longest stretches of a finding in the order of time.
pub(crate) fn when(finding: &Finding) -> Option<String> {
    let mut spans: Vec<Span> = finding.when.iter().take(WHEN_MAX).copied().collect();
    spans.sort_by_key(|span| span.from_unix_ns);
    let mut listed: Vec<String> = spans.iter().map(span).collect();
    let more = finding.stretches.saturating_sub(listed.len());
    if more > 0 {
        listed.push(format!("and {more} more"));
    }
    (!listed.is_empty()).then(|| listed.join(", "))
}

/// "2026-11-21 02:00:00 to 02:12:15 UTC".
fn span(span: &Span) -> String {
    let (from, until) = (number::instant(span.from_unix_ns), number::instant(span.until_unix_ns));
    match (from.split_once(' '), until.split_once(' ')) {
        (Some((day, begin)), Some((same, end))) if day == same => {
            format!("{day} {} to {end}", begin.trim_end_matches(" UTC"))
        }
        _ => format!("{} to {until}", from.trim_end_matches(" UTC")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_keeps_its_last_two_parts() {
        assert_eq!(short_path("/var/lib/postgresql/18/main/base/16384/16400"), "…/16384/16400");
        assert_eq!(short_path("/data/shop.db"), "/data/shop.db");
    }
}
