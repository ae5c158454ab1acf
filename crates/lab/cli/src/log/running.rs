//! What a running store says of its log and its commits through its counters.

use pagestore_counters::{CommitPart, CommitTimes, Counts, LogState, PartTimes, Reader, SlowCommit};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;
use terminal::{Failure, kept};

/// A store answers within milliseconds; one whose thread does not run any more, never.
const PATIENCE: Duration = Duration::from_secs(1);

/// A store that a process has open.
pub struct Running {
    counters: Reader,
}

impl Running {
    /// `None` where nobody has it open, or its counters are not for us to read: the files tell, then.
    pub fn find(directory: &Path) -> Option<Running> {
        Reader::open(directory).ok().map(|counters| Running { counters })
    }

    fn state(&self) -> Result<LogState, Failure> {
        self.counters.log_state(PATIENCE).ok_or_else(|| {
            Failure::new(format!(
                "process {} has not said what its log is like",
                self.counters.owner().process.pid
            ))
            .with_remedy("read the files with --files")
        })
    }

    fn counts(&self) -> Result<Counts, Failure> {
        self.counters.counts().ok_or_else(cut)
    }

    fn times(&self) -> Result<CommitTimes, Failure> {
        self.counters.commit_times().ok_or_else(cut)
    }

    fn head(&self) -> String {
        let owner = self.counters.owner();
        let command = owner.process.command().map_or_else(String::new, |command| format!(" ({command})"));
        let open = owner.open_for().as_secs();
        format!(
            "open in process {}{command} for {open} s; times opened: {}\n",
            owner.process.pid, owner.epoch
        )
    }

    fn json(&self) -> Value {
        let owner = self.counters.owner();
        json!({
            "pid": owner.process.pid,
            "command": owner.process.command(),
            "opened_ago_ns": owner.open_for().as_nanos() as u64,
        })
    }

    /// `headroom log info`: text and JSON.
    pub fn info(&self) -> Result<(String, Value), Failure> {
        let (state, counts) = (self.state()?, self.counts()?);
        let owner = self.counters.owner();
        let mut text = format!(
            "store {:032x}, pages of {} bytes, log blocks of multiples of {}\n{}{}\
             redo from {}, durable up to {}, next record {}\nlast commit {}, durable {}\n\
             to redo after a crash: {} pages, {} bytes of log\n\
             since it was opened: {} commits, {} log writes of {} bytes, {} checkpoints, {} page writes\n\n\
             slot       offset        size    vlf  status  parity\n",
            owner.store,
            owner.page_bytes,
            owner.log_sector_bytes,
            self.head(),
            doubts(&state),
            state.redo,
            state.durable,
            state.next,
            state.last_sequence,
            state.durable_sequence,
            state.dirty_pages,
            self.redo_bytes(&state),
            counts.commits,
            counts.log_writes,
            counts.log_write_bytes,
            counts.checkpoints,
            counts.page_writes,
        );
        for (slot, vlf) in state.vlfs.iter().enumerate() {
            let offset = owner.slot_offset(slot);
            let _ = writeln!(
                text,
                "{slot:4} {offset:12} {:11} {:6} {:7} {:7}",
                owner.vlf_bytes, vlf.vlf, vlf.status, vlf.parity
            );
        }
        text.push_str("what is in each of them: --files\n");
        let unlisted = state.vlfs_total.saturating_sub(state.vlfs.len() as u64);
        if unlisted > 0 {
            let _ = writeln!(text, "and {unlisted} more: --files lists them");
        }
        let vlfs = state.vlfs.iter().enumerate().map(|(slot, vlf)| {
            json!({
                "slot": slot,
                "offset": owner.slot_offset(slot),
                "bytes": owner.vlf_bytes,
                "vlf": vlf.vlf,
                "status": vlf.status,
                "parity": vlf.parity,
                "created_lsn": null,
                "blocks": null,
                "used_bytes": null,
                "index_entries": null,
            })
        });
        let value = json!({
            "running": self.json(),
            "store": format!("{:032x}", owner.store),
            "page_bytes": owner.page_bytes,
            "log_sector_bytes": owner.log_sector_bytes,
            "epoch": owner.epoch,
            "clean": false,
            "redo_lsn": state.redo.to_string(),
            "last_lsn": state.durable.to_string(),
            "next_lsn": state.next.to_string(),
            "last_commit": state.last_sequence,
            "durable_commit": state.durable_sequence,
            "commits_to_redo": null,
            "pages_to_redo": state.dirty_pages,
            "bytes_to_redo": self.redo_bytes(&state),
            "waiting_bytes": state.waiting_bytes,
            "read_only": state.read_only,
            "commits": counts.commits,
            "log_writes": counts.log_writes,
            "log_write_bytes": counts.log_write_bytes,
            "log_write_ns": counts.log_write_ns,
            "checkpoints": counts.checkpoints,
            "page_writes": counts.page_writes,
            "vlfs": vlfs.collect::<Value>(),
        });
        Ok((text, value))
    }

    /// Bytes of log between where recovery would begin and the end.
    fn redo_bytes(&self, state: &LogState) -> u64 {
        state.redo.bytes_to(state.next, self.counters.owner().vlf_bytes)
    }

    /// `headroom log why`.
    pub fn why(&self) -> Result<(String, Value), Failure> {
        let state = self.state()?;
        let active = state.vlfs.iter().filter(|vlf| vlf.status == 2).count();
        let mut text = format!(
            "{}{}virtual log files that are needed: {active}, from {} to {}, {} bytes\n",
            self.head(),
            doubts(&state),
            state.redo,
            state.next,
            self.redo_bytes(&state)
        );
        if let Some((tx, lsn)) = state.active {
            let _ =
                writeln!(text, "held by transaction {tx}, which has not ended: its first record is {lsn}");
        }
        match state.oldest_dirty_page {
            Some((page, lsn)) => {
                let _ = writeln!(
                    text,
                    "held by {} pages that only the log has; page {page} longest, since {lsn}: a checkpoint frees them",
                    state.dirty_pages
                );
            }
            None => text.push_str("no page waits to be written: nothing holds it but its own end\n"),
        }
        if state.checkpointing {
            text.push_str("a checkpoint is running\n");
        }
        match state.last_certificate {
            Some(certificate) => {
                let _ = writeln!(text, "the last checkpoint: {certificate}");
            }
            None => text.push_str("no checkpoint has ended since it was opened\n"),
        }
        let value = json!({
            "running": self.json(),
            "redo_lsn": state.redo.to_string(),
            "last_lsn": state.durable.to_string(),
            "next_lsn": state.next.to_string(),
            "active_vlfs": active,
            "bytes_to_redo": self.redo_bytes(&state),
            "pages": state.dirty_pages,
            "oldest_page": state.oldest_dirty_page
                .map(|(page, lsn)| json!({"page": page.0, "lsn": lsn.to_string()})),
            "open_transaction": state.active
                .map(|(tx, lsn)| json!({"tx": tx, "lsn": lsn.to_string(), "records": null})),
            "checkpointing": state.checkpointing,
            "read_only": state.read_only,
            "last_checkpoint": state.last_certificate.map(|own| {
                json!({"redo_lsn": own.redo.to_string(), "pages": own.pages, "generation": own.generation})
            }),
            "last_checkpoint_lsn": null,
        });
        Ok((text, value))
    }

    /// `headroom log anatomy` without a commit: where the time of all of them went.
    pub fn anatomy(&self) -> Result<(String, Value), Failure> {
        let times = self.times()?;
        let mut text = self.head();
        let _ = writeln!(text, "commits acknowledged as durable: {}", times.commits());
        if times.commits() > 0 {
            text.push_str(
                "\npart              mean us    p50 us    p99 us longest us  share  what happens meanwhile\n",
            );
            for (part, own) in CommitPart::ALL.into_iter().zip(&times.parts) {
                let _ = writeln!(text, "{}  {}", row(part.name(), own, &times), part.meaning());
            }
            let _ = writeln!(
                text,
                "{}  all of it, without the program's own time",
                row("whole", &times.whole, &times)
            );
        }
        text.push_str(&slow_list(&times));
        let parts = CommitPart::ALL.into_iter().zip(&times.parts).map(|(part, own)| {
            let mut value = part_json(own, &times);
            value["part"] = part.name().into();
            value
        });
        let value = json!({
            "running": self.json(),
            "commits": times.commits(),
            "whole": part_json(&times.whole, &times),
            "parts": parts.collect::<Value>(),
            "slow_from_ns": times.slow_from_ns,
            "slow": times.slow.iter().map(slow_json).collect::<Value>(),
        });
        Ok((text, value))
    }

    /// The times of one commit, if it is one of the slow ones that are kept.
    pub fn slow(&self, sequence: u64) -> Option<SlowCommit> {
        let times = self.counters.commit_times()?;
        times.slow.into_iter().find(|slow| slow.sequence == sequence)
    }
}

fn cut() -> Failure {
    Failure::new("the counters file was cut short under us").with_remedy("read the files with --files")
}

/// What must be known before the rest is believed.
fn doubts(state: &LogState) -> String {
    let age = state.age();
    let mut text = String::new();
    if state.read_only {
        text.push_str("READ-ONLY: an I/O failed, nothing is written any more\n");
    }
    if age >= PATIENCE {
        let _ = writeln!(text, "it does not answer: this is how it was {} s ago", age.as_secs());
    }
    text
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

/// One slow commit's times.
pub fn slow_text(slow: &SlowCommit) -> String {
    format!("\nit took long, us:\n{}{}", slow_header(), slow_row(slow))
}

/// The same as JSON.
pub fn slow_json(slow: &SlowCommit) -> Value {
    let mut value =
        json!({"commit": slow.sequence, "at_unix_ns": slow.at_unix_ns, "whole_ns": slow.whole_ns()});
    for (part, ns) in CommitPart::ALL.into_iter().zip(slow.parts_ns) {
        value[format!("{}_ns", part.name())] = ns.into();
    }
    value
}
