//! The files, waits and users of the newest window: reduced only while someone looks at them.

use crate::answer::short;
use filestats::{Delta, FileIdentity, Interval, LatencyBuckets, WaitInterval};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use verdict::{Moment, Neighbour, Observation};

/// Details beside the verdict of a database on a volume.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// When the window ended, nanoseconds since 1970.
    ended_unix_ns: u64,
    files: Vec<FileDetail>,
    waits: Vec<WaitInterval>,
    users: Vec<Neighbour>,
    /// Known time of the window, seconds.
    seconds: f64,
}

/// One file over the window.
#[derive(Clone, Debug)]
struct FileDetail {
    file: Arc<FileIdentity>,
    sum: Option<Delta>,
    /// Mean I/Os outstanding of the newest moments, the newest last.
    trail: Vec<Option<f64>>,
    /// Nanoseconds of the window of which nothing is known of it.
    unknown_ns: u64,
}

/// Moments of a sparkline.
const TRAIL: usize = 60;
/// Files whose latencies are in the list, the busiest; those of another are in the answer to `path=`.
const HISTOGRAMS_MAX: usize = 200;

impl Details {
    /// Of what was observed and waited for.
    pub fn new(observation: &Observation, waits: &[WaitInterval]) -> Details {
        let known_ns: u64 = observation.moments.iter().filter_map(elapsed_ns).sum();
        let mut files = files(&observation.moments);
        files.sort_by(|a, b| {
            b.waited(known_ns)
                .total_cmp(&a.waited(known_ns))
                .then_with(|| b.operations().cmp(&a.operations()))
        });
        Details {
            ended_unix_ns: observation.ended_unix_ns(),
            files,
            waits: waits.to_vec(),
            users: observation.neighbours.clone(),
            seconds: known_ns as f64 / 1e9,
        }
    }

    /// `/api/v1/files`; with a path, that file alone.
    pub(crate) fn files_json(&self, path: Option<&str>) -> Value {
        let chosen = self.files.iter().enumerate();
        let chosen = chosen.filter(|(_, file)| path.is_none_or(|path| file.file.path == path));
        let with_histogram = |at: usize| path.is_some() || at < HISTOGRAMS_MAX;
        let files: Vec<Value> =
            chosen.map(|(at, file)| file.json(self.seconds, with_histogram(at))).collect();
        json!({ "judged_unix_ns": self.ended_unix_ns, "total_files": self.files.len(), "files": files })
    }

    /// `/api/v1/waits`.
    pub(crate) fn waits_json(&self) -> Value {
        let known = self.waits.iter().filter_map(|wait| {
            let sessions = wait.interval.known()?.sessions().known().filter(|sessions| *sessions > 0.0)?;
            Some((sessions, wait))
        });
        let mut known: Vec<(f64, &WaitInterval)> = known.collect();
        known.sort_by(|a, b| b.0.total_cmp(&a.0));
        let one = |(sessions, wait): &(f64, &WaitInterval)| {
            json!({
                "name": wait.event, "class": wait.class, "sessions": short(Some(*sessions)), "what": wait.class.implies(),
            })
        };
        json!({ "judged_unix_ns": self.ended_unix_ns, "waits": known.iter().map(one).collect::<Vec<_>>() })
    }

    /// The programs that use the storage beside the database.
    pub(crate) fn users_json(&self) -> Vec<Value> {
        let one = |user: &Neighbour| {
            let ios = user.operations.filter(|_| self.seconds > 0.0);
            json!({
                "program": user.command,
                "pid": user.pid,
                "device": user.device,
                "ios_per_second": short(ios.map(|ios| ios as f64 / self.seconds)),
                "bytes_per_second": short((self.seconds > 0.0).then(|| user.bytes as f64 / self.seconds)),
                "share": short(Some(user.part_of(None))),
            })
        };
        self.users.iter().map(one).collect()
    }
}

fn elapsed_ns(moment: &Moment) -> Option<u64> {
    moment.files.iter().find_map(|file| file.interval.known()).map(|delta| delta.elapsed_ns)
}

/// A row for each file of the moments. One that is not in a moment of which something is known did nothing in it: unused files are
/// left out of moments.
fn files(moments: &[Moment]) -> Vec<FileDetail> {
    let trail_from = moments.len().saturating_sub(TRAIL);
    let mut rows: Vec<FileDetail> = Vec::new();
    let mut numbers: HashMap<(&str, &str), usize> = HashMap::new();
    for (at, moment) in moments.iter().enumerate() {
        for file in &moment.files {
            let number = *numbers.entry(file.file.key()).or_insert_with(|| {
                let trail =
                    moments[trail_from..].iter().map(|moment| elapsed_ns(moment).map(|_| 0.0)).collect();
                rows.push(FileDetail { file: file.file.clone(), sum: None, trail, unknown_ns: 0 });
                rows.len() - 1
            });
            let row = &mut rows[number];
            let outstanding = match &file.interval {
                Interval::Known(delta) => {
                    row.sum = Some(match row.sum.take() {
                        Some(sum) => sum.followed_by(delta),
                        None => delta.clone(),
                    });
                    delta.outstanding().known()
                }
                Interval::Unknown(_) => {
                    row.unknown_ns = row.unknown_ns.saturating_add(elapsed_ns(moment).unwrap_or(0));
                    None
                }
            };
            if let Some(at) = at.checked_sub(trail_from) {
                row.trail[at] = outstanding;
            }
        }
    }
    rows
}

impl FileDetail {
    fn waited(&self, known_ns: u64) -> f64 {
        let stall_ns = self.sum.as_ref().and_then(|sum| sum.counters.stall_ns().known());
        stall_ns.map_or(0.0, |ns| ns as f64 / known_ns.saturating_sub(self.unknown_ns).max(1) as f64)
    }

    fn operations(&self) -> u64 {
        self.sum.as_ref().map_or(0, |sum| sum.counters.operations())
    }

    fn json(&self, seconds: f64, with_histogram: bool) -> Value {
        let seconds = seconds - self.unknown_ns as f64 / 1e9;
        let sum = self.sum.as_ref().filter(|_| seconds > 0.0);
        let per_second = |of: fn(&Delta) -> u64| short(sum.map(|sum| of(sum) as f64 / seconds));
        let stall_ns = sum.and_then(|sum| sum.counters.stall_ns().known());
        let latency = |of: fn(&Delta) -> filestats::Figure<f64>| short(sum.and_then(|sum| of(sum).known()));
        let trail: Vec<Option<f64>> = self.trail.iter().map(|value| short(*value)).collect();
        let missing = TRAIL.saturating_sub(trail.len());
        let trail: Vec<Option<f64>> = std::iter::repeat_n(None, missing).chain(trail).collect();
        json!({
            "path": self.file.path,
            "database": self.file.database,
            "object": self.file.object,
            "kind": self.file.kind,
            "waited_share": short(stall_ns.map(|ns| ns as f64 / 1e9 / seconds)),
            "reads_per_second": per_second(|sum| sum.counters.read.count),
            "writes_per_second": per_second(|sum| sum.counters.write.count),
            "read_bytes_per_second": per_second(|sum| sum.counters.read.bytes),
            "written_bytes_per_second": per_second(|sum| sum.counters.write.bytes),
            "read_latency_ns": latency(Delta::read_latency_ns),
            "write_latency_ns": latency(Delta::write_latency_ns),
            "trail": trail,
            "histogram": sum.filter(|_| with_histogram).and_then(histogram),
        })
    }
}

/// The latencies of reads and writes; `None` where the source keeps none.
fn histogram(sum: &Delta) -> Option<Value> {
    let latencies = sum.latencies.as_ref()?;
    let mut buckets: std::collections::BTreeMap<usize, (u64, u64)> = std::collections::BTreeMap::new();
    latencies.read.filled().for_each(|(at, count)| buckets.entry(at).or_default().0 = count);
    latencies.write.filled().for_each(|(at, count)| buckets.entry(at).or_default().1 = count);
    let one = |(at, (reads, writes)): (usize, (u64, u64))| json!({ "upper_ns": LatencyBuckets::lower_ns(at + 1), "reads": reads, "writes": writes });
    Some(buckets.into_iter().map(one).collect())
}
