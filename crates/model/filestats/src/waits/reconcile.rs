//! Are the waits consistent with the files? A session that waits for a read waits for one that some file counts,
//! so that the waits of a class cannot be much longer than the stall of its files: where they are, what adds
//! the time lies above the storage.

use super::{WaitClass, WaitInterval, mysql, sqlserver};
use crate::{Figure, FileInterval, FileKind, Ops, Reason};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Waits longer than this share of an interval are reported.
const WAITED_SESSIONS_MIN: f64 = 0.01;
/// Waits beyond this many times the stall are not the storage's: several sessions can wait for one I/O, and both
/// figures are taken at slightly different times.
const BEYOND_STALL: f64 = 2.0;

/// One class of waits beside the stall of the files that it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reconciled {
    /// Class of the waits.
    pub class: WaitClass,
    /// How long, all sessions together.
    pub wait_ns: Figure<u64>,
    /// How long the files took over I/O of that kind.
    pub stall_ns: Figure<u64>,
    /// Whether the two are consistent.
    pub agreement: Agreement,
}

/// Whether waits and stall are consistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// The files account for the waits.
    Agrees,
    /// The waits are not the disk: they are longer than what the files took.
    NotTheDisk,
    /// Hardly any session waits.
    NobodyWaits,
    /// One of the two is not known.
    CannotSay,
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Reconciles each class of waits that has files, for one interval.
pub fn reconcile(waits: &[WaitInterval], files: &[FileInterval]) -> Vec<Reconciled> {
    let mut classes: Vec<WaitClass> = waits.iter().map(|wait| wait.class).collect();
    classes.sort_unstable();
    classes.dedup();
    classes.into_iter().filter_map(|class| reconcile_class(class, waits, files)).collect()
}

fn reconcile_class(class: WaitClass, waits: &[WaitInterval], files: &[FileInterval]) -> Option<Reconciled> {
    let of_class = waits.iter().filter(|wait| wait.class == class);
    let deltas = of_class.map(|wait| wait.interval);
    let waited = deltas.reduce(|sum, next| {
        sum.zip(next, |mut sum, next| {
            sum.wait_ns = sum.wait_ns.zip(next.wait_ns, u64::saturating_add);
            sum
        })
    })?;
    let wait_ns = waited.map(|delta| delta.wait_ns).flatten();
    // Syncs that are in the waits and in no file: without them the files' time is too short to be compared.
    let is_uncounted =
        |event: &str| mysql::holds_uncounted_syncs(event) || sqlserver::holds_uncounted_syncs(event);
    let holds_syncs = waits.iter().any(|wait| wait.class == class && is_uncounted(&wait.event));
    let stall_ns = stall_of(class, files, if holds_syncs { counted_stall } else { stall })?;
    let stall_ns = stall_beside(class, waits, files).unwrap_or(stall_ns);
    let agreement = match (waited, wait_ns, stall_ns) {
        (Figure::Known(delta), Figure::Known(wait), _)
            if (wait as f64) < WAITED_SESSIONS_MIN * delta.elapsed_ns as f64 =>
        {
            Agreement::NobodyWaits
        }
        (_, Figure::Known(wait), Figure::Known(stall)) if wait as f64 > BEYOND_STALL * stall as f64 => {
            Agreement::NotTheDisk
        }
        (_, Figure::Known(_), Figure::Known(_)) => Agreement::Agrees,
        _ => Agreement::CannotSay,
    };
    Some(Reconciled { class, wait_ns, stall_ns, agreement })
}

/// SQL Server files waits of tempdb and of other files under the same names: the stall of all files that such a wait may
/// be for. `None` for other engines' waits.
fn stall_beside(class: WaitClass, waits: &[WaitInterval], files: &[FileInterval]) -> Option<Figure<u64>> {
    let any = |holds: fn(&str) -> bool| waits.iter().any(|wait| wait.class == class && holds(&wait.event));
    if any(sqlserver::holds_all_files) {
        return Some(sum(files, |_| true, |file| file.transfers().stall_ns));
    }
    let pages = |kind| matches!(kind, FileKind::Data | FileKind::Temp);
    any(sqlserver::holds_tempdb).then(|| sum(files, pages, |file| file.read.stall_ns))
}

/// The stall of the files that a class is about; `None` where it is about none.
fn stall_of(
    class: WaitClass,
    files: &[FileInterval],
    stall: fn(Figure<Ops>) -> Figure<u64>,
) -> Option<Figure<u64>> {
    let data = |kind| matches!(kind, FileKind::Data);
    let log = |kind| matches!(kind, FileKind::Log | FileKind::Journal);
    let temp = |kind| matches!(kind, FileKind::Temp);
    Some(match class {
        WaitClass::DataRead => sum(files, data, |file| file.read.stall_ns),
        WaitClass::DataWrite => sum(files, data, |file| file.write.stall_ns),
        WaitClass::DataSync => sum(files, data, |file| stall(file.sync)),
        // Engines differ in which of the two a commit's wait is filed under.
        WaitClass::LogWrite | WaitClass::LogSync => {
            sum(files, log, |file| file.write.stall_ns.zip(stall(file.sync), u64::saturating_add))
        }
        WaitClass::Temp => sum(files, temp, |file| file.transfers().stall_ns),
        _ => return None,
    })
}

fn stall(sync: Figure<Ops>) -> Figure<u64> {
    match sync {
        Figure::Known(sync) => sync.stall_ns,
        // Counted with the writes, or not at all: nothing to add.
        Figure::Unknown { unknown: Reason::NotCounted } => Figure::Known(0),
        Figure::Unknown { unknown } => Figure::unknown(unknown),
    }
}

fn counted_stall(sync: Figure<Ops>) -> Figure<u64> {
    sync.map(|sync| sync.stall_ns).flatten()
}

fn sum(
    files: &[FileInterval],
    chosen: impl Fn(FileKind) -> bool,
    stall_ns: impl Fn(&crate::Counters) -> Figure<u64>,
) -> Figure<u64> {
    let stalls = files.iter().filter(|file| chosen(file.file.kind)).map(|file| match &file.interval {
        crate::Interval::Known(delta) => stall_ns(&delta.counters),
        crate::Interval::Unknown(reason) => Figure::unknown(*reason),
    });
    let sum = stalls.reduce(|sum, next| sum.zip(next, u64::saturating_add));
    sum.unwrap_or(Figure::unknown(Reason::NotCounted))
}

#[cfg(test)]
mod tests {
    use super::super::WaitDelta;
    use super::*;
    use crate::{Counters, Delta, FileIdentity, Interval, Meaning};

    const S: u64 = 1_000_000_000;

    fn waited(class: WaitClass, wait_ns: u64) -> WaitInterval {
        let delta =
            WaitDelta { elapsed_ns: 10 * S, count: Figure::Known(100), wait_ns: Figure::Known(wait_ns) };
        WaitInterval {
            instance: "engine".into(),
            event: format!("{class}"),
            class,
            interval: Figure::Known(delta),
        }
    }

    fn file(kind: FileKind, counters: Counters) -> FileInterval {
        let file = FileIdentity {
            instance: "engine".into(),
            database: None,
            database_id: None,
            file_id: "1".into(),
            kind,
            path: format!("/{kind}"),
            drive: None,
            handle: None,
            object: None,
        };
        let delta = Delta { elapsed_ns: 10 * S, counters, latencies: None };
        FileInterval {
            file: file.into(),
            meaning: Meaning::REQUESTS,
            ended_unix_ns: 0,
            interval: Interval::Known(delta),
        }
    }

    fn log(write_ns: u64, sync_ns: u64) -> FileInterval {
        let sync = Figure::Known(Ops::timed(100, 0, sync_ns));
        file(FileKind::Log, Counters { write: Ops::timed(100, 0, write_ns), sync, ..Counters::ZERO })
    }

    fn agreement(waits: &[WaitInterval], files: &[FileInterval]) -> Agreement {
        reconcile(waits, files)[0].agreement
    }

    #[test]
    fn commits_that_wait_for_the_logs_sync_agree_with_it() {
        let commits = [waited(WaitClass::LogSync, 5 * S)];
        assert_eq!(agreement(&commits, &[log(S, 4 * S)]), Agreement::Agrees);
    }

    #[test]
    fn waits_far_beyond_what_the_log_took_are_not_the_disk() {
        let commits = [waited(WaitClass::LogSync, 5 * S)];
        assert_eq!(agreement(&commits, &[log(S / 100, S / 10)]), Agreement::NotTheDisk);
    }

    #[test]
    fn a_slow_file_without_waiting_sessions_is_reported_as_such() {
        let reads = [waited(WaitClass::DataRead, S / 1000)];
        let slow = file(FileKind::Data, Counters { read: Ops::timed(10, 0, 3 * S), ..Counters::ZERO });
        assert_eq!(agreement(&reads, &[slow]), Agreement::NobodyWaits);
    }

    #[test]
    fn untimed_files_say_nothing_rather_than_not_the_disk() {
        let untimed = Ops { count: 10, bytes: 0, stall_ns: Figure::unknown(Reason::TimingOff) };
        let files = [file(FileKind::Data, Counters { read: untimed, ..Counters::ZERO })];
        assert_eq!(agreement(&[waited(WaitClass::DataRead, S)], &files), Agreement::CannotSay);
        assert_eq!(agreement(&[waited(WaitClass::DataRead, S)], &[]), Agreement::CannotSay);
    }

    #[test]
    fn syncs_that_only_the_waits_hold_are_not_taken_for_something_above_the_disk() {
        let mut commits = waited(WaitClass::LogSync, 5 * S);
        commits.event = mysql::event("wait/io/file/sql/binlog", mysql::Operation::Misc);
        let sync = Figure::unknown(Reason::NotCounted);
        let binlog = Counters { write: Ops::timed(100, 0, S / 100), sync, ..Counters::ZERO };
        let binlog = file(FileKind::Log, binlog);
        assert_eq!(agreement(&[commits], &[binlog]), Agreement::CannotSay);
    }

    #[test]
    fn waits_of_sql_server_are_compared_with_all_files_that_their_name_stands_for() {
        let event = |class, event: &str| WaitInterval { event: event.into(), ..waited(class, 5 * S) };
        let read = |kind| file(kind, Counters { read: Ops::timed(100, 0, 4 * S), ..Counters::ZERO });
        let pages = [event(WaitClass::DataRead, "PAGEIOLATCH_SH")];
        assert_eq!(agreement(&pages, &[read(FileKind::Temp)]), Agreement::Agrees, "of tempdb");
        assert_eq!(agreement(&pages, &[read(FileKind::Log)]), Agreement::CannotSay);
        let others = [event(WaitClass::Temp, "IO_COMPLETION")];
        assert_eq!(agreement(&others, &[read(FileKind::Log)]), Agreement::Agrees, "a log that is read");
        let uncounted = Counters { sync: Figure::unknown(Reason::NotCounted), ..Counters::ZERO };
        let syncs = [event(WaitClass::DataSync, "PREEMPTIVE_OS_FLUSHFILEBUFFERS")];
        assert_eq!(agreement(&syncs, &[file(FileKind::Data, uncounted)]), Agreement::CannotSay);
    }

    #[test]
    fn a_wait_for_another_machine_has_no_files_here() {
        assert_eq!(reconcile(&[waited(WaitClass::Replication, S)], &[log(0, 0)]), []);
    }
}
