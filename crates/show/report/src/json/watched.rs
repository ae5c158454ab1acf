//! An interval of a source: files, devices, waits.

use super::{add, plain};
use crate::{WatchedFile, WatchedInterval, number, wording};
use filestats::waits::Reconciled;
use filestats::{Counters, Figure, FileInterval, Interval, Ops, Profile, WaitInterval};
use serde_json::{Value, json};

/// One interval of a source, as `headroom watch --json` prints it in a line.
pub fn watch(interval: &WatchedInterval, profile: &Profile) -> Value {
    let mut value = waits(interval);
    let more = json!({
        "at": number::rfc3339(interval.ended_unix_ns),
        "at_unix_ns": interval.ended_unix_ns,
        "source": interval.source,
        "elapsed_ns": interval.elapsed_ns,
        "files": interval.files.iter().map(|file| watched_file(file, profile)).collect::<Vec<Value>>(),
        "below": interval.below.iter().map(|file| watched_file(file, profile)).collect::<Vec<Value>>(),
        "devices": interval.devices.iter().map(|device| watched(device, None)).collect::<Vec<Value>>(),
        "notes": interval.notes,
    });
    add(&mut value, more);
    value
}

/// The waits of an interval compared with the times of the files: `waits` and `reconciled`.
pub fn waits(interval: &WatchedInterval) -> Value {
    let reconciled = |one: &Reconciled| {
        let mut value = plain(one);
        value["text"] = json!(wording::waits::reconciliation(one));
        value
    };
    json!({
        "waits": interval.waits.iter().map(wait).collect::<Vec<Value>>(),
        "reconciled": interval.reconciled.iter().map(reconciled).collect::<Vec<Value>>(),
    })
}

fn watched_file(file: &WatchedFile, profile: &Profile) -> Value {
    let mut value = watched(&file.row, file.band(profile).map(|band| band.name));
    value["size_bytes"] = json!(file.size_bytes);
    value["meaning"] = json!(file.row.meaning);
    value["object"] = json!(file.row.file.object);
    value
}

fn watched(row: &FileInterval, band: Option<&str>) -> Value {
    let mut value = json!({
        "path": row.file.path,
        "instance": row.file.instance,
        "database": row.file.database,
        "kind": row.file.kind,
        "file_id": row.file.file_id,
        "drive": row.file.drive,
        "band": band,
    });
    let delta = match &row.interval {
        Interval::Unknown(reason) => {
            value["unknown"] = json!(reason);
            return value;
        }
        Interval::Known(delta) => delta,
    };
    let Counters { read, write, sync, busy_ns } = delta.counters;
    let sync_figure = |of: fn(&Ops) -> Value| match sync {
        Figure::Known(sync) => of(&sync),
        Figure::Unknown { unknown } => json!(Figure::<u64>::unknown(unknown)),
    };
    for (key, figure) in [
        ("reads", json!(read.count)),
        ("read_bytes", json!(read.bytes)),
        ("read_ns", json!(read.stall_ns)),
        ("read_latency_ns", json!(read.latency_ns())),
        ("writes", json!(write.count)),
        ("write_bytes", json!(write.bytes)),
        ("write_ns", json!(write.stall_ns)),
        ("write_latency_ns", json!(write.latency_ns())),
        ("syncs", sync_figure(|sync| json!(sync.count))),
        ("sync_ns", sync_figure(|sync| json!(sync.stall_ns))),
        ("sync_latency_ns", sync_figure(|sync| json!(sync.latency_ns()))),
        ("busy_ns", json!(busy_ns)),
        ("outstanding", json!(delta.outstanding())),
        ("iops", json!(delta.iops())),
        ("mib_per_s", json!(delta.mib_per_s())),
    ] {
        value[key] = figure;
    }
    value
}

fn wait(wait: &WaitInterval) -> Value {
    let mut value = json!({
        "instance": wait.instance, "event": wait.event, "class": wait.class, "implies": wait.class.implies(),
    });
    match wait.interval {
        Figure::Unknown { unknown } => value["unknown"] = json!(unknown),
        Figure::Known(delta) => {
            value["waits"] = json!(delta.count);
            value["wait_ns"] = json!(delta.wait_ns);
            value["mean_ns"] = json!(delta.mean_ns());
            value["sessions"] = json!(delta.sessions());
        }
    }
    value
}
