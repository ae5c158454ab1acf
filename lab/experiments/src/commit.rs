//! Rows inserted in batches: the log writes, syncs and time of each commit.

use crate::{IoFigures, counted, rounded};
use filestats::Figure;
use serde::{Deserialize, Serialize};
use workload::{format_bytes, format_ns};

/// When a commit is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// When the log is on the storage.
    #[default]
    Full,
    /// Before that; it becomes durable a moment later.
    Delayed,
}

/// One engine inserted all rows with one batch size.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitResult {
    /// "sqlite-wal", "postgres".
    pub engine: String,
    /// Durability of each commit.
    pub durability: Durability,
    /// Rows a commit, the last of which may have fewer.
    pub batch: u64,
    /// Rows inserted.
    pub rows: u64,
    /// Commits.
    pub commits: u64,
    /// From before the first row until the last commit was acknowledged.
    pub seconds: f64,
    /// I/O of the log, until all was durable.
    pub log: IoFigures,
    /// I/O of the data files in that time.
    pub data: IoFigures,
    /// Whether each commit waits for the data files too, as with a rollback journal, or only for them, without a log.
    /// Otherwise they are written in the background.
    pub waits_for_data: bool,
}

/// All of one experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitStudy {
    /// Where the engines' files lay.
    pub dir: String,
    /// Rows of each step.
    pub rows: u64,
    /// In the order in which they were measured.
    pub results: Vec<CommitResult>,
    /// Notes for reading the results.
    pub notes: Vec<String>,
}

impl CommitResult {
    /// Rows a second.
    pub fn rows_per_s(&self) -> f64 {
        self.rows as f64 / self.seconds.max(1e-9)
    }

    /// Mean time of a commit with its rows, nanoseconds.
    pub fn commit_ns(&self) -> f64 {
        self.seconds * 1e9 / self.commits.max(1) as f64
    }

    /// Log writes a commit.
    pub fn log_writes_per_commit(&self) -> Figure<f64> {
        self.log.writes.map(|writes| writes as f64 / self.commits.max(1) as f64)
    }

    /// Syncs of the log and of data files.
    pub fn syncs(&self) -> Figure<u64> {
        self.log.syncs.zip(self.data.syncs, u64::saturating_add)
    }

    /// Share of the time spent in writes and syncs of the log, and of the data where a commit waits for those too. It is
    /// capped at 1: other threads than the committer may write as well.
    pub fn wait_share(&self) -> Figure<f64> {
        let wait_ns = match self.waits_for_data {
            true => self.log.wait_ns.zip(self.data.wait_ns, u64::saturating_add),
            false => self.log.wait_ns,
        };
        wait_ns.map(|ns| (ns as f64 / 1e9 / self.seconds.max(1e-9)).min(1.0))
    }

    /// "sqlite-wal", "sqlite-wal, delayed".
    pub fn name(&self) -> String {
        match self.durability {
            Durability::Full => self.engine.clone(),
            Durability::Delayed => format!("{}, delayed", self.engine),
        }
    }

    /// "15,000 commits wait for 15,000 log writes of 4 KiB and 15,000 syncs: 97 % of 60 s is the wait for the log".
    fn sentence(&self) -> String {
        let commits = counted(self.commits, "commit", "commits");
        let seconds = format_ns(self.seconds * 1e9);
        let (Figure::Known(writes), Figure::Known(syncs)) = (self.log.writes, self.log.syncs) else {
            return format!("{commits} took {seconds}; the log writes were not counted");
        };
        let (wait, wait_for) = match self.durability {
            Durability::Full => (if self.commits == 1 { "waits for" } else { "wait for" }, "the wait for"),
            Durability::Delayed => (if self.commits == 1 { "makes" } else { "make" }, "spent on"),
        };
        let (data_writes, data_syncs) = (self.data.writes.known(), self.data.syncs.known());
        let data = |writes, size: &str, syncs| {
            let (writes, syncs) = (counted(writes, "write", "writes"), counted(syncs, "sync", "syncs"));
            format!("{writes}{size} and {syncs} of the data")
        };
        // Without a log a commit waits only for the data.
        let (mut text, which) = match (self.waits_for_data, data_writes, data_syncs) {
            (true, Some(data_writes), Some(data_syncs)) if writes == 0 && syncs == 0 => {
                let data = data(data_writes, &size_of(self.data), data_syncs);
                (format!("{commits} {wait} {data}"), "the data")
            }
            (waits_for_data, data_writes, data_syncs) => {
                let log = counted(writes, "log write", "log writes");
                let size = size_of(self.log);
                let mut text =
                    format!("{commits} {wait} {log}{size} and {}", counted(syncs, "sync", "syncs"));
                if let (true, Some(writes), Some(syncs)) = (waits_for_data, data_writes, data_syncs) {
                    text.push_str(&format!(", {}", data(writes, "", syncs)));
                }
                (text, if waits_for_data { "log and data" } else { "the log" })
            }
        };
        match self.wait_share() {
            Figure::Known(share) => {
                let percent = match share * 100.0 {
                    percent if percent < 1.0 => "under 1 %".into(),
                    percent => format!("{percent:.0} %"),
                };
                text.push_str(&format!(": {percent} of {seconds} is {wait_for} {which}"));
            }
            Figure::Unknown { .. } => text.push_str(&format!(": {seconds}")),
        }
        text
    }
}

impl CommitStudy {
    /// A sentence for each engine, which compares the most commits with the fewest.
    pub fn sentences(&self) -> Vec<String> {
        let mut names: Vec<(String, Vec<&CommitResult>)> = Vec::new();
        for result in &self.results {
            match names.iter_mut().find(|(name, _)| *name == result.name()) {
                Some((_, results)) => results.push(result),
                None => names.push((result.name(), vec![result])),
            }
        }
        let sentence = |(name, results): &(String, Vec<&CommitResult>)| {
            let most = results.iter().max_by_key(|result| result.commits)?;
            let fewest = results.iter().min_by_key(|result| result.commits)?;
            let mut text = format!("{name}: {}.", most.sentence());
            if fewest.commits < most.commits {
                let against = match most.seconds / fewest.seconds.max(1e-9) {
                    times if times >= 1.05 => format!("{} times as fast", rounded(times)),
                    times if times <= 0.95 => format!("{} times as slow", rounded(1.0 / times)),
                    _ => "as fast".into(),
                };
                text.push_str(&format!(" For the same rows {}. That is {against}.", fewest.sentence()));
            }
            Some(text)
        };
        names.iter().filter_map(sentence).collect()
    }
}

/// " of 4 KiB".
fn size_of(io: IoFigures) -> String {
    let size = io.write_bytes_mean().known();
    size.map_or(String::new(), |bytes| format!(" of {}", format_bytes(bytes.round() as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestats::Reason;

    fn io(writes: u64, write_bytes: u64, syncs: u64, wait_s: f64) -> IoFigures {
        IoFigures {
            writes: Figure::Known(writes),
            write_bytes: Figure::Known(write_bytes),
            syncs: Figure::Known(syncs),
            wait_ns: Figure::Known((wait_s * 1e9) as u64),
        }
    }

    fn result(batch: u64, seconds: f64, log: IoFigures, data: IoFigures) -> CommitResult {
        let (engine, durability) = ("engine".to_owned(), Durability::Full);
        CommitResult {
            engine,
            durability,
            batch,
            rows: 15_000,
            commits: 15_000_u64.div_ceil(batch),
            seconds,
            log,
            data,
            waits_for_data: false,
        }
    }

    fn study(results: Vec<CommitResult>) -> CommitStudy {
        CommitStudy { dir: "/data".into(), rows: 15_000, results, notes: Vec::new() }
    }

    /// The study of 2017: 15,000 log writes of 4,096 bytes in 60 s against 29 of 61,440 in under a second.
    #[test]
    fn a_study_is_one_sentence() {
        let none = io(0, 0, 0, 0.0);
        let each = result(1, 60.0, io(15_000, 15_000 * 4_096, 15_000, 58.2), none);
        let all = result(15_000, 0.6, io(29, 29 * 61_440, 29, 0.12), none);
        assert_eq!(
            study(vec![each, all]).sentences(),
            [
                "engine: 15,000 commits wait for 15,000 log writes of 4 KiB and 15,000 syncs: 97 % of 60.0 s is the \
                 wait for the log. For the same rows 1 commit waits for 29 log writes of 60 KiB and 29 syncs: 20 % of \
                 600 ms is the wait for the log. That is 100 times as fast."
            ]
        );
    }

    #[test]
    fn a_rollback_journal_waits_for_the_data_too() {
        let result = result(1, 10.0, io(45_000, 1, 15_000, 4.0), io(30_000, 1, 15_000, 5.0));
        assert_eq!(result.wait_share(), Figure::Known(0.4), "written in the background");
        let result = CommitResult { waits_for_data: true, ..result };
        assert_eq!(result.wait_share(), Figure::Known(0.9));
        assert_eq!(result.syncs(), Figure::Known(30_000));
        assert!(study(vec![result]).sentences()[0].contains("90 % of 10.0 s is the wait for log and data"));
    }

    #[test]
    fn an_engine_without_a_log_waits_for_its_data_alone() {
        let result = result(1, 10.0, io(0, 0, 0, 0.0), io(30_000, 30_000 * 4_096, 15_000, 9.0));
        let result = CommitResult { waits_for_data: true, ..result };
        assert_eq!(
            study(vec![result]).sentences(),
            [
                "engine: 15,000 commits wait for 30,000 writes of 4 KiB and 15,000 syncs of the data: 90 % of 10.0 s is the \
                 wait for the data."
            ]
        );
    }

    #[test]
    fn uncounted_writes_are_reported_as_such_and_have_no_share() {
        let unknown = IoFigures::unknown(Reason::NotCounted);
        let result = result(1, 10.0, unknown, unknown);
        assert_eq!(result.wait_share(), Figure::unknown(Reason::NotCounted));
        assert_eq!(
            study(vec![result]).sentences(),
            ["engine: 15,000 commits took 10.0 s; the log writes were not counted."]
        );
    }

    #[test]
    fn several_writers_never_exceed_the_whole_time() {
        let result = result(1, 1.0, io(10, 10, 10, 1.7), io(0, 0, 0, 0.0));
        assert_eq!(result.wait_share(), Figure::Known(1.0));
    }
}
