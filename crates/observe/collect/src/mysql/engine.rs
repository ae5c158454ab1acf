//! What InnoDB says of itself in its status counters, where no file says it: the redo log of MariaDB from 10.8 on,
//! syncs, and everything where the Performance Schema is off or closed to this user.

use super::files::{self, Owner, Role};
use super::statistics::{Schema, Statistics};
use filestats::{Counters, Epoch, Figure, FileIdentity, FileKind, Meaning, Ops, Reason, Sample};
use std::path::PathBuf;

/// Samples that are made of status counters, beside those of the files.
pub(super) fn samples(statistics: &Statistics, owner: &Owner, files: &[Sample]) -> Vec<Sample> {
    let untimed = match statistics.schema {
        Schema::Off => Reason::TimingOff,
        Schema::Denied | Schema::On(_) => Reason::NotCounted,
    };
    let mut samples = Vec::new();
    let all_as_one = !matches!(statistics.schema, Schema::On(_));
    if all_as_one {
        samples.extend(data(statistics, owner, untimed));
    }
    // What one row holds with the data files is not told a second time.
    let is_redo = |sample: &Sample| sample.file.file_id.starts_with(Role::Redo.prefix());
    let is_in_data = all_as_one && !owner.server.has_one_uninstrumented_log();
    if !is_in_data && !files.iter().any(is_redo) {
        samples.extend(redo(statistics, owner, untimed));
    }
    samples.extend(syncs(statistics, owner));
    samples
}

/// All data files as one.
fn data(statistics: &Statistics, owner: &Owner, untimed: Reason) -> Option<Sample> {
    let read = ops(statistics, "innodb_data_reads", "innodb_data_read", untimed)?;
    let write = ops(statistics, "innodb_data_writes", "innodb_data_written", untimed)?;
    // MySQL counts the writes of its redo log here too; MariaDB from 10.8 on does not.
    let path = match owner.server.has_one_uninstrumented_log() {
        true => "InnoDB data files",
        false => "InnoDB data files and redo log",
    };
    Some(sample(
        owner,
        files::unplaced(owner, FileKind::Data, path.into()),
        Counters { read, write, ..uncounted() },
    ))
}

/// The redo log. Its bytes are those of its records: a write is rounded up to blocks, and the last block of one is
/// written again by the next.
fn redo(statistics: &Statistics, owner: &Owner, untimed: Reason) -> Option<Sample> {
    let write = ops(statistics, "innodb_log_writes", "innodb_os_log_written", untimed)?;
    let counters = Counters { write, read: nothing(untimed), ..uncounted() };
    let server = owner.server;
    let mut file = files::unplaced(owner, FileKind::Log, "InnoDB redo log".into());
    let mut size_bytes = Figure::unknown(Reason::NotCounted);
    if server.has_one_uninstrumented_log() {
        let path: PathBuf = server.log_directory.join("ib_logfile0").components().collect();
        file.path = path.to_string_lossy().into_owned();
        file.file_id.clone_from(&file.path);
        if let Some(found) = server.find_file(&path) {
            file.file_id = found.inode;
            size_bytes = Figure::Known(found.size_bytes);
        }
    }
    file.file_id.insert_str(0, Role::Redo.prefix());
    Some(Sample { size_bytes, ..sample(owner, file, counters) })
}

/// Syncs have a line of their own: no file's counters hold them, and a count without its time in a file's would leave
/// nobody able to say how long that file's I/O took.
fn syncs(statistics: &Statistics, owner: &Owner) -> Option<Sample> {
    let (name, kind, path) = match statistics.status.contains_key("innodb_os_log_fsyncs") {
        true => ("innodb_os_log_fsyncs", FileKind::Log, "InnoDB redo log, syncs"),
        false => ("innodb_data_fsyncs", FileKind::Other, "InnoDB data files and redo log, syncs"),
    };
    let count = *statistics.status.get(name)?;
    let sync = Ops { count, bytes: 0, stall_ns: Figure::unknown(Reason::NotCounted) };
    let counters = Counters { sync: Figure::Known(sync), ..Counters::ZERO };
    Some(sample(owner, files::unplaced(owner, kind, path.into()), counters))
}

fn sample(owner: &Owner, file: FileIdentity, counters: Counters) -> Sample {
    Sample {
        file,
        // FLUSH STATUS does not touch these counters: only a restart ends their epoch.
        epoch: Epoch::for_run(owner.run),
        meaning: Meaning::REQUESTS,
        counters,
        size_bytes: Figure::unknown(Reason::NotCounted),
        latencies: None,
    }
}

fn ops(statistics: &Statistics, count: &str, bytes: &str, untimed: Reason) -> Option<Ops> {
    let (count, bytes) = (*statistics.status.get(count)?, *statistics.status.get(bytes)?);
    Some(Ops { count, bytes, stall_ns: Figure::unknown(untimed) })
}

/// A log is read at recovery only, before anybody can ask.
fn nothing(untimed: Reason) -> Ops {
    Ops { count: 0, bytes: 0, stall_ns: Figure::unknown(untimed) }
}

fn uncounted() -> Counters {
    Counters { sync: Figure::unknown(Reason::NotCounted), ..Counters::ZERO }
}
