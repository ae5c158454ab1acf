//! The log of a database that does not time it, watched from outside: the writes and syncs of the server's own processes, counted
//! and timed by the kernel (source `process`).
//!
//! ```text
//! first snapshot of the database: a log without times?   no ─> NotNeeded
//!   yes ─> its processes are known and may be watched?   no ─> Refused { why }
//!            yes ─> Watched: each moment, the log's lines of the database give way to those of the kernel, by file
//! ```

use collect::process::{Layer, Process, Selection};
use collect::{IoFailures, Source, SourceError};
use filestats::{
    Delta, FileIdentity, FileInterval, FileKind, Interval, Meaning, Reason, Rules, Sample, Snapshot,
    intervals,
};
use host::ProcessStat;
use std::collections::BTreeMap;
use std::path::Path;
use verdict::LogTiming;

/// Name of the counting program in lines that are put in place of the database's.
const INSTANCE: &str = "the kernel, for the server's processes";

/// Watches the log where the database does not time it.
#[derive(Default)]
pub enum LogWatch {
    /// Nothing is known of the database yet, or it times its log itself.
    #[default]
    NotNeeded,
    /// Its processes cannot be watched.
    Refused {
        /// Why not, and what would allow it.
        why: String,
    },
    /// They are watched.
    Watched {
        /// The source.
        process: Box<Process>,
        /// A line of the log was seen.
        seen: bool,
    },
}

impl LogWatch {
    /// Begins to watch if the first snapshot of a database has a log without times.
    pub fn begin(first: &Snapshot, processes: &[u32]) -> LogWatch {
        if !first.samples.iter().any(is_untimed_log) {
            return LogWatch::NotNeeded;
        }
        let roots = roots(processes);
        if roots.is_empty() {
            let why =
                "the server's processes are not on this host, or cannot be distinguished from others".into();
            return LogWatch::Refused { why };
        }
        match Process::open(&Selection { pids: roots, ..Selection::default() }) {
            Ok(process) => LogWatch::Watched { process: Box::new(process), seen: false },
            Err(error) => LogWatch::Refused { why: why(&error) },
        }
    }

    /// Whether processes are watched.
    pub fn is_watching(&self) -> bool {
        matches!(self, LogWatch::Watched { .. })
    }

    /// The logs of the watched processes; `None` where none are watched or they cannot be read.
    pub fn snapshot(&mut self) -> Option<Snapshot> {
        let LogWatch::Watched { process, .. } = self else { return None };
        let mut snapshot = process.snapshot().ok()?;
        snapshot.samples.retain(|sample| sample.file.kind == FileKind::Log);
        Some(snapshot)
    }

    /// The I/Os of the watched processes that storage failed.
    pub fn failures(&self) -> &[IoFailures] {
        match self {
            LogWatch::Watched { process, .. } => process.failures(),
            LogWatch::NotNeeded | LogWatch::Refused { .. } => &[],
        }
    }

    /// Puts the kernel's lines of the log in place of those of the database that have no times. Nothing is replaced where the
    /// kernel saw no write: then the processes are not those that write the log.
    pub fn replace(
        &mut self,
        files: Vec<FileInterval>,
        kernel: Option<(&Snapshot, &Snapshot)>,
    ) -> Vec<FileInterval> {
        let LogWatch::Watched { seen, .. } = self else { return files };
        let Some((earlier, later)) = kernel else { return files };
        let replaced = replaced(files, &intervals(earlier, later, Rules::default()));
        *seen |= replaced.1;
        replaced.0
    }

    /// The program that timed the log in all of the observation.
    pub fn timing(&self) -> LogTiming {
        match self {
            LogWatch::NotNeeded => LogTiming::Database,
            LogWatch::Refused { why } => LogTiming::Untimed { why: why.clone() },
            LogWatch::Watched { seen: true, .. } => LogTiming::Kernel,
            LogWatch::Watched { seen: false, .. } => {
                LogTiming::Untimed { why: "no write of the server's processes to a log was seen".into() }
            }
        }
    }
}

fn why(error: &SourceError) -> String {
    match error.remedy() {
        Some(remedy) => format!("{error}; {remedy}"),
        None => error.to_string(),
    }
}

/// Those that still run and whose parent is not among them: a source watches the children too, and later ones.
fn roots(processes: &[u32]) -> Vec<u32> {
    let is_root = |pid: &&u32| ProcessStat::read(**pid).is_some_and(|stat| !processes.contains(&stat.parent));
    processes.iter().filter(is_root).copied().collect()
}

fn is_untimed_log(sample: &Sample) -> bool {
    let reason = sample.counters.write.stall_ns.reason();
    sample.file.kind == FileKind::Log && matches!(reason, Some(Reason::NotCounted | Reason::TimingOff))
}

/// A line of a log with writes or syncs that have no times.
fn is_untimed(file: &FileInterval) -> bool {
    let Interval::Known(delta) = &file.interval else { return false };
    let sync = delta.counters.sync.known();
    let without =
        |ops: filestats::Ops| matches!(ops.stall_ns.reason(), Some(Reason::NotCounted | Reason::TimingOff));
    file.file.kind == FileKind::Log && (without(delta.counters.write) || sync.is_some_and(without))
}

/// The lines with those of the kernel in them, and whether there are any.
fn replaced(files: Vec<FileInterval>, kernel: &[FileInterval]) -> (Vec<FileInterval>, bool) {
    let (untimed, timed): (Vec<FileInterval>, Vec<FileInterval>) = files.into_iter().partition(is_untimed);
    let Some(first) = untimed.first() else { return (timed, false) };
    let name = |file: &FileInterval| Path::new(&file.file.path).file_name().map(ToOwned::to_owned);
    let timed_logs: Vec<_> =
        timed.iter().filter(|file| file.file.kind == FileKind::Log).filter_map(name).collect();
    let is_wanted = |file: &&FileInterval| {
        file.file.kind == FileKind::Log
            && Layer::from_instance(&file.file.instance) == Layer::Requests
            && !name(file).is_some_and(|name| timed_logs.contains(&name))
    };
    let by_path = summed_by_path(kernel.iter().filter(is_wanted), first.meaning);
    let written =
        |file: &FileInterval| file.interval.known().is_some_and(|delta| delta.counters.write.count > 0);
    if !by_path.iter().any(written) {
        return (timed.into_iter().chain(untimed).collect(), false);
    }
    (timed.into_iter().chain(by_path).collect(), true)
}

/// One line for each file, whichever of the processes used it. Only the database knows which operation makes a
/// write durable.
fn summed_by_path<'a>(lines: impl Iterator<Item = &'a FileInterval>, meaning: Meaning) -> Vec<FileInterval> {
    let mut sums: BTreeMap<&str, (&FileInterval, Delta)> = BTreeMap::new();
    for line in lines {
        let Interval::Known(delta) = &line.interval else { continue };
        match sums.get_mut(line.file.path.as_str()) {
            None => drop(sums.insert(&line.file.path, (line, delta.clone()))),
            Some((_, sum)) => sum.add(delta),
        }
    }
    let lines = sums.into_values().map(|(line, delta)| FileInterval {
        file: FileIdentity { instance: INSTANCE.into(), ..FileIdentity::clone(&line.file) }.into(),
        meaning: Meaning { durable: meaning.durable, ..line.meaning },
        interval: Interval::Known(delta),
        ..line.clone()
    });
    lines.filter(|line| line.interval.known().is_some_and(|delta| delta.counters.operations() > 0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use filestats::{Counters, Figure, Ops};

    fn line(instance: &str, kind: FileKind, path: &str, write: Ops, sync: Figure<Ops>) -> FileInterval {
        let busy_ns = Figure::unknown(Reason::NotCounted);
        FileInterval {
            file: FileIdentity {
                instance: instance.into(),
                kind,
                path: path.into(),
                ..FileIdentity::default()
            }
            .into(),
            meaning: Meaning::REQUESTS,
            ended_unix_ns: 7,
            interval: Interval::Known(Delta {
                elapsed_ns: 1_000_000_000,
                counters: Counters { read: Ops::ZERO, write, sync, busy_ns },
                latencies: None,
            }),
        }
    }

    fn of_kernel(instance: &str, kind: FileKind, path: &str, count: u64) -> FileInterval {
        let sync = Figure::Known(Ops::timed(count, 0, count * 2_000_000));
        line(instance, kind, path, Ops::timed(count, count * 4096, count * 10_000), sync)
    }

    fn untimed(path: &str, reason: Reason) -> FileInterval {
        let write = Ops { count: 90, bytes: 90 * 512, stall_ns: Figure::unknown(reason) };
        line("mysql db", FileKind::Log, path, write, Figure::unknown(Reason::NotCounted))
    }

    #[test]
    fn the_kernels_lines_replace_those_without_times_and_no_others() {
        let data = of_kernel("mysql db", FileKind::Data, "/d/shop/orders.ibd", 5);
        let binlog = of_kernel("mysql db", FileKind::Log, "/d/binlog.000042", 40);
        let files = vec![untimed("/d/ib_logfile0", Reason::NotCounted), data.clone(), binlog.clone()];
        let kernel = [
            of_kernel("pid 812 (mariadbd)", FileKind::Log, "/d/ib_logfile0", 100),
            of_kernel("pid 812 (mariadbd)", FileKind::Log, "/d/binlog.000042", 40),
            of_kernel("pid 812 (mariadbd)", FileKind::Data, "/d/shop/orders.ibd", 5),
            of_kernel("block layer", FileKind::Log, "/d/ib_logfile0", 100),
        ];
        let (lines, is_kernels) = replaced(files, &kernel);
        assert!(is_kernels);
        let [first, second, log] = &lines[..] else { panic!("{lines:#?}") };
        assert_eq!((first, second), (&data, &binlog), "the database times these");
        assert_eq!((log.file.instance.as_str(), log.file.path.as_str()), (INSTANCE, "/d/ib_logfile0"));
        let delta = log.interval.known().unwrap();
        assert_eq!((delta.counters.write.count, delta.counters.write.bytes), (100, 100 * 4096));
        assert_eq!(delta.counters.sync.known().unwrap().stall_ns, Figure::Known(200_000_000));
    }

    #[test]
    fn the_processes_of_a_server_are_summed_by_file() {
        let files = vec![untimed("wal", Reason::TimingOff)];
        let segment = "/pg/pg_wal/000000010000000000000001";
        let kernel = [
            of_kernel("pid 9 (postgres)", FileKind::Log, segment, 10),
            of_kernel("pid 8 (postgres)", FileKind::Log, segment, 20),
            of_kernel("pid 8 (postgres)", FileKind::Log, "/pg/pg_wal/000000010000000000000002", 1),
        ];
        let (lines, _) = replaced(files, &kernel);
        let counts: Vec<u64> =
            lines.iter().map(|line| line.interval.known().unwrap().counters.write.count).collect();
        assert_eq!(counts, [30, 1], "{lines:#?}");
    }

    #[test]
    fn nothing_is_replaced_by_nothing() {
        let files = vec![untimed("/d/ib_logfile0", Reason::NotCounted)];
        let idle = [of_kernel("pid 812 (mariadbd)", FileKind::Log, "/d/ib_logfile0", 0)];
        for kernel in [&[][..], &idle] {
            assert_eq!(replaced(files.clone(), kernel), (files.clone(), false));
        }
        let timed = vec![of_kernel("sqlite", FileKind::Log, "/d/shop.db-wal", 3)];
        assert_eq!(replaced(timed.clone(), &idle), (timed, false));
    }

    #[test]
    fn a_server_on_another_host_is_not_watched() {
        let Interval::Known(delta) = untimed("/d/ib_logfile0", Reason::NotCounted).interval else { panic!() };
        let file =
            FileIdentity { kind: FileKind::Log, path: "/d/ib_logfile0".into(), ..FileIdentity::default() };
        let epoch = filestats::Epoch::for_run("1");
        let sample = Sample::new(file, epoch, Meaning::REQUESTS, delta.counters);
        let snapshot = Snapshot { samples: vec![sample], ..Snapshot::default() };
        assert!(
            matches!(LogWatch::begin(&snapshot, &[]).timing(), LogTiming::Untimed { why } if why.contains("not on this host"))
        );
        assert_eq!(LogWatch::begin(&Snapshot::default(), &[1]).timing(), LogTiming::Database);
    }

    #[test]
    fn a_server_is_watched_from_its_first_process() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let own = std::process::id();
        assert_eq!(roots(&[own, child.id(), u32::MAX]), [own]);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
