//! Claims of the agent in its log, and the conditions that must hold for them.

use programs::Headroom;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// The lines of a log, and when they came.
pub type Log = Arc<Mutex<Vec<(Instant, String)>>>;

/// Incidents that were reported as closed, of the history that is in use.
#[derive(Default)]
pub struct Claims {
    /// By their numbers.
    closed: BTreeSet<i64>,
    /// Reported while the history could not be written, so that they had no number yet.
    unnumbered: usize,
    /// In all histories.
    pub closed_in_all: usize,
    /// When the load justified an incident.
    pub justified: Vec<(Instant, Instant)>,
}

/// An incident as a line reports it.
struct Reported<'l> {
    number: Option<i64>,
    what: &'l str,
}

/// `2026-01-01 00:00:00 incident 7 closed: DATABASE on MOUNT, VERDICT: SUMMARY`; the number is missing where nothing is kept.
fn parse(line: &str) -> Option<Reported<'_>> {
    let text = line.splitn(3, ' ').nth(2)?.strip_prefix("incident ")?;
    let head = text.split_once(": ")?.0;
    match head.split_once(' ') {
        Some((number, what)) if number.parse::<i64>().is_ok() => {
            Some(Reported { number: number.parse().ok(), what })
        }
        _ => Some(Reported { number: None, what: head }),
    }
}

impl Claims {
    /// Reads the lines of an agent that is over.
    pub fn read(&mut self, log: &Log) {
        for (at, line) in log.lock().unwrap().iter() {
            let Some(Reported { number, what }) = parse(line) else { continue };
            match what {
                "opened" | "came again" => {
                    let is_justified = self.justified.iter().any(|(from, to)| (from..=to).contains(&at));
                    assert!(is_justified, "no load justifies it: {line}");
                }
                "closed" => {
                    self.closed_in_all += 1;
                    match number {
                        Some(number) => _ = self.closed.insert(number),
                        None => self.unnumbered += 1,
                    }
                }
                other => assert_eq!(other, "changed", "{line}"),
            }
        }
    }

    /// The agent was killed while nothing could be written: what it had reported since then is lost.
    pub fn forget_unnumbered(&mut self) {
        self.unnumbered = 0;
    }

    /// Another history is in use.
    pub fn begin_again(&mut self) {
        self.closed.clear();
        self.unnumbered = 0;
    }

    /// Each incident that was reported as closed is kept. No agent runs.
    pub fn check(&self, headroom: &Headroom) {
        let listed = headroom.json(&["history", "incidents", "--count", "10000"]);
        let listed = listed["incidents"].as_array().expect("a list of incidents");
        let number = |one: &Value| one["id"].as_i64().unwrap();
        let kept: BTreeSet<i64> = listed.iter().map(number).collect();
        let lost: Vec<_> = self.closed.difference(&kept).collect();
        assert!(lost.is_empty(), "reported as closed, and lost: {lost:?} of {listed:#?}");
        let is_over = |one: &&Value| one["ended_unix_ns"].is_u64();
        let over = listed.iter().filter(is_over).count();
        assert!(
            over >= self.closed.len().min(kept.len()) + self.unnumbered - self.reopened(listed),
            "{listed:#?}"
        );
    }

    /// Bursts that came again after they were reported as closed.
    fn reopened(&self, listed: &[Value]) -> usize {
        let is_open = |one: &&Value| one["ended_unix_ns"].is_null();
        listed.iter().filter(is_open).filter(|one| self.closed.contains(&one["id"].as_i64().unwrap())).count()
    }
}
