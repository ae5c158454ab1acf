//! Output of `headroom log` for a store that a process has open, as text and as JSON.

use super::files_view::{held_by_pages, page_json};
use pagestore_counters::{CommitPart, CommitTimes, Counts, LOG_HEAD_BYTES, LogState, PartTimes, SlowCommit};
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::Duration;
use terminal::kept;

/// A store answers within milliseconds, unless its thread does not run any more.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// A store and the process that has it open.
#[derive(Clone, Debug)]
pub struct OpenStore {
    pub pid: u32,
    pub command: Option<String>,
    pub open_for: Duration,
    pub store: u128,
    pub epoch: u32,
    pub page_bytes: u64,
    pub log_sector_bytes: u64,
    pub vlf_bytes: u64,
}

/// The log of an open store, `age` ago.
#[derive(Clone, Debug)]
pub struct LiveLog {
    pub store: OpenStore,
    pub state: LogState,
    pub age: Duration,
}

impl OpenStore {
    fn describe(&self) -> String {
        let command = self.command.as_ref().map_or_else(String::new, |command| format!(" ({command})"));
        let (pid, open, epoch) = (self.pid, self.open_for.as_secs(), self.epoch);
        format!("open in process {pid}{command} for {open} s; times opened: {epoch}\n")
    }

    fn json(&self) -> Value {
        json!({
            "pid": self.pid,
            "command": self.command,
            "opened_ago_ns": self.open_for.as_nanos() as u64,
        })
    }

    fn slot_offset(&self, slot: usize) -> u64 {
        LOG_HEAD_BYTES + slot as u64 * self.vlf_bytes
    }

    /// `headroom log anatomy` without a commit: the times of all commits.
    pub fn anatomy_text(&self, times: &CommitTimes) -> String {
        let mut text = self.describe();
        let _ = writeln!(text, "commits acknowledged as durable: {}", times.commits());
        if times.commits() > 0 {
            text.push_str(
                "\npart              mean us    p50 us    p99 us longest us  share  what happens meanwhile\n",
            );
            for (part, own) in CommitPart::ALL.into_iter().zip(&times.parts) {
                let _ = writeln!(text, "{}  {}", row(part.name(), own, times), part.meaning());
            }
            let _ = writeln!(
                text,
                "{}  all of it, without the program's own time",
                row("whole", &times.whole, times)
            );
        }
        text.push_str(&slow_list(times));
        text
    }

    /// JSON of the times of commits.
    pub fn anatomy_json(&self, times: &CommitTimes) -> Value {
        let parts = CommitPart::ALL.into_iter().zip(&times.parts).map(|(part, own)| {
            let mut value = part_json(own, times);
            value["part"] = part.name().into();
            value
        });
        json!({
            "running": self.json(),
            "commits": times.commits(),
            "whole": part_json(&times.whole, times),
            "parts": parts.collect::<Value>(),
            "slow_from_ns": times.slow_from_ns,
            "slow": times.slow.iter().map(slow_json).collect::<Value>(),
        })
    }
}

impl LiveLog {
    /// Bytes of log that recovery would read.
    fn redo_bytes(&self) -> u64 {
        self.state.redo.bytes_to(self.state.next, self.store.vlf_bytes)
    }

    /// Warnings about the state.
    fn doubts(&self) -> String {
        let mut text = String::new();
        if self.state.read_only {
            text.push_str("READ-ONLY: an I/O failed, nothing is written any more\n");
        }
        if self.age >= PATIENCE {
            let _ = writeln!(text, "it does not answer: this is how it was {} s ago", self.age.as_secs());
        }
        text
    }

    /// `headroom log info`.
    pub fn info_text(&self, counts: &Counts) -> String {
        let LiveLog { store, state, .. } = self;
        let mut text = format!(
            "store {:032x}, pages of {} bytes, log blocks of multiples of {}\n{}{}\
             redo from {}, durable up to {}, next record {}\nlast commit {}, durable {}\n\
             to redo after a crash: {} pages, {} bytes of log\n\
             since it was opened: {} commits, {} log writes of {} bytes, {} checkpoints, {} page writes\n\n\
             slot       offset        size    vlf  status  parity\n",
            store.store,
            store.page_bytes,
            store.log_sector_bytes,
            store.describe(),
            self.doubts(),
            state.redo,
            state.durable,
            state.next,
            state.last_sequence,
            state.durable_sequence,
            state.dirty_pages,
            self.redo_bytes(),
            counts.commits,
            counts.log_writes,
            counts.log_write_bytes,
            counts.checkpoints,
            counts.page_writes,
        );
        for (slot, vlf) in state.vlfs.iter().enumerate() {
            let offset = store.slot_offset(slot);
            let _ = writeln!(
                text,
                "{slot:4} {offset:12} {:11} {:6} {:7} {:7}",
                store.vlf_bytes, vlf.vlf, vlf.status, vlf.parity
            );
        }
        text.push_str("what is in each of them: --files\n");
        let unlisted = state.vlfs_total.saturating_sub(state.vlfs.len() as u64);
        if unlisted > 0 {
            let _ = writeln!(text, "and {unlisted} more: --files lists them");
        }
        text
    }

    /// JSON of the log's state; null stands for figures that only the files hold.
    pub fn info_json(&self, counts: &Counts) -> Value {
        let LiveLog { store, state, .. } = self;
        let vlfs = state.vlfs.iter().enumerate().map(|(slot, vlf)| {
            json!({
                "slot": slot,
                "offset": store.slot_offset(slot),
                "bytes": store.vlf_bytes,
                "vlf": vlf.vlf,
                "status": vlf.status,
                "parity": vlf.parity,
                "created_lsn": null,
                "blocks": null,
                "used_bytes": null,
                "index_entries": null,
            })
        });
        json!({
            "running": store.json(),
            "store": format!("{:032x}", store.store),
            "page_bytes": store.page_bytes,
            "log_sector_bytes": store.log_sector_bytes,
            "epoch": store.epoch,
            "clean": false,
            "redo_lsn": state.redo.to_string(),
            "last_lsn": state.durable.to_string(),
            "next_lsn": state.next.to_string(),
            "last_commit": state.last_sequence,
            "durable_commit": state.durable_sequence,
            "commits_to_redo": null,
            "pages_to_redo": state.dirty_pages,
            "bytes_to_redo": self.redo_bytes(),
            "waiting_bytes": state.waiting_bytes,
            "read_only": state.read_only,
            "commits": counts.commits,
            "log_writes": counts.log_writes,
            "log_write_bytes": counts.log_write_bytes,
            "log_write_ns": counts.log_write_ns,
            "checkpoints": counts.checkpoints,
            "page_writes": counts.page_writes,
            "vlfs": vlfs.collect::<Value>(),
        })
    }

    fn active_vlfs(&self) -> usize {
        self.state.vlfs.iter().filter(|vlf| vlf.status == 2).count()
    }

    /// `headroom log why`.
    pub fn why_text(&self) -> String {
        let LiveLog { store, state, .. } = self;
        let active = self.active_vlfs();
        let mut text = format!(
            "{}{}virtual log files that are needed: {active}, from {} to {}, {} bytes\n",
            store.describe(),
            self.doubts(),
            state.redo,
            state.next,
            self.redo_bytes()
        );
        if let Some((tx, lsn)) = state.active {
            let _ =
                writeln!(text, "held by transaction {tx}, which has not ended: its first record is {lsn}");
        }
        text.push_str(&held_by_pages(state.dirty_pages, state.oldest_dirty_page));
        if state.checkpointing {
            text.push_str("a checkpoint is running\n");
        }
        match state.last_certificate {
            Some(certificate) => {
                let _ = writeln!(text, "the last checkpoint: {certificate}");
            }
            None => text.push_str("no checkpoint has ended since it was opened\n"),
        }
        text
    }

    /// JSON of the holders of the log.
    pub fn why_json(&self) -> Value {
        let LiveLog { store, state, .. } = self;
        json!({
            "running": store.json(),
            "redo_lsn": state.redo.to_string(),
            "last_lsn": state.durable.to_string(),
            "next_lsn": state.next.to_string(),
            "active_vlfs": self.active_vlfs(),
            "bytes_to_redo": self.redo_bytes(),
            "pages": state.dirty_pages,
            "oldest_page": state.oldest_dirty_page.map(page_json),
            "open_transaction": state.active
                .map(|(tx, lsn)| json!({"tx": tx, "lsn": lsn.to_string(), "records": null})),
            "checkpointing": state.checkpointing,
            "read_only": state.read_only,
            "last_checkpoint": state.last_certificate.map(|checkpoint| {
                json!({
                    "redo_lsn": checkpoint.redo.to_string(),
                    "pages": checkpoint.pages,
                    "generation": checkpoint.generation,
                })
            }),
            "last_checkpoint_lsn": null,
        })
    }
}

fn us(ns: f64) -> String {
    format!("{:.1}", ns / 1000.0)
}

fn row(name: &str, own: &PartTimes, times: &CommitTimes) -> String {
    let percentile = |percent: f64| own.latencies.percentile_ns(percent).map_or_else(String::new, us);
    format!(
        "{name:14} {:>10} {:>9} {:>9} {:>10} {:>4.0} %",
        us(own.sum_ns as f64 / times.commits() as f64),
        percentile(50.0),
        percentile(99.0),
        us(own.longest_ns as f64),
        100.0 * own.sum_ns as f64 / times.whole.sum_ns.max(1) as f64
    )
}

fn part_json(own: &PartTimes, times: &CommitTimes) -> Value {
    let count = times.commits();
    json!({
        "sum_ns": own.sum_ns,
        "mean_ns": (count > 0).then(|| own.sum_ns as f64 / count as f64),
        "p50_ns": own.latencies.percentile_ns(50.0),
        "p99_ns": own.latencies.percentile_ns(99.0),
        "longest_ns": own.longest_ns,
    })
}

fn slow_list(times: &CommitTimes) -> String {
    let from = us(times.slow_from_ns as f64);
    if times.slow.is_empty() {
        return format!("\nnone of them took {from} us or longer\n");
    }
    let rows: String = times.slow.iter().map(slow_row).collect();
    format!("\nthe last that took long (from {from} us, as of now), us:\n{}{rows}", slow_header())
}

fn slow_header() -> String {
    let parts: String = CommitPart::ALL.iter().map(|part| format!(" {:>12}", part.name())).collect();
    format!("    commit      whole{parts}  at\n")
}

fn slow_row(slow: &SlowCommit) -> String {
    let parts: String = slow.parts_ns.iter().map(|ns| format!(" {:>12}", us(*ns as f64))).collect();
    let (whole, at) = (us(slow.whole_ns() as f64), kept::format_time(slow.at_unix_ns));
    format!("{:10} {whole:>10}{parts}  {at}\n", slow.sequence)
}

/// The times of a slow commit.
pub fn slow_text(slow: &SlowCommit) -> String {
    format!("\nit took long, us:\n{}{}", slow_header(), slow_row(slow))
}

/// JSON of a slow commit.
pub fn slow_json(slow: &SlowCommit) -> Value {
    let mut value =
        json!({"commit": slow.sequence, "at_unix_ns": slow.at_unix_ns, "whole_ns": slow.whole_ns()});
    for (part, ns) in CommitPart::ALL.into_iter().zip(slow.parts_ns) {
        value[format!("{}_ns", part.name())] = ns.into();
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagestore_counters::{Lsn, PageNo, VlfState};

    fn log() -> LiveLog {
        let vlf = |vlf, status| VlfState { vlf, status, parity: 64 };
        LiveLog {
            store: OpenStore {
                pid: 812,
                command: Some("shop".into()),
                open_for: Duration::from_secs(7),
                store: 0xab,
                epoch: 3,
                page_bytes: 4096,
                log_sector_bytes: 4096,
                vlf_bytes: 1 << 20,
            },
            state: LogState {
                last_sequence: 9,
                dirty_pages: 2,
                oldest_dirty_page: Some((PageNo(5), Lsn::default())),
                active: Some((11, Lsn::default())),
                vlfs_total: 3,
                vlfs: vec![vlf(1, 0), vlf(2, 2)],
                ..LogState::default()
            },
            age: Duration::ZERO,
        }
    }

    #[test]
    fn text_and_json_of_an_open_log_have_the_same_content() {
        let counts = Counts { commits: 9, log_writes: 4, ..Counts::default() };
        let (text, json) = (log().info_text(&counts), log().info_json(&counts));
        assert!(text.contains("open in process 812 (shop) for 7 s; times opened: 3\n"), "{text}");
        assert!(text.contains("since it was opened: 9 commits, 4 log writes"), "{text}");
        assert!(text.ends_with("and 1 more: --files lists them\n"), "{text}");
        assert_eq!((&json["running"]["pid"], &json["log_writes"]), (&812.into(), &4.into()));
        assert_eq!(json["vlfs"][1]["offset"], LOG_HEAD_BYTES + (1 << 20));
        assert_eq!(json["vlfs"][1]["blocks"], Value::Null);
    }

    #[test]
    fn what_holds_the_log_is_the_open_transaction_and_the_oldest_page() {
        let (text, json) = (log().why_text(), log().why_json());
        assert!(text.contains("virtual log files that are needed: 1, from"), "{text}");
        assert!(text.contains("held by transaction 11, which has not ended"), "{text}");
        assert!(text.contains("held by 2 pages that only the log has; page 5 longest"), "{text}");
        assert_eq!((&json["active_vlfs"], &json["open_transaction"]["tx"]), (&1.into(), &11.into()));
        assert_eq!((&json["oldest_page"]["page"], &json["last_checkpoint"]), (&5.into(), &Value::Null));
    }

    #[test]
    fn a_store_that_does_not_answer_or_cannot_write_is_reported_first() {
        let mut log = log();
        log.age = Duration::from_secs(4);
        log.state.read_only = true;
        let text = log.why_text();
        let lines: Vec<&str> = text.lines().skip(1).take(2).collect();
        assert_eq!(
            lines,
            [
                "READ-ONLY: an I/O failed, nothing is written any more",
                "it does not answer: this is how it was 4 s ago"
            ]
        );
    }

    #[test]
    fn without_commits_there_are_no_times() {
        let (store, times) = (log().store, CommitTimes::default());
        assert!(store.anatomy_text(&times).contains("commits acknowledged as durable: 0\n\nnone of them"));
        assert_eq!(store.anatomy_json(&times)["whole"]["mean_ns"], Value::Null);
    }
}
