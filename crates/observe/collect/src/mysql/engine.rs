//! Samples from InnoDB's status counters, for what the Performance Schema does not count by file: the redo log of MariaDB
//! from 10.8 on, syncs, and everything if the Performance Schema is off or not readable by this user.

use super::files::{Owner, Role, aggregate, log_drive};
use super::statistics::{Schema, Statistics};
use filestats::{Counters, Epoch, Figure, FileIdentity, FileKind, Meaning, Ops, Reason, Sample};
use std::path::PathBuf;

/// Samples from status counters, in addition to those of `files`.
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
    // The counters of the data files may contain the redo log: it must not be counted twice.
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
    Some(sample(owner, aggregate(owner, FileKind::Data, path), Counters::without_syncs(read, write)))
}

/// The redo log. Its bytes are those of its records; the written bytes are more, since a write is rounded up to blocks
/// and the next one writes the last block again.
fn redo(statistics: &Statistics, owner: &Owner, untimed: Reason) -> Option<Sample> {
    let write = ops(statistics, "innodb_log_writes", "innodb_os_log_written", untimed)?;
    // A log is read only by recovery, before the server accepts connections.
    let read = Ops { count: 0, bytes: 0, stall_ns: Figure::unknown(untimed) };
    let server = owner.server;
    let mut file =
        FileIdentity { drive: log_drive(owner.server), ..aggregate(owner, FileKind::Log, "InnoDB redo log") };
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
    Some(Sample { size_bytes, ..sample(owner, file, Counters::without_syncs(read, write)) })
}

/// Syncs are a sample of their own: they belong to no single file, and a count without a time among a file's counters
/// would make the total time of its I/O unknown.
fn syncs(statistics: &Statistics, owner: &Owner) -> Option<Sample> {
    let (name, kind, path) = match statistics.status.contains_key("innodb_os_log_fsyncs") {
        true => ("innodb_os_log_fsyncs", FileKind::Log, "InnoDB redo log, syncs"),
        false => ("innodb_data_fsyncs", FileKind::Other, "InnoDB data files and redo log, syncs"),
    };
    let count = *statistics.status.get(name)?;
    let sync = Ops { count, bytes: 0, stall_ns: Figure::unknown(Reason::NotCounted) };
    let counters = Counters { sync: Figure::Known(sync), ..Counters::ZERO };
    // Commits sync the log; the data files are synced by checkpoints, which are few.
    let file = FileIdentity { drive: log_drive(owner.server), ..aggregate(owner, kind, path) };
    Some(sample(owner, file, counters))
}

fn sample(owner: &Owner, file: FileIdentity, counters: Counters) -> Sample {
    // FLUSH STATUS does not reset these counters: only a restart does.
    Sample::new(file, Epoch::for_run(owner.run), Meaning::REQUESTS, counters)
}

fn ops(statistics: &Statistics, count: &str, bytes: &str, untimed: Reason) -> Option<Ops> {
    let (count, bytes) = (*statistics.status.get(count)?, *statistics.status.get(bytes)?);
    Some(Ops { count, bytes, stall_ns: Figure::unknown(untimed) })
}
