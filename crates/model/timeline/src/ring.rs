use crate::Span;
use std::collections::VecDeque;

/// The samples that are kept: 15 minutes, one a second.
pub const SAMPLES_MAX: usize = 900;
/// Gaps kept: a source that fails every few seconds has more, and its oldest are dropped.
const GAPS_MAX: usize = 200;
/// Samples further apart than this have a gap between them.
const APART_MAX_NS: u64 = 500_000_000;

/// A stretch of which nothing is known, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The stretch.
    pub span: Span,
    /// Why.
    pub reason: String,
}

/// The newest samples, in the order of time, and the gaps between them.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    samples: VecDeque<(Span, T)>,
    gaps: VecDeque<Gap>,
    /// Since when nothing is known, and why.
    open: Option<(u64, String)>,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Ring { samples: VecDeque::new(), gaps: VecDeque::new(), open: None }
    }
}

impl<T> Ring<T> {
    /// Adds a moment of which something is known. The clock may have been set back: then everything after it is
    /// forgotten.
    pub fn push(&mut self, span: Span, value: T) {
        self.forget_from(span.from_ns);
        self.close(span.from_ns);
        let last = self.samples.back().map(|(last, _)| last.to_ns);
        if let Some(last) = last.filter(|last| last.saturating_add(APART_MAX_NS) < span.from_ns) {
            let covered = self
                .gaps
                .back()
                .is_some_and(|gap| gap.span.to_ns.saturating_add(APART_MAX_NS) >= span.from_ns);
            if !covered {
                let reason = "no sample was taken: the machine was busy or suspended".to_owned();
                self.keep_gap(Gap { span: Span { from_ns: last, to_ns: span.from_ns }, reason });
            }
        }
        self.samples.push_back((span, value));
        while self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
        let begin = self.samples.front().map_or(0, |(first, _)| first.from_ns);
        self.gaps.retain(|gap| gap.span.to_ns > begin);
    }

    /// Nothing is known of a moment; what comes after it may be.
    pub fn push_unknown(&mut self, span: Span, reason: &str) {
        self.fail(span.from_ns, reason);
        self.close(span.to_ns);
    }

    /// Nothing is known from now on, until the next sample. It begins where the last sample ended.
    pub fn fail(&mut self, at_ns: u64, reason: &str) {
        match &mut self.open {
            Some((_, why)) if why != reason => {
                self.close(at_ns);
                self.open = Some((at_ns, reason.to_owned()));
            }
            Some(_) => {}
            None => {
                let last = self.samples.back().map(|(last, _)| last.to_ns);
                let last = last.max(self.gaps.back().map(|gap| gap.span.to_ns));
                let from_ns = last.filter(|last| *last <= at_ns).unwrap_or(at_ns);
                self.open = Some((from_ns, reason.to_owned()));
            }
        }
    }

    /// Why nothing is known now.
    pub fn failing(&self) -> Option<&str> {
        self.open.as_ref().map(|(_, reason)| reason.as_str())
    }

    /// Since when nothing is known.
    pub fn failing_since_ns(&self) -> Option<u64> {
        self.open.as_ref().map(|(from_ns, _)| *from_ns)
    }

    /// The samples, the oldest first.
    pub fn samples(&self) -> impl DoubleEndedIterator<Item = &(Span, T)> {
        self.samples.iter()
    }

    /// The gaps until now, the oldest first.
    pub fn gaps(&self, now_ns: u64) -> Vec<Gap> {
        let mut gaps: Vec<Gap> = self.gaps.iter().cloned().collect();
        if let Some((from_ns, reason)) = self.open.as_ref().filter(|(from_ns, _)| *from_ns < now_ns) {
            gaps.push(Gap { span: Span { from_ns: *from_ns, to_ns: now_ns }, reason: reason.clone() });
        }
        gaps
    }

    /// From the first thing that is known here, a sample or a gap.
    pub fn begin_ns(&self) -> Option<u64> {
        let sample = self.samples.front().map(|(first, _)| first.from_ns);
        let gap = self.gaps.front().map(|gap| gap.span.from_ns);
        let open = self.open.as_ref().map(|(from_ns, _)| *from_ns);
        [sample, gap, open].into_iter().flatten().min()
    }

    fn close(&mut self, to_ns: u64) {
        if let Some((from_ns, reason)) = self.open.take().filter(|(from_ns, _)| *from_ns < to_ns) {
            self.keep_gap(Gap { span: Span { from_ns, to_ns }, reason });
        }
    }

    fn keep_gap(&mut self, gap: Gap) {
        match self.gaps.back_mut() {
            // This reason goes on.
            Some(last) if last.reason == gap.reason && last.span.to_ns == gap.span.from_ns => {
                last.span.to_ns = gap.span.to_ns;
            }
            _ => self.gaps.push_back(gap),
        }
        while self.gaps.len() > GAPS_MAX {
            self.gaps.pop_front();
        }
    }

    fn forget_from(&mut self, from_ns: u64) {
        while self.samples.back().is_some_and(|(last, _)| last.to_ns > from_ns.saturating_add(APART_MAX_NS)) {
            self.samples.pop_back();
        }
        self.gaps.retain(|gap| gap.span.from_ns < from_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn second(at: u64) -> Span {
        Span { from_ns: at * SECOND, to_ns: (at + 1) * SECOND }
    }

    fn gaps(ring: &Ring<u32>, now: u64) -> Vec<(u64, u64, String)> {
        let gaps = ring.gaps(now * SECOND).into_iter();
        gaps.map(|gap| (gap.span.from_ns / SECOND, gap.span.to_ns / SECOND, gap.reason)).collect()
    }

    #[test]
    fn it_keeps_a_quarter_of_an_hour() {
        let mut ring = Ring::default();
        (0..2_000).for_each(|at| ring.push(second(at), at as u32));
        let kept: Vec<u32> = ring.samples().map(|(_, value)| *value).collect();
        assert_eq!((kept.len(), kept[0], kept[899]), (SAMPLES_MAX, 1_100, 1_999));
        assert!(ring.gaps(3_000 * SECOND).is_empty());
    }

    #[test]
    fn a_failure_lasts_until_the_next_sample_and_begins_where_the_last_one_ended() {
        let mut ring = Ring::default();
        ring.push(second(10), 1);
        ring.fail(13 * SECOND, "no connection");
        ring.fail(18 * SECOND, "no connection");
        assert_eq!(ring.failing(), Some("no connection"));
        assert_eq!(gaps(&ring, 20), [(11, 20, "no connection".to_owned())]);
        ring.push(second(25), 2);
        assert_eq!(ring.failing(), None);
        assert_eq!(gaps(&ring, 30), [(11, 25, "no connection".to_owned())]);
    }

    #[test]
    fn another_reason_begins_another_gap() {
        let mut ring = Ring::<u32>::default();
        ring.fail(5 * SECOND, "no connection");
        ring.fail(9 * SECOND, "no permission");
        let wanted = [(5, 9, "no connection".to_owned()), (9, 12, "no permission".to_owned())];
        assert_eq!(gaps(&ring, 12), wanted);
        assert_eq!(ring.begin_ns(), Some(5 * SECOND));
    }

    #[test]
    fn seconds_without_samples_are_a_gap() {
        let mut ring = Ring::default();
        ring.push(second(10), 1);
        ring.push(second(14), 2);
        let found = gaps(&ring, 20);
        assert_eq!((found[0].0, found[0].1, found.len()), (11, 14, 1));
    }

    #[test]
    fn unknown_moments_with_one_reason_are_one_gap() {
        let mut ring = Ring::default();
        ring.push(second(10), 1);
        (11..14).for_each(|at| ring.push_unknown(second(at), "the engine restarted"));
        ring.push(second(14), 2);
        assert_eq!(gaps(&ring, 20), [(11, 14, "the engine restarted".to_owned())]);
    }

    #[test]
    fn a_clock_that_is_set_back_forgets_what_was_later() {
        let mut ring = Ring::default();
        (10..20).for_each(|at| ring.push(second(at), at as u32));
        ring.push(second(12), 99);
        let kept: Vec<u32> = ring.samples().map(|(_, value)| *value).collect();
        assert_eq!(kept, [10, 11, 99]);
    }
}
