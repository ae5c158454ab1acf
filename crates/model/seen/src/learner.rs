use crate::reached::{Rates, Reached, keep};
use crate::saturation::{Saturated, find, find_limited, unlimited};
use crate::window::{Second, Window, Windows, push_bounded};
use crate::{CONTRADICTS, Rest, Seen};
use capability::{Capability, Credit, Flow, RateLimit, Side};
use std::collections::VecDeque;
use workload::Pattern;

/// Learns from consecutive seconds.
#[derive(Clone, Debug, Default)]
pub struct Learner {
    seen: Seen,
    windows: Windows,
    /// The newest, without a gap: rates that all of them had were held.
    held: VecDeque<Window>,
    /// The newest, in which a full resource is looked for.
    recent: VecDeque<Window>,
    /// Windows since it was looked for last.
    waiting: usize,
    /// Limits of a declared volume that saves credits.
    limits: Vec<RateLimit>,
}

/// Windows in a row for which a rate is held: the highest of many short ones is above what a storage gives by chance.
const HELD: usize = 3;
/// Windows in which a full resource is looked for: twenty minutes.
const RECENT: usize = 240;
/// Windows between two such searches.
const EVERY: usize = 3;
/// A limit that is missing from this many windows was lifted: a minute, since a database without the limit may share the
/// storage.
const LIFTED_AFTER: usize = 12;
/// I/Os of a window behind a latency.
const IOS_MIN: f64 = 20.0;
/// Larger I/Os and commits take longer, so that they say nothing of latency at rest.
pub const REST_BYTES_MAX: f64 = 65_536.0;
/// Outstanding I/Os at rest: one at a time.
const REST_OUTSTANDING: f64 = 1.1;
/// Resources with I/Os unlike that are kept.
const SATURATED_MAX: usize = 16;

impl Learner {
    /// Goes on from what was kept.
    pub fn new(seen: Seen) -> Learner {
        Learner { seen, ..Learner::default() }
    }

    /// The limits learned so far.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Compares what is known with what was measured, declared or borrowed.
    pub fn compare(&mut self, capability: &Capability) {
        self.seen.compare(&capability.resources(), capability.measured_unix_ns);
        let limits = capability.cost_model.iter().flat_map(|model| &model.limits);
        self.limits = limits.filter(|limit| limit.burst.is_some()).copied().collect();
    }

    /// Learns from the second after the last one. Seconds that were known already are left out. Returns whether more is known
    /// now.
    pub fn observe(&mut self, second: &Second) -> bool {
        let (window, is_gap) = self.windows.add(second);
        if is_gap {
            self.held.clear();
        }
        window.into_iter().for_each(|window| self.add(window));
        window.is_some()
    }

    fn add(&mut self, window: Window) {
        let seen = &mut self.seen;
        if seen.since_unix_ns == 0 {
            seen.since_unix_ns = window.ended_unix_ns.saturating_sub((window.elapsed_s * 1e9) as u64);
        }
        spend(seen, &self.limits, &window);
        seen.until_unix_ns = window.ended_unix_ns;
        seen.observed_s += window.elapsed_s;
        if add_rests(seen, &window) {
            self.forget(window.ended_unix_ns);
            return;
        }
        push_bounded(&mut self.held, window, HELD);
        push_bounded(&mut self.recent, window, RECENT);
        if self.held.len() == HELD {
            let held = self.held.iter().map(Window::rates).reduce(Rates::at_least);
            let outstanding = self.held.iter().map(Window::outstanding).sum::<f64>() / HELD as f64;
            let reached = held.map(|rates| Reached { at_unix_ns: window.ended_unix_ns, rates, outstanding });
            reached.into_iter().for_each(|reached| self.reached(reached));
        }
        self.waiting += 1;
        if self.waiting >= EVERY {
            self.waiting = 0;
            find(&self.recent).into_iter().for_each(|full| self.saturated(full));
            find_limited(&self.recent).into_iter().for_each(|full| self.keep_saturated(full));
            for name in unlimited(&self.recent, LIFTED_AFTER) {
                self.seen.saturated.retain(|full| full.name != name || full.limit.is_none());
            }
        }
    }

    fn reached(&mut self, reached: Reached) {
        // It gives more than when it was full. A limit may hold for some programs only.
        let refuted = |full: &Saturated| {
            full.limit.is_none() && full.share(&reached.rates).is_some_and(|share| share > CONTRADICTS)
        };
        self.seen.saturated.retain(|full| !refuted(full));
        keep(&mut self.seen.reached, reached);
    }

    fn saturated(&mut self, full: Saturated) {
        let exceeds = |reached: &Reached| full.share(&reached.rates).is_some_and(|share| share > CONTRADICTS);
        if self.seen.reached.iter().any(exceeds) {
            let recent = std::mem::take(&mut self.recent);
            self.forget(full.at_unix_ns);
            self.recent = recent;
        }
        self.keep_saturated(full);
    }

    fn keep_saturated(&mut self, full: Saturated) {
        let seen = &mut self.seen;
        let known = seen.saturated.iter_mut().find(|known| known.is_same(&full));
        match known {
            Some(known) => *known = full,
            None => seen.saturated.push(full),
        }
        seen.saturated.sort_by_key(|full| std::cmp::Reverse(full.at_unix_ns));
        seen.saturated.truncate(SATURATED_MAX);
    }

    /// The storage is another one now.
    fn forget(&mut self, at_unix_ns: u64) {
        self.held.clear();
        self.recent.clear();
        self.waiting = 0;
        self.seen = Seen {
            since_unix_ns: at_unix_ns,
            until_unix_ns: at_unix_ns,
            forgotten_unix_ns: Some(at_unix_ns),
            compared_unix_ns: self.seen.compared_unix_ns,
            contradictions: std::mem::take(&mut self.seen.contradictions),
            credits: std::mem::take(&mut self.seen.credits),
            ..Seen::default()
        };
    }
}

/// Saves and spends burst credits. Demand while no process watched is not known: at most all that the burst gives.
fn spend(seen: &mut Seen, limits: &[RateLimit], window: &Window) {
    seen.credits.retain(|credit| limits.iter().any(|limit| limit.of == credit.of));
    let side = |side, counted: &crate::Side| Flow {
        side,
        pattern: Pattern::Random,
        per_second: counted.ios / window.elapsed_s,
        bytes: counted.bytes_each(),
    };
    let flows = [side(Side::Read, &window.reads), side(Side::Write, &window.writes)];
    let passed_s = window.ended_unix_ns.saturating_sub(seen.until_unix_ns) as f64 / 1e9;
    let unwatched_s = if seen.until_unix_ns > 0 { (passed_s - window.elapsed_s).max(0.0) } else { 0.0 };
    for limit in limits {
        let at = seen.credits.iter().position(|credit| credit.of == limit.of).unwrap_or_else(|| {
            seen.credits.push(Credit::new(limit.of));
            seen.credits.len() - 1
        });
        let credit = &mut seen.credits[at];
        credit.spend(limit, limit.burst.map_or(0.0, |burst| burst.per_second), unwatched_s);
        credit.spend(limit, limit.demand(&flows), window.elapsed_s);
    }
}

/// Adds the latencies of a window at rest. Returns whether one of the device's changed for good.
fn add_rests(seen: &mut Seen, window: &Window) -> bool {
    if window.outstanding() > REST_OUTSTANDING {
        return false;
    }
    let add = |rest: &mut Rest, side: &crate::Side| {
        let is_known = side.ios >= IOS_MIN && side.bytes_each() <= REST_BYTES_MAX;
        is_known && rest.add(side.served_s / side.ios * 1e9)
    };
    let commits = &window.commits;
    let are_known = commits.count >= IOS_MIN && commits.bytes <= REST_BYTES_MAX * commits.count;
    if are_known && seen.commit_rest.add(commits.took_s / commits.count * 1e9) {
        // A log that grows, or another engine, changes them too: the storage need not be another one.
        seen.commit_rest = Rest::default();
    }
    let reads = add(&mut seen.read_rest, &window.reads);
    add(&mut seen.write_rest, &window.writes) || reads
}

#[cfg(test)]
mod tests {
    use super::*;
    use capability::{Binding, Declared, VolumeSize, VolumeType};
    use workload::{TargetFacts, TargetKind};

    const BEGIN_S: u64 = 1_000;

    fn declared() -> Capability {
        let volume: VolumeType = "gp2".parse().unwrap();
        let size = VolumeSize { gib: 100.0, ..VolumeSize::default() };
        let declared = Declared { latency_ns: Some(1e6), ..volume.declared(&size).unwrap() };
        let facts = TargetFacts {
            path: "/data".into(),
            kind: TargetKind::Directory,
            filesystem: None,
            mount: None,
            free_bytes: 0,
            devices: Vec::new(),
            direct_align_bytes: None,
            memory_align_bytes: 512,
            caps: Vec::new(),
        };
        declared.capability(facts, 1, "0").unwrap()
    }

    fn watch(learner: &mut Learner, from_s: u64, seconds: u64, ios: f64) {
        let reads = crate::Side { ios, bytes: ios * 8192.0, served_s: ios * 1e-3, waited_s: 0.0 };
        for second in from_s + 1..=from_s + seconds {
            let ended_unix_ns = second * 1_000_000_000;
            learner.observe(&Second { ended_unix_ns, elapsed_s: 1.0, reads, ..Second::default() });
        }
    }

    fn saved(learner: &Learner) -> f64 {
        let credit = learner.seen().credits.iter().find(|credit| credit.of == Binding::Operations);
        credit.map_or(0.0, |credit| credit.saved)
    }

    #[test]
    fn the_balance_of_burst_credits_is_kept_and_what_is_not_watched_may_have_spent_it() {
        let mut learner = Learner::default();
        learner.compare(&declared());
        watch(&mut learner, BEGIN_S, 3_600, 100.0);
        // 300 a second are the baseline.
        assert!((saved(&learner) / (200.0 * 3_600.0) - 1.0).abs() < 0.01, "{}", saved(&learner));
        watch(&mut learner, BEGIN_S + 3_600, 100, 1_300.0);
        assert!(
            (saved(&learner) / (200.0 * 3_600.0 - 1_000.0 * 100.0) - 1.0).abs() < 0.01,
            "{}",
            saved(&learner)
        );
        let mut later = Learner::new(learner.seen().clone());
        later.compare(&declared());
        watch(&mut later, BEGIN_S + 4_000, 10, 100.0);
        assert_eq!(saved(&later), 2_000.0, "five minutes at the full burst would have spent all");
    }

    /// Writes that wait above the device, where neither it nor the database times that: outstanding I/Os stay few.
    fn write(learner: &mut Learner, from_s: u64, seconds: u64, (ios, limit): (f64, f64)) {
        let writes = crate::Side { ios, bytes: ios * 16_384.0, served_s: 0.3, waited_s: 0.0 };
        let limit = crate::Limit { per_second: limit, counted: ios };
        for second in from_s + 1..=from_s + seconds {
            let ended_unix_ns = second * 1_000_000_000;
            let limits = [None, Some(limit), None, None];
            learner.observe(&Second { ended_unix_ns, elapsed_s: 1.0, writes, limits, ..Second::default() });
        }
    }

    #[test]
    fn where_as_much_passes_as_a_limit_of_this_host_allows_the_resource_is_full() {
        let mut learner = Learner::default();
        write(&mut learner, BEGIN_S, 300, (1_000.0, 3_000.0));
        assert!(learner.seen().saturated.is_empty(), "{:#?}", learner.seen().saturated);
        write(&mut learner, BEGIN_S + 300, 60, (2_980.0, 3_000.0));
        let [full] = learner.seen().saturated[..] else { panic!("{:#?}", learner.seen().saturated) };
        assert_eq!((full.name, full.value), (capability::ResourceName::WriteOperations, 3_000.0));
        assert!(full.low > 2_900.0 && full.outstanding < 1.0, "{full:#?}");
        // A higher limit, and a lower one: of each name the last is known.
        for (begin_s, limit) in [(360, 6_000.0), (420, 2_000.0)] {
            write(&mut learner, BEGIN_S + begin_s, 60, (limit * 0.99, limit));
            let [full] = learner.seen().saturated[..] else { panic!("{:#?}", learner.seen().saturated) };
            assert_eq!((full.value, full.limit), (limit, Some(limit)));
            assert_eq!(learner.seen().forgotten_unix_ns, None);
        }
        // A database that asks for less again.
        write(&mut learner, BEGIN_S + 480, 300, (500.0, 2_000.0));
        assert_eq!(learner.seen().saturated.len(), 1);
        // The limit is lifted, and the demand stays.
        watch(&mut learner, BEGIN_S + 780, 60, 500.0);
        assert!(learner.seen().saturated.is_empty(), "{:#?}", learner.seen().saturated);
    }

    // Reads at their limit for most of a window, and writes beside them: together they are flat too.
    #[test]
    fn what_a_limit_makes_flat_is_not_what_both_directions_share() {
        let mut learner = Learner::default();
        let mut second = |at: u64, part: f64, outstanding: f64| {
            let (reads, writes) = (3_000.0 * part, 700.0);
            let side = |ios, waited_s| crate::Side { ios, bytes: ios * 8_192.0, served_s: 0.1, waited_s };
            let limit = crate::Limit { per_second: 3_000.0, counted: reads };
            learner.observe(&Second {
                ended_unix_ns: (BEGIN_S + at) * 1_000_000_000,
                elapsed_s: 1.0,
                reads: side(reads, outstanding),
                writes: side(writes, 0.1),
                limits: [Some(limit), None, None, None],
                ..Second::default()
            });
        };
        for at in 0..600 {
            match at / 20 % 6 {
                0 => second(at, 0.3, 0.3),
                1 => second(at, 0.5, 0.5),
                2 => second(at, 0.87, 8.0),
                3 => second(at, 0.9, 16.0),
                4 => second(at, 0.92, 32.0),
                _ => second(at, 1.0, 64.0),
            }
        }
        let names: Vec<_> = learner.seen().saturated.iter().map(|full| full.name).collect();
        assert_eq!(names, [capability::ResourceName::ReadOperations]);
    }

    // Large I/Os are divided below a limit, small ones are merged, and flushes are none.
    #[test]
    fn what_a_limit_counts_is_no_figure_of_a_device_that_counts_otherwise() {
        for at_device in [4_000.0, 500.0] {
            let mut learner = Learner::default();
            let reads = crate::Side { ios: at_device, bytes: 4e9, served_s: 0.3, waited_s: 0.0 };
            let limit = crate::Limit { per_second: 1_000.0, counted: 1_000.0 };
            for second in BEGIN_S + 1..BEGIN_S + 300 {
                let ended_unix_ns = second * 1_000_000_000;
                let limits = [Some(limit), None, None, None];
                learner.observe(&Second {
                    ended_unix_ns,
                    elapsed_s: 1.0,
                    reads,
                    limits,
                    ..Second::default()
                });
            }
            assert!(learner.seen().saturated.is_empty(), "{:#?}", learner.seen().saturated);
            assert_eq!(learner.seen().forgotten_unix_ns, None);
        }
    }

    #[test]
    fn commits_at_rest_are_learned_and_another_latency_of_theirs_forgets_nothing_else() {
        let mut learner = Learner::default();
        let mut at_s = BEGIN_S;
        let mut commit = |learner: &mut Learner, seconds: u64, each_s: f64| {
            let writes = crate::Side { ios: 50.0, bytes: 50.0 * 8192.0, served_s: 0.05, waited_s: 0.0 };
            let commits = crate::Commits { count: 50.0, bytes: 50.0 * 4096.0, took_s: 50.0 * each_s };
            for _ in 0..seconds {
                at_s += 1;
                let ended_unix_ns = at_s * 1_000_000_000;
                learner.observe(&Second {
                    ended_unix_ns,
                    elapsed_s: 1.0,
                    writes,
                    commits,
                    ..Second::default()
                });
            }
        };
        commit(&mut learner, 300, 2e-3);
        let median_ns = |learner: &Learner| learner.seen().commit_rest.median_ns().unwrap();
        assert!((median_ns(&learner) / 2e6 - 1.0).abs() < 0.06, "{}", median_ns(&learner));
        let named = |learner: &Learner| {
            let resources = learner.seen().resources();
            resources.into_iter().filter(|one| one.name == capability::ResourceName::CommitLatency).count()
        };
        assert_eq!(named(&learner), 1);
        commit(&mut learner, 1_200, 8e-3);
        assert!((median_ns(&learner) / 8e6 - 1.0).abs() < 0.06, "{}", median_ns(&learner));
        assert_eq!(learner.seen().forgotten_unix_ns, None);
    }
}
