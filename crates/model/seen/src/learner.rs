use crate::reached::{Rates, Reached, keep};
use crate::saturation::{Saturated, find};
use crate::window::{Second, Window, Windows, push_bounded};
use crate::{Rest, Seen};
use std::collections::VecDeque;

/// Learns from seconds, one after the other.
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
}

/// Windows in a row for which a rate is held: the highest of many short ones is above what a storage gives by chance.
const HELD: usize = 3;
/// Windows in which a full resource is looked for: twenty minutes.
const RECENT: usize = 240;
/// Windows between two such searches.
const EVERY: usize = 12;
/// I/Os of a window behind a latency.
const IOS_MIN: f64 = 20.0;
/// Larger I/Os take longer, so that they say nothing of latency at rest.
const REST_BYTES_MAX: f64 = 65_536.0;
/// Outstanding I/Os at rest: one at a time.
const REST_OUTSTANDING: f64 = 1.1;
/// A figure that is this much off contradicts another one.
const CONTRADICTS: f64 = 1.15;
/// Resources with I/Os unlike that are kept.
const SATURATED_MAX: usize = 16;

impl Learner {
    /// Goes on from what was kept.
    pub fn new(seen: Seen) -> Learner {
        Learner { seen, ..Learner::default() }
    }

    /// What is known.
    pub fn seen(&self) -> &Seen {
        &self.seen
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
        }
    }

    fn reached(&mut self, reached: Reached) {
        // It gives more than when it was full.
        let refuted = |full: &Saturated| full.share(&reached.rates).is_some_and(|share| share > CONTRADICTS);
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
            ..Seen::default()
        };
    }
}

/// Adds the latencies of a window at rest. Returns whether one of them changed for good.
fn add_rests(seen: &mut Seen, window: &Window) -> bool {
    if window.outstanding() > REST_OUTSTANDING {
        return false;
    }
    let add = |rest: &mut Rest, side: &crate::Side| {
        let is_known = side.ios >= IOS_MIN && side.bytes_each() <= REST_BYTES_MAX;
        is_known && rest.add(side.served_s / side.ios * 1e9)
    };
    let reads = add(&mut seen.read_rest, &window.reads);
    add(&mut seen.write_rest, &window.writes) || reads
}
