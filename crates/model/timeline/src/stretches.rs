use crate::Span;

/// State of a stretch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch<K> {
    /// From when to when.
    pub span: Span,
    /// The state; `None` where nothing is known.
    pub kind: Option<K>,
    /// Whether it was watched. A stretch that was not watched is not known either.
    pub watched: bool,
}

/// The states in a span, by its changes (each with when it began, in the order of time; `None`: nothing was known from then
/// on) and by when it was watched (in the order of time, apart). The state before the first change is unknown.
pub fn stretches<K: Copy + PartialEq>(
    changes: &[(u64, Option<K>)],
    watched: &[Span],
    span: Span,
) -> Vec<Stretch<K>> {
    let mut found: Vec<Stretch<K>> = Vec::new();
    let mut add = |span: Span, kind: Option<K>, watched: bool| match found.last_mut() {
        Some(last) if last.kind == kind && last.watched == watched && last.span.to_ns == span.from_ns => {
            last.span.to_ns = span.to_ns;
        }
        _ => found.push(Stretch { span, kind, watched }),
    };
    let begins = [(0, None)].into_iter().chain(changes.iter().copied());
    let ends = changes.iter().map(|(at, _)| *at).chain([u64::MAX]);
    for ((from_ns, kind), to_ns) in begins.zip(ends) {
        let Some(held) = (Span { from_ns, to_ns }).within(span) else { continue };
        let mut at = held.from_ns;
        for part in watched.iter().filter_map(|part| part.within(held)) {
            if at < part.from_ns {
                add(Span { from_ns: at, to_ns: part.from_ns }, None, false);
            }
            add(part, kind, true);
            at = part.to_ns;
        }
        if at < held.to_ns {
            add(Span { from_ns: at, to_ns: held.to_ns }, None, false);
        }
    }
    found
}

/// Spans in the order of time, those that are no further apart than `apart_ns` as one.
pub fn joined(mut spans: Vec<Span>, apart_ns: u64) -> Vec<Span> {
    spans.sort_unstable();
    let mut found: Vec<Span> = Vec::new();
    for span in spans {
        match found.last_mut() {
            Some(last) if span.from_ns <= last.to_ns.saturating_add(apart_ns) => {
                last.to_ns = last.to_ns.max(span.to_ns);
            }
            _ => found.push(span),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(from_ns: u64, to_ns: u64) -> Span {
        Span { from_ns, to_ns }
    }

    fn shown(found: &[Stretch<char>]) -> String {
        let one = |stretch: &Stretch<char>| {
            let kind = if stretch.watched { stretch.kind.unwrap_or('?') } else { '-' };
            format!("{}{kind}", stretch.span.len_ns())
        };
        found.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_agent_that_was_killed_says_nothing_until_it_is_started_again() {
        let changes = [(10, Some('h')), (50, Some('t')), (90, Some('h'))];
        let found = stretches(&changes, &[span(10, 60), span(90, 100)], span(0, 100));
        assert_eq!(shown(&found), "10- 40h 10t 30- 10h");
    }

    #[test]
    fn nothing_known_is_a_stretch_of_its_own_and_a_verdict_that_is_repeated_is_not() {
        let changes = [(0, Some('h')), (20, None), (30, Some('h')), (60, Some('h'))];
        assert_eq!(shown(&stretches(&changes, &[span(0, 80)], span(10, 80))), "10h 10? 50h");
        assert_eq!(shown(&stretches(&[], &[span(0, 80)], span(10, 80))), "70?");
    }

    #[test]
    fn spans_that_nearly_touch_are_one() {
        assert_eq!(joined(vec![span(7, 9), span(0, 5), span(20, 30)], 2), [span(0, 9), span(20, 30)]);
    }

    proptest! {
        #[test]
        fn the_stretches_cover_the_span_without_overlap(
            mut changes in prop::collection::vec((0..1_000_u64, prop::option::of(0..4_u8)), 0..20),
            parts in prop::collection::vec((0..1_000_u64, 1..200_u64), 0..10),
            (from, len) in (0..1_000_u64, 1..1_000_u64),
        ) {
            changes.sort_unstable();
            changes.dedup_by_key(|change| change.0);
            let watched = joined(parts.into_iter().map(|(from, len)| span(from, from + len)).collect(), 0);
            let all = span(from, from + len);
            let found = stretches(&changes, &watched, all);
            let ends: Vec<Span> = found.iter().map(|one| one.span).collect();
            prop_assert_eq!(ends.first().map(|one| one.from_ns), Some(all.from_ns));
            prop_assert_eq!(ends.last().map(|one| one.to_ns), Some(all.to_ns));
            prop_assert!(ends.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
            prop_assert!(found.iter().all(|one| one.watched || one.kind.is_none()));
        }
    }
}
