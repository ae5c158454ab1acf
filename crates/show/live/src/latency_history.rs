//! The latency of each file in the past intervals, and its usual value.

use report::WatchedInterval;
use std::collections::{HashMap, VecDeque};

/// The number of intervals kept of a file.
const KEPT: usize = 120;
/// The number of intervals from which a usual value is known.
const USUAL_MIN: usize = 5;

/// The latencies of all files, interval by interval.
#[derive(Default)]
pub(crate) struct LatencyHistory(HashMap<(String, String), VecDeque<Option<f64>>>);

impl LatencyHistory {
    /// Adds an interval.
    pub fn add(&mut self, glance: &WatchedInterval) {
        for file in &glance.files {
            let key = (file.row.file.instance.clone(), file.row.file.path.clone());
            let past = self.0.entry(key).or_default();
            past.push_back(file.latency_ns());
            if past.len() > KEPT {
                past.pop_front();
            }
        }
    }

    /// The median latency of a file before the last interval, in nanoseconds.
    pub fn usual_ns(&self, instance: &str, path: &str) -> Option<f64> {
        let past = self.past(instance, path)?;
        let before = past.iter().take(past.len().saturating_sub(1));
        let mut known: Vec<f64> = before.copied().flatten().collect();
        if known.len() < USUAL_MIN {
            return None;
        }
        known.sort_by(f64::total_cmp);
        Some(known[known.len() / 2])
    }

    /// The last intervals as a line of bars; the highest bar has full height.
    pub fn sparkline(&self, instance: &str, path: &str, columns: usize) -> String {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let Some(past) = self.past(instance, path) else { return String::new() };
        let shown: Vec<Option<f64>> = past.iter().skip(past.len().saturating_sub(columns)).copied().collect();
        let highest = shown.iter().flatten().copied().fold(0.0, f64::max);
        let bar = |latency: &Option<f64>| match latency {
            Some(ns) if highest > 0.0 => BARS[((ns / highest * 8.0).ceil() as usize).clamp(1, 8) - 1],
            _ => ' ',
        };
        shown.iter().map(bar).collect()
    }

    fn past(&self, instance: &str, path: &str) -> Option<&VecDeque<Option<f64>>> {
        self.0.get(&(instance.to_owned(), path.to_owned()))
    }
}
